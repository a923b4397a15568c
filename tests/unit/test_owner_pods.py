"""The pods that operators make of their objects: how many, what they are called and labelled, and which gang they become."""

from typing import Any

import pytest

from phalanx.controllers.builtin import ControllerSettings
from phalanx.controllers.grouper.settings import GrouperSettings
from phalanx.controllers.owner_pods.controller import STAND_INS
from phalanx.controllers.pod_makers import MADE_ELSEWHERE
from phalanx.errors import SnapshotError
from phalanx.model.bounds import MADE_PODS
from phalanx.model.kinds import Document
from tests.support.submissions import owner, submit, template

TRAINING, LWS, RAY = "training.kubeflow.org", "leaderworkerset.sigs.k8s.io", "ray.io"
KUBEFLOW = "kubeflow.org/v1"


def replicas(**counts: int) -> dict[str, Any]:
    return {role: {"replicas": count, "template": template()} for role, count in counts.items()}


def container(pod: Document, name: str) -> Document:
    spec = pod["spec"]
    return next(item for item in (*spec["containers"], *spec.get("initContainers", ())) if item["name"] == name)


# --- Kubernetes' own -----------------------------------------------------------------------------------------------------


def test_a_job_has_as_many_pods_as_run_at_a_time() -> None:
    made = submit(owner("batch/v1", "Job", parallelism=2, completions=5, template=template({"app": "x"})))
    assert made.names == ["train-00000", "train-00001"]
    assert made.label("batch.kubernetes.io/job-name") == made.label("job-name") == ["train", "train"]
    assert made.label("app") == ["x", "x"]
    assert made.found.problems == ["Job ml/train: 3 more of its pods are made once others have succeeded"]
    assert [group["spec"]["minMember"] for group in made.of("PodGroup")] == [1, 1], "each pod of a plain Job may start alone"


def test_a_job_has_one_pod_by_default_and_no_more_than_completions() -> None:
    assert len(submit(owner("batch/v1", "Job", template=template())).names) == 1
    assert len(submit(owner("batch/v1", "Job", parallelism=9, completions=2, template=template())).names) == 2


HUGE = 2**31 - 1


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("batch/v1", "Job", {"parallelism": HUGE, "template": template()}),
        ("apps/v1", "Deployment", {"replicas": HUGE, "template": template()}),
        ("apps/v1", "StatefulSet", {"replicas": HUGE, "podManagementPolicy": "Parallel", "template": template()}),
        (KUBEFLOW, "PyTorchJob", {"pytorchReplicaSpecs": replicas(Worker=HUGE)}),
        ("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": replicas(Worker=HUGE)}),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"name": "a", "replicas": HUGE, "template": {}}]}),
        ("ray.io/v1", "RayCluster", {"headGroupSpec": {"template": template()}, "workerGroupSpecs": [
            {"groupName": "a", "replicas": HUGE, "template": template()}]}),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {
            "replicas": HUGE, "leaderWorkerTemplate": {"workerTemplate": template()}}),
        ("batch.volcano.sh/v1alpha1", "Job", {"tasks": [{"name": "a", "replicas": HUGE, "template": template()}]}),
    ],
)  # fmt: skip
def test_more_pods_than_anybody_can_mean_are_refused_before_any_is_made(api_version: str, kind: str, spec: dict[str, Any]) -> None:
    made = submit(owner(api_version, kind, **spec))
    assert made.names == []
    assert any(MADE_PODS.text in text for text in made.found.problems), made.found.problems


def test_pods_of_many_workloads_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MADE_PODS.variable, "5")
    jobs = [{"name": "a", "replicas": 3, "template": {"spec": {"parallelism": 4, "completions": 4, "template": template()}}}]
    with pytest.raises(SnapshotError, match="too much is made of the workloads: at most 5 pods"):
        submit(owner("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs))


def test_a_job_with_a_size_is_one_gang() -> None:
    made = submit(owner("batch/v1", "Job", parallelism=4, template=template(), annotations={"phalanx.dev/min-member": "4"}))
    assert made.minima == {"pg-train": 4}
    assert len(made.found.gangs) == 1


def test_pods_of_an_indexed_job_are_numbered() -> None:
    made = submit(owner("batch/v1", "Job", parallelism=2, completions=2, completionMode="Indexed", template=template()))
    assert made.names == ["train-0-00000", "train-1-00000"]
    assert made.label("batch.kubernetes.io/job-completion-index") == ["0", "1"]
    assert [pod["spec"]["hostname"] for pod in made.pods.values()] == ["train-0", "train-1"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"suspend": True}, "Job ml/train: is suspended, scaled to none or at its end, so that no pods are made"),
        ({"managedBy": "kueue.x-k8s.io/multikueue"}, "its pods are made by kueue.x-k8s.io/multikueue, which is not known here"),
    ],
)
def test_a_job_without_pods_says_why(spec: dict[str, Any], said: str) -> None:
    made = submit(owner("batch/v1", "Job", template=template(), **spec))
    assert made.names == []
    assert said in made.found.problems[0]


@pytest.mark.parametrize("api_version", ["batch/v1", "batch.volcano.sh/v1alpha1"])
def test_a_cron_job_makes_nothing_now(api_version: str) -> None:
    tasks = [{"name": "a", "replicas": 1, "template": template()}]
    job = {"spec": {"template": template(restartPolicy="Never")} if api_version == "batch/v1" else {"tasks": tasks}}
    made = submit(owner(api_version, "CronJob", schedule="0 3 * * *", jobTemplate=job))
    assert made.names == []
    assert "makes no pods now, but at its next time" in made.found.problems[0]


def test_a_deployment_has_a_replica_set_that_has_the_pods() -> None:
    made = submit(owner("apps/v1", "Deployment", "web", replicas=2, template=template({"app": "web"})))
    (replica_set,) = made.of("ReplicaSet")
    name = replica_set["metadata"]["name"]
    assert made.names == [f"{name}-00000", f"{name}-00001"]
    assert set(made.label("pod-template-hash")) == {name.removeprefix("web-")}
    assert list(made.minima.values()) == [1], "the pods of a ReplicaSet share a group, and each may start alone"


def test_a_paused_deployment_has_no_pods() -> None:
    made = submit(owner("apps/v1", "Deployment", paused=True, template=template()))
    assert made.names == []
    assert "is paused" in made.found.problems[0]


def test_pods_of_a_stateful_set_come_one_after_the_other() -> None:
    made = submit(owner("apps/v1", "StatefulSet", "db", replicas=3, template=template()))
    assert made.names == ["db-0"]
    assert "2 more of its pods are made one after the other" in made.found.problems[0]


def test_pods_of_a_parallel_stateful_set_come_together_each_with_its_claim() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
    spec: dict[str, Any] = {"podManagementPolicy": "Parallel", "ordinals": {"start": 5}, "volumeClaimTemplates": claims}
    made = submit(owner("apps/v1", "StatefulSet", "db", replicas=2, template=template(), **spec))
    assert made.names == ["db-5", "db-6"] == made.label("statefulset.kubernetes.io/pod-name")
    assert [claim["metadata"]["name"] for claim in made.of("PersistentVolumeClaim")] == ["data-db-5", "data-db-6"]
    volumes = made.pods["db-6"]["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-6"}}]


# --- Kubeflow ------------------------------------------------------------------------------------------------------------


def test_a_pytorch_job_is_a_gang_of_master_and_workers() -> None:
    made = submit(owner(KUBEFLOW, "PyTorchJob", pytorchReplicaSpecs=replicas(Master=1, Worker=3)))
    assert made.names == ["train-master-0", "train-worker-0", "train-worker-1", "train-worker-2"]
    assert made.label(f"{TRAINING}/replica-type") == ["master", "worker", "worker", "worker"]
    assert made.label(f"{TRAINING}/replica-index") == ["0", "0", "1", "2"]
    assert made.label(f"{TRAINING}/job-role") == ["master", "", "", ""]
    assert made.minima == {"pg-train": 4}


def test_workers_of_a_pytorch_job_wait_for_the_master_in_an_init_container() -> None:
    made = submit(owner(KUBEFLOW, "PyTorchJob", pytorchReplicaSpecs=replicas(Master=1, Worker=1)))
    assert container(made.pods["train-worker-0"], "init-pytorch")["resources"]["requests"] == {"cpu": "50m", "memory": "10Mi"}
    assert "initContainers" not in made.pods["train-master-0"]["spec"]
    alone = submit(owner(KUBEFLOW, "PyTorchJob", pytorchReplicaSpecs=replicas(Worker=2)))
    assert "initContainers" not in alone.pods["train-worker-0"]["spec"]


def test_an_elastic_pytorch_job_needs_its_least_number() -> None:
    made = submit(owner(KUBEFLOW, "PyTorchJob", pytorchReplicaSpecs=replicas(Worker=4), elasticPolicy={"minReplicas": 2}))
    assert len(made.names) == 4
    assert made.minima == {"pg-train": 2}


@pytest.mark.parametrize(
    ("kind", "field", "counts", "leader"),
    [
        ("TFJob", "tfReplicaSpecs", {"Chief": 1, "PS": 1, "Worker": 2}, "train-chief-0"),
        ("TFJob", "tfReplicaSpecs", {"PS": 1, "Worker": 3}, "train-worker-0"),
        ("XGBoostJob", "xgbReplicaSpecs", {"Master": 1, "Worker": 3}, "train-master-0"),
        ("PaddleJob", "paddleReplicaSpecs", {"Master": 1, "Worker": 3}, "train-master-0"),
        ("JAXJob", "jaxReplicaSpecs", {"Worker": 4}, "train-worker-0"),
    ],
)
def test_other_training_jobs_are_gangs_of_all_their_pods(kind: str, field: str, counts: dict[str, int], leader: str) -> None:
    spec: dict[str, Any] = {field: replicas(**counts)}
    made = submit(owner(KUBEFLOW, kind, **spec))
    assert made.names == [f"train-{role.lower()}-{number}" for role, count in counts.items() for number in range(count)]
    leaders = [name for name, pod in made.pods.items() if pod["metadata"]["labels"].get(f"{TRAINING}/job-role") == "master"]
    assert leaders == [leader]
    assert made.minima == {"pg-train": 4}


def test_a_restart_by_exit_code_is_the_operators_own() -> None:
    job = owner(KUBEFLOW, "TFJob", tfReplicaSpecs={"Worker": {"restartPolicy": "ExitCode", "template": template()}})
    assert submit(job).pods["train-worker-0"]["spec"]["restartPolicy"] == "Never"


def test_a_suspended_training_job_has_no_pods() -> None:
    made = submit(owner(KUBEFLOW, "PyTorchJob", pytorchReplicaSpecs=replicas(Worker=1), runPolicy={"suspend": True}))
    assert made.names == []
    assert "is suspended" in made.found.problems[0]


def test_a_scheduling_policy_that_only_the_operators_own_groups_have_is_named() -> None:
    policy = {"schedulingPolicy": {"minAvailable": 2, "queue": "research"}}
    made = submit(owner(KUBEFLOW, "PyTorchJob", pytorchReplicaSpecs=replicas(Worker=3), runPolicy=policy))
    assert made.minima == {"pg-train": 2}
    assert "spec.runPolicy.schedulingPolicy: queue: without effect here" in made.found.problems[0]


def test_an_mpi_job_of_the_training_operator_has_a_launcher_pod() -> None:
    made = submit(owner(KUBEFLOW, "MPIJob", mpiReplicaSpecs=replicas(Launcher=1, Worker=2)))
    assert made.names == ["train-worker-0", "train-worker-1", "train-launcher"]
    assert made.label(f"{TRAINING}/replica-type") == ["worker", "worker", "launcher"]
    assert made.label(f"{TRAINING}/job-role") == ["", "", "master"]
    assert container(made.pods["train-launcher"], "kubectl-delivery")["resources"]["requests"]["ephemeral-storage"] == "5Gi"
    assert made.minima == {"pg-train": 3}


def test_an_mpi_job_of_the_mpi_operator_has_a_launcher_job() -> None:
    made = submit(owner("kubeflow.org/v2beta1", "MPIJob", mpiReplicaSpecs=replicas(Launcher=1, Worker=2)))
    assert made.names == ["train-worker-0", "train-worker-1", "train-launcher-00000"]
    assert made.of("Job")[0]["metadata"]["name"] == "train-launcher"
    assert made.label(f"{TRAINING}/job-role") == ["worker", "worker", "launcher"]
    assert made.minima == {"pg-train": 3}


def test_a_launcher_that_waits_for_workers_comes_later() -> None:
    spec: dict[str, Any] = {"mpiReplicaSpecs": replicas(Launcher=1, Worker=2), "launcherCreationPolicy": "WaitForWorkersReady"}
    made = submit(owner("kubeflow.org/v2beta1", "MPIJob", **spec))
    assert made.names == ["train-worker-0", "train-worker-1"]
    assert made.minima == {"pg-train": 2}
    assert made.found.problems == ["MPIJob ml/train: its launcher is made once all workers are ready"]


@pytest.mark.parametrize("api_version", ["kubeflow.org/v1", "kubeflow.org/v2beta1"])
def test_workers_of_an_mpi_job_without_a_number_are_none(api_version: str) -> None:
    specs = {"Launcher": {"template": template()}, "Worker": {"template": template()}}
    made = submit(owner(api_version, "MPIJob", mpiReplicaSpecs=specs))
    assert len(made.names) == 1
    assert made.minima == {"pg-train": 1}


def test_the_first_worker_leads_a_pytorch_job_without_a_master() -> None:
    made = submit(owner(KUBEFLOW, "PyTorchJob", pytorchReplicaSpecs=replicas(Worker=2)))
    assert made.label(f"{TRAINING}/job-role") == ["master", ""]


def test_a_notebook_is_a_stateful_set_of_one() -> None:
    made = submit(owner(KUBEFLOW, "Notebook", "note", template=template()))
    assert made.names == ["note-0"]
    assert made.label("notebook-name") == ["note"]


# --- Ray -----------------------------------------------------------------------------------------------------------------


def ray_spec(**more: Any) -> dict[str, Any]:
    groups = [
        {"groupName": "small", "replicas": 2, "template": template()},
        {"groupName": "large", "replicas": 1, "numOfHosts": 2, "template": template()},
        {"groupName": "off", "replicas": 3, "suspend": True, "template": template()},
    ]
    return {"headGroupSpec": {"template": template(gpus=0)}, "workerGroupSpecs": groups, **more}


def test_a_ray_cluster_is_a_gang_of_head_and_workers() -> None:
    made = submit(owner("ray.io/v1", "RayCluster", **ray_spec()))
    heads, small, large = ["train-head-00000"], "train-small-worker-0000", "train-large-worker-0000"
    assert made.names == [*heads, f"{small}0", f"{small}1", f"{large}0", f"{large}1"]
    assert made.label(f"{RAY}/group") == ["headgroup", "small", "small", "large", "large"]
    assert made.label(f"{RAY}/node-type") == ["head", "worker", "worker", "worker", "worker"]
    assert made.minima == {"pg-train": 5}
    assert container(made.pods[f"{small}0"], "wait-gcs-ready")["resources"]["limits"] == {"cpu": "200m", "memory": "256Mi"}


@pytest.mark.parametrize(
    ("bounds", "pods"),
    [
        ({"minReplicas": 2}, 2),
        ({"replicas": 5, "maxReplicas": 3}, 3),
        ({"replicas": 1, "minReplicas": 2, "maxReplicas": 4}, 2),
        ({"minReplicas": 5, "maxReplicas": 3}, 3),
        ({}, 0),
    ],
)
def test_rays_operator_keeps_replicas_between_their_bounds(bounds: dict[str, int], pods: int) -> None:
    groups = [{"groupName": "g", "template": template(), **bounds}]
    made = submit(owner("ray.io/v1", "RayCluster", headGroupSpec={"template": template()}, workerGroupSpecs=groups))
    assert len(made.names) == 1 + pods
    assert made.minima == {"pg-train": 1 + pods}


def test_the_head_of_a_ray_cluster_that_scales_itself_has_one_more_container() -> None:
    made = submit(owner("ray.io/v1", "RayCluster", **ray_spec(enableInTreeAutoscaling=True)))
    assert container(made.pods["train-head-00000"], "autoscaler")["resources"]["requests"]["cpu"] == "500m"
    options = {"resources": {"limits": {"cpu": "2"}}}
    other = submit(owner("ray.io/v1", "RayCluster", **ray_spec(enableInTreeAutoscaling=True, autoscalerOptions=options)))
    assert container(other.pods["train-head-00000"], "autoscaler")["resources"]["limits"] == {"cpu": "2"}


@pytest.mark.parametrize(("kind", "field"), [("RayJob", "rayClusterSpec"), ("RayService", "rayClusterConfig")])
def test_a_ray_job_or_service_has_a_ray_cluster(kind: str, field: str) -> None:
    spec: dict[str, Any] = {field: ray_spec()}
    made = submit(owner("ray.io/v1", kind, **spec))
    assert made.of("RayCluster")[0]["metadata"]["name"] == "train-00000"
    assert len(made.names) == 5
    assert made.minima == {"pg-train": 5}


def test_a_ray_job_says_that_its_submitter_comes_later() -> None:
    made = submit(owner("ray.io/v1", "RayJob", rayClusterSpec=ray_spec()))
    assert made.found.problems == ["RayJob ml/train: the pod that submits its work is made once the cluster is ready"]
    without = submit(owner("ray.io/v1", "RayJob", rayClusterSpec=ray_spec(), submissionMode="HTTPMode"))
    assert without.found.problems == []


def test_a_ray_job_on_a_cluster_that_exists_makes_no_pods() -> None:
    assert submit(owner("ray.io/v1", "RayJob", clusterSelector={"ray.io/cluster": "shared"})).names == []


# --- sets of sets --------------------------------------------------------------------------------------------------------


def job_set(**more: Any) -> dict[str, Any]:
    jobs = [
        {"name": "driver", "template": {"spec": {"template": template()}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2, "completions": 2, "template": template()}}},
    ]
    return owner("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs, **more)


def test_a_job_set_is_one_gang_of_the_pods_of_its_jobs() -> None:
    made = submit(job_set())
    assert [job["metadata"]["name"] for job in made.of("Job")] == ["train-driver-0", "train-workers-0", "train-workers-1"]
    assert made.names == [
        "train-driver-0-0-00000", "train-workers-0-0-00000", "train-workers-0-1-00000",
        "train-workers-1-0-00000", "train-workers-1-1-00000",
    ]  # fmt: skip
    assert made.label("jobset.sigs.k8s.io/replicatedjob-name") == ["driver", *["workers"] * 4]
    assert made.minima == {"pg-train": 5}, "its webhook writes that jobs start in any order"


def test_a_job_set_in_order_begins_with_its_first_jobs() -> None:
    made = submit(job_set(startupPolicy={"startupPolicyOrder": "InOrder"}))
    assert made.names == ["train-driver-0-0-00000"]
    assert list(made.minima.values()) == [1]
    assert "the jobs workers are made later" in made.found.problems[0]


def test_jobs_of_a_job_set_that_depend_on_others_come_later() -> None:
    found = job_set()
    found["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "driver", "status": "Ready"}]
    assert submit(found).names == ["train-driver-0-0-00000"]


def affinities(pod: Document) -> list[tuple[str, str, list[str]]]:
    found = pod["spec"]["affinity"]
    rules = [
        (name, found[name]["requiredDuringSchedulingIgnoredDuringExecution"][0]) for name in ("podAffinity", "podAntiAffinity")
    ]
    return [
        (name, rule["topologyKey"], [item["operator"] for item in rule["labelSelector"]["matchExpressions"]])
        for name, rule in rules
    ]


def test_of_jobs_that_are_alone_in_their_domains_the_first_pods_come_first() -> None:
    found = job_set()
    found["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    made = submit(found)
    assert made.names == ["train-driver-0-0-00000", "train-workers-0-0-00000", "train-workers-1-0-00000"]
    (together, apart) = affinities(made.pods["train-workers-1-0-00000"])
    assert together == ("podAffinity", "rack", ["In"])
    assert apart == ("podAntiAffinity", "rack", ["Exists", "NotIn", "In"]), "those of its priority stay out"
    assert "the other pods of each job are made once its first one has a node" in made.found.problems[0]
    assert made.minima == {"pg-train": 5}, "so that the gang waits for ever, as it would on a cluster"


def leader_worker_set(**more: Any) -> dict[str, Any]:
    parts = {"size": 3, "leaderTemplate": template({"role": "leader"}), "workerTemplate": template()}
    return owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llama", replicas=2, leaderWorkerTemplate=parts, **more)


def test_each_replica_of_a_leader_worker_set_is_a_gang() -> None:
    made = submit(leader_worker_set())
    assert sorted(made.names) == ["llama-0", "llama-0-1", "llama-0-2", "llama-1", "llama-1-1", "llama-1-2"]
    indices = {name: pod["metadata"]["labels"][f"{LWS}/worker-index"] for name, pod in made.pods.items()}
    assert indices["llama-1"] == "0"
    assert indices["llama-1-2"] == "2"
    assert made.pods["llama-1-2"]["metadata"]["labels"][f"{LWS}/group-index"] == "1"
    assert [group["spec"]["minMember"] for group in made.of("PodGroup")] == [3, 3]
    assert len(made.found.gangs) == 2


def test_workers_that_wait_for_their_leader_come_later() -> None:
    made = submit(leader_worker_set(startupPolicy="LeaderReady"))
    assert made.names == ["llama-0", "llama-1"]
    assert [group["spec"]["minMember"] for group in made.of("PodGroup")] == [1, 1]
    assert "the workers of each replica are made once its leader is ready" in made.found.problems[0]


def test_of_replicas_that_are_alone_in_their_domains_the_leaders_come_first() -> None:
    found = leader_worker_set()
    found["metadata"]["annotations"] = {f"{LWS}/exclusive-topology": "rack"}
    made = submit(found)
    assert made.names == ["llama-0", "llama-1"]
    assert [name for name, _, _ in affinities(made.pods["llama-0"])] == ["podAffinity", "podAntiAffinity"]
    assert "the workers of each replica are made once its leader has a node" in made.found.problems[0]


def test_a_leader_worker_set_has_one_pod_by_default() -> None:
    bare = owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", leaderWorkerTemplate={"workerTemplate": template()})
    made = submit(bare)
    assert made.names == ["train-0"]
    assert [group["spec"]["minMember"] for group in made.of("PodGroup")] == [1]


# --- Spark and others ----------------------------------------------------------------------------------------------------


def spark(**driver: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": "Python", "driver": {"schedulerName": "phalanx", **driver}, "executor": {"instances": 4}}
    return owner("sparkoperator.k8s.io/v1beta2", "SparkApplication", "pi", **spec)


def test_a_spark_application_begins_with_its_driver() -> None:
    made = submit(spark(cores=2, memory="1g", nodeSelector={"disk": "ssd"}, gpu={"name": "nvidia.com/gpu", "quantity": 1}))
    assert made.names == ["pi-driver"]
    pod = made.pods["pi-driver"]
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    requests = container(pod, "spark-kubernetes-driver")["resources"]["requests"]
    assert requests == {"cpu": "2", "memory": "1433Mi", "nvidia.com/gpu": "1"}, "a Python driver has 40 % overhead"
    assert made.found.problems == ["SparkApplication ml/pi: its 4 executors are made by the driver once it runs"]


@pytest.mark.parametrize(("memory", "asked"), [("512m", "896Mi"), (None, "1433Mi"), ("10g", "14336Mi")])
def test_the_memory_of_a_driver_is_its_heap_and_an_overhead(memory: str | None, asked: str) -> None:
    made = submit(spark(**({"memory": memory} if memory else {})))
    assert container(made.pods["pi-driver"], "spark-kubernetes-driver")["resources"]["limits"]["memory"] == asked


def test_memory_that_is_no_amount_is_named() -> None:
    assert submit(spark(memory="much")).found.problems == [
        "SparkApplication ml/pi: 'much' is no amount of memory; write for example '512m'"
    ]


@pytest.mark.parametrize(
    ("api_version", "kind"), [("trainer.kubeflow.org/v1alpha1", "TrainJob"), ("argoproj.io/v1alpha1", "Workflow")]
)
def test_a_kind_whose_pods_are_not_known_is_named(api_version: str, kind: str) -> None:
    made = submit(owner(api_version, kind))
    assert made.found.problems == [f"{kind} ml/train: which pods are made of it is not known here; try with pods like its own"]


def test_a_kind_that_nobody_knows_is_named() -> None:
    text = "Thing ml/train: a kind that is not known here"
    made = submit(owner("x.io/v1", "Thing", a=[{"template": template()}]))
    assert made.found.problems == [f"{text}; the pods that it makes are left out"]
    assert submit(owner("x.io/v1", "Thing", a=1)).found.problems == [f"{text}; it is left out"]


def test_a_template_without_containers_is_named() -> None:
    made = submit(owner("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": {"template": {"spec": {}}}}))
    assert made.found.problems == ["PyTorchJob ml/train: its pod template has no containers; write at least one"]


def test_every_stand_in_is_for_a_kind_whose_pods_are_made_elsewhere() -> None:
    known = {(kind.group, kind.kind) for kind in MADE_ELSEWHERE} | {("batch.volcano.sh", "CronJob")}
    assert set(STAND_INS) <= known


def test_groups_are_written_in_the_dialect_of_the_settings() -> None:
    settings = ControllerSettings(grouper=GrouperSettings(dialect="volcano"))
    made = submit(owner(KUBEFLOW, "PyTorchJob", pytorchReplicaSpecs=replicas(Master=1, Worker=1)), settings=settings)
    (group,) = made.of("PodGroup")
    assert group["apiVersion"].startswith("scheduling.volcano.sh/")
    assert group["spec"]["minTaskMember"] == {"master": 1, "worker": 1}
