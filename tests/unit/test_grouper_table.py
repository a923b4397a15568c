"""The table of owners, line by line, with documents in the shape of each API."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from phalanx.controllers.grouper.rules import RULES
from phalanx.controllers.grouper.settings import GrouperSettings
from phalanx.controllers.objects import labels_of, meta_of
from phalanx.dialects.group_references import KAI_GROUP
from phalanx.dialects.kai_subgroups import SUBGROUP
from phalanx.model.kinds import POD, Document
from tests.support import owned_pods as workloads
from tests.support.owned_pods import owner, pod

TRAINING, JOBSET, LWS = "training.kubeflow.org", "jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io"
TORCH, MPI, RAY = "pg-train-pytorchjob-train", "pg-train-mpijob-train", "pg-train-raycluster-train"


@dataclass(frozen=True)
class Line:
    """Objects, the pod that is looked at, and the group it must get."""

    title: str
    documents: Sequence[Document]
    name: str
    minimum: int = 1
    parts: list[Any] | None = None
    part: str = ""
    priority: str = "train"
    more: dict[str, Any] = field(default_factory=dict)
    settings: GrouperSettings | None = None


def role(name: str, index: int = 0) -> dict[str, str]:
    return {f"{TRAINING}/replica-type": name, f"{TRAINING}/replica-index": str(index)}


def training(kind: str, replicas: Any, field_name: str, **spec: Any) -> dict[str, Any]:
    return owner(
        "kubeflow.org/v1", kind, spec={field_name: {name: {"replicas": count} for name, count in replicas.items()}, **spec}
    )


def ordinary() -> list[Line]:
    job = owner("batch/v1", "Job", spec={"parallelism": 4, "completions": 4})
    cron = owner("batch/v1", "CronJob", "nightly")
    spawned = owner("batch/v1", "Job", "nightly-1", by=cron)
    deployment = owner("apps/v1", "Deployment", "web")
    replicas = owner("apps/v1", "ReplicaSet", "web-1", by=deployment)
    spark = {"spark-app-name": "pi", "spark-app-selector": "spark-1234"}
    return [
        Line("a bare pod", [pod()], "pg-train-0-train-0"),
        Line("a Spark pod", [pod(labels=spark)], "spark-1234"),
        Line("a Job", [job, pod(by=job)], "pg-train-0-train-0"),
        Line("a CronJob", [cron, spawned, pod(by=spawned)], "pg-nightly-1-job-nightly-1"),
        Line("a Deployment", [deployment, replicas, pod(by=replicas)], "pg-train-0-train-0", priority="inference"),
    ]  # fmt: skip


def single() -> list[Line]:
    kinds = [
        ("apps/v1", "StatefulSet", "train"), ("apps/v1", "ReplicaSet", "train"), ("apps/v1", "DaemonSet", "train"),
        ("machinelearning.seldon.io/v1", "SeldonDeployment", "train"), ("kubevirt.io/v1", "VirtualMachineInstance", "train"),
        ("kubevirt.io/v1", "VirtualMachine", "train"), ("tekton.dev/v1", "TaskRun", "train"),
        ("tekton.dev/v1", "PipelineRun", "train"),
        ("kubeflow.org/v1beta1", "ScheduledWorkflow", "train"), ("workspace.devfile.io/v1alpha2", "DevWorkspace", "train"),
        ("sparkoperator.k8s.io/v1beta2", "SparkApplication", "train"), ("kubeflow.org/v1", "Notebook", "build"),
        ("egx.nvidia.io/v1", "SPOTRequest", "inference"),
    ]  # fmt: skip
    lines = []
    for version, kind, priority in kinds:
        found = owner(version, kind)
        lines.append(Line(f"a {kind}", [found, pod(by=found)], f"pg-train-{kind.lower()}-train", priority=priority))
    return lines


def kubeflow() -> list[Line]:
    tf = training("TFJob", {"Chief": 1, "PS": 2, "Worker": 4}, "tfReplicaSpecs")
    policy = {"schedulingPolicy": {"minAvailable": 3}}
    xgb = training("XGBoostJob", {"Master": 1, "Worker": 4}, "xgbReplicaSpecs", runPolicy=policy)
    jax = training("JAXJob", {"Worker": 5}, "jaxReplicaSpecs")
    paddle = training("PaddleJob", {"Worker": 2}, "paddleReplicaSpecs")
    torch = training("PyTorchJob", {"Master": 1, "Worker": 3}, "pytorchReplicaSpecs")
    elastic = training("PyTorchJob", {"Worker": 8}, "pytorchReplicaSpecs", elasticPolicy={"minReplicas": 2, "maxReplicas": 8})
    least = training(
        "PyTorchJob", {"Master": 1, "Worker": 8}, "pytorchReplicaSpecs", elasticPolicy={"minReplicas": 2}, runPolicy=policy
    )
    both = [{"name": "master", "minMember": 1}, {"name": "worker", "minMember": 3}]
    return [
        Line("a TFJob", [tf, pod(by=tf, labels=role("ps"))], "pg-train-tfjob-train", 7),
        Line("an XGBoostJob with minAvailable", [xgb, pod(by=xgb, labels=role("worker"))], "pg-train-xgboostjob-train", 3),
        Line("a JAXJob", [jax, pod(by=jax, labels=role("worker"))], "pg-train-jaxjob-train", 5),
        Line("a PaddleJob", [paddle, pod(by=paddle, labels=role("worker"))], "pg-train-paddlejob-train", 2),
        Line("the master of a PyTorchJob", [torch, pod(by=torch, labels=role("master"))], TORCH, 4, both, "master"),
        Line("a worker of a PyTorchJob", [torch, pod(by=torch, labels=role("worker", 2))], TORCH, 4, both, "worker"),
        Line(
            "an elastic PyTorchJob", [elastic, pod(by=elastic, labels=role("worker"))], TORCH, 2,
            [{"name": "worker", "minMember": 2}], "worker",
        ),
        Line(
            "a PyTorchJob with minAvailable and elasticPolicy", [least, pod(by=least, labels=role("worker"))], TORCH,
            3, [{"name": "master", "minMember": 1}, {"name": "worker", "minMember": 2}], "worker",
        ),
        segmented(),
        *mpi(),
    ]  # fmt: skip


def segmented() -> Line:
    annotations = {
        "kai.scheduler/segment-size": "2", "kai.scheduler/topology": "racks",
        "kai.scheduler/segment-topology-required-placement": "rack",
    }  # fmt: skip
    worker = {"replicas": 5, "template": {"metadata": {"annotations": annotations}}}
    specs = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": worker}}
    whole = {"kai.scheduler/topology": "racks", "kai.scheduler/topology-preferred-placement": "block"}
    torch = owner("kubeflow.org/v1", "PyTorchJob", spec=specs, annotations=whole)
    rack = {"topology": "racks", "requiredTopologyLevel": "rack"}
    sizes = enumerate((2, 2, 1))
    segments = [{"name": f"worker-{at}", "minMember": size, "parent": "worker", "topologyConstraint": rack} for at, size in sizes]
    parts = [{"name": "master", "minMember": 1}, {"name": "worker"}, *segments]
    more = {"topologyConstraint": {"topology": "racks", "preferredTopologyLevel": "block"}}
    documents = [torch, pod(by=torch, labels=role("worker", 4))]
    return Line("a PyTorchJob in segments", documents, TORCH, 6, parts, "worker-2", more=more)


def mpi() -> list[Line]:
    job = training("MPIJob", {"Launcher": 1, "Worker": 4}, "mpiReplicaSpecs")
    late = training("MPIJob", {"Launcher": 1, "Worker": 4}, "mpiReplicaSpecs", launcherCreationPolicy="WaitForWorkersReady")
    worker = {f"{TRAINING}/job-role": "worker"}
    launching = owner("batch/v1", "Job", "train-launcher", by=late)
    launcher = pod("train-launcher-x", by=launching, labels={f"{TRAINING}/job-role": "launcher"})
    alone = training("MPIJob", {"Launcher": 1}, "mpiReplicaSpecs")
    without = training("MPIJob", {"Launcher": 1, "Worker": 0}, "mpiReplicaSpecs", launcherCreationPolicy="WaitForWorkersReady")
    return [
        Line("an MPIJob of a launcher alone", [alone, pod(by=alone, labels={f"{TRAINING}/job-role": "launcher"})], MPI, 1),
        Line("an MPIJob that waits for no workers", [without, pod(by=without)], MPI, 1),
        Line("an MPIJob", [job, pod(by=job, labels=worker)], MPI, 5),
        Line("an MPIJob whose launcher waits", [late, pod(by=late, labels=worker)], MPI, 4),
        Line(
            "an MPIJob whose launcher has come", [late, launching, launcher, pod(by=late, labels=worker)], MPI, 5
        ),
    ]  # fmt: skip


def ray() -> list[Line]:
    level = {"kai.scheduler/topology": "racks", "kai.scheduler/topology-required-placement": "rack"}
    groups = [
        {"groupName": "small", "replicas": 4, "minReplicas": 2, "template": {"metadata": {"annotations": level}}},
        {"groupName": "big", "replicas": 2, "numOfHosts": 4},
        {"groupName": "off", "replicas": 3, "suspend": True},
        {"groupName": "none", "replicas": 0},
    ]
    spec = {"headGroupSpec": {"template": {}}, "workerGroupSpecs": groups}
    cluster = owner("ray.io/v1", "RayCluster", spec=spec, labels={"ray.io/priority-class-name": "urgent"})
    worker = {"ray.io/group": "big", "ray.io/node-type": "worker"}
    parts = [
        {"name": "headgroup", "minMember": 1},
        {"name": "small", "minMember": 2, "topologyConstraint": {"topology": "racks", "requiredTopologyLevel": "rack"}},
        {"name": "big", "minMember": 8},
    ]
    lines = [Line("a RayCluster", [cluster, pod(by=cluster, labels=worker)], RAY, 11, parts, "big", "urgent")]
    statuses = {
        "RayJob": {"rayClusterName": "made"}, "RayService": {"activeServiceStatus": {"rayClusterName": "made"}},
    }  # fmt: skip
    for kind, status in statuses.items():
        top = owner("ray.io/v1", kind, status=status)
        made = owner("ray.io/v1", "RayCluster", "made", spec=spec, by=top)
        head = pod(by=made, labels={"ray.io/group": "headgroup", "ray.io/node-type": "head"})
        lines.append(Line(f"a {kind}", [top, made, head], f"pg-train-{kind.lower()}-train", 11, parts, "headgroup"))
    return [*lines, *ray_bounds(), *ray_cleanup()]


def ray_bounds() -> list[Line]:
    """Numbers of workers as Ray's operator makes them: never fewer than the least, never more than the most."""
    bounds: list[tuple[str, dict[str, int], int]] = [
        ("minReplicas alone", {"minReplicas": 2, "maxReplicas": 5}, 2),
        ("fewer replicas than minReplicas", {"replicas": 1, "minReplicas": 2, "maxReplicas": 5}, 2),
        ("more replicas than maxReplicas", {"replicas": 5, "minReplicas": 0, "maxReplicas": 3}, 3),
        ("more replicas than maxReplicas, on several hosts", {"replicas": 5, "maxReplicas": 3, "numOfHosts": 2}, 6),
        ("no more than maxReplicas: 0", {"replicas": 5, "maxReplicas": 0}, 0),
    ]
    lines = []
    for title, numbers, workers in bounds:
        cluster = owner("ray.io/v1", "RayCluster", spec={"workerGroupSpecs": [{"groupName": "gpu", **numbers}]})
        parts = [{"name": "headgroup", "minMember": 1}, *([{"name": "gpu", "minMember": workers}] if workers else [])]
        member = pod(by=cluster, labels={"ray.io/group": "headgroup"})
        lines.append(Line(f"a RayCluster: {title}", [cluster, member], RAY, 1 + workers, parts, "headgroup"))
    return lines


def ray_cleanup() -> list[Line]:
    """The pod that empties Redis once the pods of a deleted cluster have gone; its labels are those of the head."""
    groups = [{"groupName": "gpu", "replicas": 2}]
    labels = {"ray.io/group": "headgroup", "ray.io/node-type": "redis-cleanup"}
    lines = []
    for title, annotations in (("", {}), (" with a size of its own", {"phalanx.dev/min-member": "3"})):
        cluster = owner("ray.io/v1", "RayCluster", spec={"workerGroupSpecs": groups}, annotations=annotations)
        job = owner("batch/v1", "Job", "train-redis-cleanup", by=cluster)
        name = f"the clean-up pod of a RayCluster{title}"
        lines.append(Line(name, [cluster, job, pod("clean-x", by=job, labels=labels)], "pg-clean-x-clean-x"))
    return lines


def job_sets() -> list[Line]:
    def made(depends_on: Any = None, **spec: Any) -> list[Document]:
        jobs: list[dict[str, Any]] = [
            {"name": "driver", "replicas": 1, "template": {"spec": {"parallelism": 1, "completions": 1}}},
            {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 8, "completions": 4}}},
        ]
        jobs[1] |= {"dependsOn": depends_on} if depends_on else {}
        top = owner("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": jobs, **spec})
        job = owner("batch/v1", "Job", "train-workers-0", by=top)
        return [top, job, pod(by=job, labels={f"{JOBSET}/replicatedjob-name": "workers"})]

    top = owner("trainer.kubeflow.org/v1alpha1", "TrainJob", labels={"kai.scheduler/queue": "research"})
    below = made()
    below[0]["metadata"]["ownerReferences"] = pod(by=top)["metadata"]["ownerReferences"]
    any_order = {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}
    return [
        Line("a JobSet in order", made(), "pg-train-jobset-train-workers", 8),
        Line("a JobSet in any order", made(**any_order), "pg-train-jobset-train", 9),
        Line(
            "a JobSet with a job that depends on another", made([{"name": "driver", "status": "Ready"}], **any_order),
            "pg-train-jobset-train-workers", 8,
        ),
        Line("a TrainJob", [top, *below], "pg-train-jobset-train-workers", 8, more={"queue": "research"}),
    ]  # fmt: skip


def leader_worker_sets() -> list[Line]:
    def made(worker: int, *, node: str = "", size: int = 4, **spec: Any) -> list[Document]:
        template = {"size": size, "workerTemplate": {"spec": {}}, **spec.pop("template", {})}
        top = owner(
            "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec={"replicas": 2, "leaderWorkerTemplate": template, **spec}
        )
        leaders = owner("apps/v1", "StatefulSet", by=top)
        labels = {f"{LWS}/name": "train", f"{LWS}/group-index": "0"}
        leader = pod(by=leaders, labels={**labels, f"{LWS}/worker-index": "0"})
        if node:
            leader["spec"]["nodeName"] = node
        if not worker:
            return [top, leaders, leader]
        workers = owner("apps/v1", "StatefulSet", "train-0", by=leader)
        return [top, leaders, leader, workers, pod("seen", by=workers, labels={**labels, f"{LWS}/worker-index": str(worker)})]

    name, two = "pg-train-leaderworkerset-train-group-0", {"subGroupPolicy": {"subGroupSize": 2}}
    parts = [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": 3}]
    inner = [{"name": "leader", "minMember": 1, "parent": "segment-0"}, {"name": "workers", "minMember": 1, "parent": "segment-0"}]
    halves = [{"name": "segment-0"}, {"name": "segment-1", "minMember": 2}, *inner]
    extra = [{"name": "leader", "minMember": 1, "parent": "segment-0"}, {"name": "workers", "minMember": 2, "parent": "segment-0"}]
    apart = {"subGroupPolicy": {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}}
    pairs = [{"name": "segment-0", "minMember": 2}, {"name": "segment-1", "minMember": 2}]
    half = {"subGroupPolicy": {"subGroupSize": 2**30}}
    billions = [
        {"name": "segment-0"}, {"name": "segment-1", "minMember": 2**30 - 1}, inner[0],
        {"name": "workers", "minMember": 2**30 - 1, "parent": "segment-0"},
    ]  # fmt: skip
    return [
        Line("the leader of a LeaderWorkerSet", made(0), name, 4, parts, "leader"),
        Line("a worker of a LeaderWorkerSet", made(2), name, 4, parts, "workers"),
        Line("a leader that must be ready first", made(0, startupPolicy="LeaderReady"), name, 1, parts[:1], "leader"),
        Line("workers of a leader that is", made(1, startupPolicy="LeaderReady", node="n1"), name, 4, parts, "workers"),
        Line("segments of a LeaderWorkerSet", made(3, template=two), name, 4, halves, "segment-1"),
        Line("segments of billions", made(3, template=half, size=2**31 - 1), name, 2**31 - 1, billions, "workers"),
        Line("the first segment", made(1, template=two), name, 4, halves, "workers"),
        Line(
            "a leader that is one more", made(2, template=two, size=5), name, 5,
            [{"name": "segment-0"}, pairs[1], *extra], "workers",
        ),
        Line(
            "a leader apart", made(3, template=apart, size=5), name, 5, [{"name": "leader", "minMember": 1}, *pairs], "segment-1"
        ),
    ]  # fmt: skip


def grove() -> list[Line]:
    rack = {"packConstraint": {"required": "rack"}}
    groups = [
        {"name": "decode", "minReplicas": 2, "podReferences": [{"namespace": "default", "name": "train-0"}]},
        {"name": "prefill", "minReplicas": 4, "podReferences": [], "topologyConstraint": {"packConstraint": {"preferred": "host"}}},
        {"name": "router", "minReplicas": 1, "podReferences": []},
    ]
    configs = [{"name": "model", "podGroupNames": ["decode", "prefill"], "topologyConstraint": rack}]
    spec = {"podgroups": groups, "topologyConstraintGroupConfigs": configs, "priorityClassName": "inference"}
    lines = []
    for kind in ("PodCliqueSet", "PodGangSet"):
        top = owner("grove.io/v1alpha1", kind, labels={"kai.scheduler/queue": "serving"})
        clique = owner("grove.io/v1alpha1", "PodClique", "decode", by=top)
        gang = owner(
            "scheduler.grove.io/v1alpha1", "PodGang", "gang", spec=spec, by=top, annotations={"grove.io/topology-name": "racks"}
        )
        parts = [
            {"name": "model", "topologyConstraint": {"topology": "racks", "requiredTopologyLevel": "rack"}},
            {"name": "decode", "minMember": 2, "parent": "model"},
            {"name": "prefill", "minMember": 4, "parent": "model",
             "topologyConstraint": {"topology": "racks", "preferredTopologyLevel": "host"}},
            {"name": "router", "minMember": 1},
        ]  # fmt: skip
        documents = [top, clique, gang, pod(by=clique, labels={"grove.io/podgang": "gang"})]
        more = {"queue": "serving"}
        lines.append(Line(f"a {kind}", documents, "pg-gang-podgang-gang", 7, parts, "decode", "inference", more))
    return lines


def serving() -> list[Line]:
    top = owner("serving.knative.dev/v1", "Service", "model")
    configuration = owner("serving.knative.dev/v1", "Configuration", "model", by=top)
    revision = owner(
        "serving.knative.dev/v1", "Revision", "model-1", by=configuration, annotations={"autoscaling.knative.dev/min-scale": "3"}
    )
    deployment = owner("apps/v1", "Deployment", "model-1", by=revision)
    replicas = owner("apps/v1", "ReplicaSet", "model-1-a", by=deployment)
    member = pod(by=replicas, labels={"serving.knative.dev/revision": "model-1"})
    documents = [top, configuration, revision, deployment, replicas, member]
    alone = GrouperSettings(knative_gangs=False)
    return [
        Line("a Knative Service", documents, "pg-model-1-revision-model-1", 3, priority="inference"),
        Line("a Knative Service without gangs", documents, "pg-train-0-train-0", priority="inference", settings=alone),
    ]


def others() -> list[Line]:
    aml = owner("amlarc.azureml.com/v1alpha1", "AmlJob", spec={"job": {"options": {"envs": {"AZUREML_NODE_COUNT": 6}}}})
    runai = owner("run.ai/v1", "RunaiJob")
    workflow = owner("argoproj.io/v1alpha1", "Workflow", labels={"kai.scheduler/queue": "pipelines"})
    dynamo = owner("nvidia.com/v1alpha1", "DynamoGraphDeployment", annotations={"team": "serving"})
    below = owner("apps/v1", "StatefulSet", by=dynamo)
    training_workload = owner("run.ai/v2alpha1", "TrainingWorkload", labels={"kai.scheduler/queue": "ours"})
    inner = owner("batch/v1", "Job", by=training_workload)
    custom = {"apiVersion": "example.com/v1", "kind": "Simulation", "metadata": {"name": "wind", "uid": "w1"}}
    return [
        Line("an AmlJob", [aml, pod(by=aml)], "pg-train-amljob-train", 6),
        Line("a RunaiJob", [runai, pod("seen-a-7", by=runai)], "pg-seen-a-runaijob-train"),
        Line("an Argo Workflow", [workflow, pod(by=workflow)], "pg-train-0-train-0", more={"queue": "pipelines"}),
        Line("a DynamoGraphDeployment", [dynamo, below, pod(by=below)], "pg-train-statefulset-train"),
        Line("a workload of run.ai", [training_workload, inner, pod(by=inner)], "pg-train-0-train-0", more={"queue": "ours"}),
        Line("a kind that nobody knows", [pod(by=custom)], "pg-wind-w1"),
    ]


LINES = [
    *ordinary(), *single(), *kubeflow(), *ray(), *job_sets(), *leader_worker_sets(), *grove(), *serving(), *others(),
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.title)
def test_pods_of_an_owner_get_the_group_of_its_line(line: Line) -> None:
    store, name = workloads.store(*line.documents), str(meta_of(line.documents[-1])["name"])
    group = workloads.grouped(store, name, line.settings)
    spec = {"minMember": line.minimum, "queue": "default-queue", "priorityClassName": line.priority, **line.more}
    assert (group["metadata"]["name"], group["spec"]) == (line.name, {**spec, **({"subGroups": line.parts} if line.parts else {})})
    linked = store.get(POD, "default", name)
    assert linked["metadata"]["annotations"][KAI_GROUP] == line.name
    assert labels_of(linked).get(SUBGROUP, "") == line.part


def test_every_kind_of_the_table_has_a_line() -> None:
    tried = {(document["apiVersion"].rpartition("/")[0], document["kind"]) for line in LINES for document in line.documents}
    assert [pair for rule in RULES for pair in rule.kinds if pair not in tried] == []
