"""Objects as operators write them, in the order in which they do, on a real control plane."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.model.kinds import Document
from tests.support import operator_workloads as owners
from tests.support.live_site import Site
from tests.support.played_operator import LANE, PlayedOperator
from tests.support.store_contract import eventually

pytestmark = pytest.mark.xdist_group("controlplane")
NEEDED = frozenset({"PyTorchJob", "MPIJob", "RayCluster", "JobSet", "LeaderWorkerSet"})
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VOLCANO, COSCHEDULING, KAI = "scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1", "scheduling.run.ai/v2alpha2"
JOBSET, LWS, RAY = "jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io", "ray.io"
GRACE = {"phalanx.dev/staleness-grace": "2s"}
BEYOND_SECONDS = 5.0
QUIET_SECONDS = 5.0
"""Longer than nothing is said of pods that come or go."""


@pytest.fixture(scope="module")
def kinds(plane: ControlPlane) -> Iterator[None]:
    found = [item for item in owners.definitions() if item["spec"]["names"]["kind"] in NEEDED]
    mpi = next(item for item in found if item["spec"]["names"]["kind"] == "MPIJob")
    mpi["spec"]["versions"][0]["name"] = "v2beta1"  # as the MPI operator serves it; the training operator serves v1
    names = [f"customresourcedefinition/{item['metadata']['name']}" for item in found]
    plane.apply(found)
    plane.kubectl("wait", "--for=condition=Established", *names, "--timeout=30s")
    yield
    plane.kubectl("delete", "--wait=true", *names)


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane, kinds: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with scheduling(plane, tmp_path_factory.mktemp("run"), "--scheduler-name=phalanx") as log:
        yield log


@pytest.fixture
def operator(plane: ControlPlane, site: Site, scheduler: Path) -> PlayedOperator:
    return PlayedOperator(plane, site)


def made(api_version: str, kind: str, name: str, spec: Any, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


# --- JobSet --------------------------------------------------------------------------------------------------------------


def job_set(operator: PlayedOperator, **workers: Any) -> dict[str, Any]:
    """Return a JobSet of a driver and three workers."""
    shapes = {"driver": (1, {}), "workers": (3, workers)}
    jobs = [
        {"name": role, "replicas": 1, "template": {"spec": {"parallelism": pods, "completions": pods}}, **more}
        for role, (pods, more) in shapes.items()
    ]
    spec = {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": "AnyOrder"}}
    return operator.create(made("jobset.x-k8s.io/v1alpha2", "JobSet", "train", spec))


def replicated(operator: PlayedOperator, top: Document, role: str, pods: int) -> dict[str, Any]:
    labels = {f"{JOBSET}/replicatedjob-name": role, f"{JOBSET}/jobset-name": "train"}
    return operator.job(f"train-{role}-0", top, pods, labels=labels)


def test_a_job_that_depends_on_another_is_created_when_that_runs(operator: PlayedOperator, site: Site) -> None:
    operator.add_nodes("gpu", 4)
    top = job_set(operator, dependsOn=[{"name": "driver", "status": "Ready"}])
    replicated(operator, top, "driver", 1)
    site.await_phases("train-driver", {"Running": 1})
    replicated(operator, top, "workers", 3)
    site.await_phases("train-workers", {"Running": 3})
    assert sorted(operator.gangs().values()) == [("Runs", 1), ("Runs", 3)]


def test_a_job_set_that_is_suspended_is_left_in_peace_and_starts_again(operator: PlayedOperator, site: Site) -> None:
    operator.add_nodes("gpu", 4)
    top = job_set(operator)
    jobs = [replicated(operator, top, "driver", 1), replicated(operator, top, "workers", 3)]
    site.await_phases("train", {"Running": 4})
    for job in jobs:
        operator.change(job, {"spec": {"suspend": True}})
        time.sleep(1.0)
    site.await_phases("train", {})
    time.sleep(QUIET_SECONDS)
    assert (operator.warnings(), operator.gangs()) == ([], {})
    for job in jobs:
        operator.change(job, {"spec": {"suspend": False}})
    site.await_phases("train", {"Running": 4})


# --- Ray -----------------------------------------------------------------------------------------------------------------


def ray_cluster(operator: PlayedOperator, name: str, workers: dict[str, Any], **meta: Any) -> dict[str, Any]:
    spec = {"headGroupSpec": {"template": {}}, "workerGroupSpecs": [{"groupName": "gpu", **workers}]}
    return operator.create(made("ray.io/v1", "RayCluster", name, spec, **meta))


def ray_pods(operator: PlayedOperator, cluster: Document, numbers: range) -> None:
    """Create workers, and the head with the first of them."""
    name = cluster["metadata"]["name"]
    if 0 in numbers:
        labels = {f"{RAY}/group": "headgroup", f"{RAY}/node-type": "head"}
        operator.pods([f"{name}-head"], cluster, gpus=0, labels=labels)
    labels = {f"{RAY}/group": "gpu", f"{RAY}/node-type": "worker"}
    operator.pods([f"{name}-gpu-{number}" for number in numbers], cluster, labels=labels)


def test_ray_clusters_have_as_many_workers_as_their_bounds_allow(operator: PlayedOperator, site: Site) -> None:
    operator.add_nodes("gpu", 5)
    least = ray_cluster(operator, "least", {"minReplicas": 2, "maxReplicas": 5})
    most = ray_cluster(operator, "most", {"replicas": 5, "minReplicas": 0, "maxReplicas": 3})
    ray_pods(operator, least, range(2))
    ray_pods(operator, most, range(3))
    site.await_phases("", {"Running": 7})
    assert sorted(operator.gangs().values()) == [("Runs", 3), ("Runs", 4)]


def test_the_clean_up_of_a_ray_cluster_that_is_deleted_runs(operator: PlayedOperator, site: Site) -> None:
    operator.add_nodes("gpu", 2)
    cluster = ray_cluster(operator, "ray", {"replicas": 2}, finalizers=["ray.io/gcs-ft-redis-cleanup-finalizer"])
    ray_pods(operator, cluster, range(2))
    site.await_phases("ray", {"Running": 3})
    operator.remove(cluster)
    operator.remove_pods(["ray-head", "ray-gpu-0", "ray-gpu-1"])
    labels = {f"{RAY}/group": "headgroup", f"{RAY}/node-type": "redis-cleanup", f"{RAY}/cluster": "ray"}
    operator.job("ray-redis-cleanup", cluster, 1, labels=labels, gpus=0)
    site.await_phases("ray-redis-cleanup", {"Running": 1})
    operator.change(cluster, {"metadata": {"finalizers": None}})
    assert eventually(lambda: not site.pods() and not operator.gangs(), step=0.5), (site.phases(), operator.gangs())


# --- owners that scale what runs -----------------------------------------------------------------------------------------


def test_gangs_that_their_owners_scale_run_on(operator: PlayedOperator, site: Site) -> None:
    operator.add_nodes("gpu", 5)
    ray = ray_cluster(operator, "ray", {"replicas": 2, "minReplicas": 0, "maxReplicas": 8}, annotations=GRACE)
    ray_pods(operator, ray, range(2))
    replicas: dict[str, Any] = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}}
    torch = operator.create(made("kubeflow.org/v1", "PyTorchJob", "torch", replicas, annotations=GRACE))
    operator.pods(["torch-master-0"], torch, gpus=0, labels=torch_role("master", 0))
    torch_workers(operator, torch, range(2))
    group = made(COSCHEDULING, "PodGroup", "ray-plugins", {"minMember": 4}, annotations=GRACE)
    operator.create(group)
    plugins = ray_cluster(operator, "plugins", {"replicas": 3})
    names = ["plugins-head", *(f"plugins-gpu-{number}" for number in range(3))]
    lane = f"plugins-{site.namespace()}"  # apart from the others, which would preempt it
    operator.add_nodes("plugins", 4, lane=lane)
    labels = {"scheduling.x-k8s.io/pod-group": "ray-plugins", f"{RAY}/group": "gpu"}
    operator.pods(names, plugins, labels=labels, nodeSelector={LANE: lane})
    site.await_phases("", {"Running": 10})
    before = operator.running("ray") | operator.running("torch") | operator.running("plugins-gpu-0")

    ray_up = {"replicas": 6, "minReplicas": 0, "maxReplicas": 8, "groupName": "gpu"}
    operator.change(ray, {"spec": {"workerGroupSpecs": [ray_up]}})
    ray_pods(operator, ray, range(2, 6))
    operator.change(torch, {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 5}}}})
    torch_workers(operator, torch, range(2, 5))
    operator.remove_pods(names[2:])
    time.sleep(BEYOND_SECONDS)
    assert site.phases("plugins") == ["Running"] * 2, operator.warnings()
    assert before <= operator.running()
    assert [text for text in operator.warnings() if "evicted" in text or "does not exist" in text] == []


def torch_role(role: str, index: int) -> dict[str, str]:
    return {"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": str(index)}


def torch_workers(operator: PlayedOperator, job: Document, numbers: range) -> None:
    for number in numbers:
        operator.pods([f"torch-worker-{number}"], job, labels=torch_role("worker", number))


# --- those that wait for admission ---------------------------------------------------------------------------------------


def test_the_training_operator_makes_pods_when_their_group_of_volcano_is_admitted(operator: PlayedOperator, site: Site) -> None:
    operator.add_nodes("gpu", 2)
    replicas = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}
    torch = operator.create(made("kubeflow.org/v1", "PyTorchJob", "torch", replicas))
    group = operator.create(made(VOLCANO, "PodGroup", "torch", {"minMember": 2, "queue": "default"}), torch)
    await_phase(operator, group, "Inqueue")
    mark = {"scheduling.k8s.io/group-name": "torch"}
    operator.pods(["torch-worker-0", "torch-worker-1"], torch, labels=torch_role("worker", 0), annotations=mark)
    site.await_phases("torch", {"Running": 2})
    assert operator.warnings() == []


def await_phase(operator: PlayedOperator, group: Document, expected: str) -> None:
    def phase() -> str:
        place = f"{owners.place_of(group)}/{group['metadata']['name']}"
        return str((operator.api.read(place).body.get("status") or {}).get("phase", ""))

    assert eventually(lambda: phase() == expected), phase()


def test_pods_that_kueue_admits_start_though_no_queue_has_the_name_of_their_local_queue(
    operator: PlayedOperator, site: Site
) -> None:
    operator.add_nodes("gpu", 2)
    labels = {"kueue.x-k8s.io/queue-name": "user-queue", "kueue.x-k8s.io/pod-group-name": "train", "kueue.x-k8s.io/managed": "true"}
    names, gates = ["train-0", "train-1"], [{"name": "kueue.x-k8s.io/admission"}]
    count = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    operator.pods(names, None, labels=labels, annotations=count, schedulingGates=gates)
    for name in names:
        operator.change({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}, {"spec": {"schedulingGates": None}})
    site.await_phases("train", {"Running": 2})


# --- MPI, LeaderWorkerSet ------------------------------------------------------------------------------------------------


def test_an_mpi_job_of_a_launcher_alone_runs_without_a_warning(operator: PlayedOperator, site: Site) -> None:
    operator.add_nodes("gpu", 1)
    job = operator.create(made("kubeflow.org/v2beta1", "MPIJob", "mpi", {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}}}))
    operator.job("mpi-launcher", job, 1, labels={"training.kubeflow.org/job-role": "launcher"})
    site.await_phases("mpi", {"Running": 1})
    assert operator.warnings() == []


def test_a_replica_of_a_leader_worker_set_that_is_scaled_away_leaves_nothing(operator: PlayedOperator, site: Site) -> None:
    operator.add_nodes("gpu", 4)
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2}}
    top = operator.create(made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "lws", spec))
    for number in range(2):
        for worker, name in enumerate((f"lws-{number}", f"lws-{number}-1")):
            labels = {f"{LWS}/name": "lws", f"{LWS}/group-index": str(number), f"{LWS}/worker-index": str(worker)}
            operator.pods([name], top, labels=labels)
    site.await_phases("lws", {"Running": 4})
    operator.change(top, {"spec": {"replicas": 1}})
    operator.remove_pods(["lws-1", "lws-1-1"])
    assert eventually(lambda: list(operator.gangs().values()) == [("Runs", 2)], step=0.5), operator.gangs()
    assert operator.warnings() == []


# --- what is said of gangs that wait -------------------------------------------------------------------------------------


def test_what_is_said_of_a_gang_that_waits_does_not_change_with_load_elsewhere(operator: PlayedOperator, site: Site) -> None:
    operator.add_nodes("own", 1)
    operator.add_nodes("other", 4, lane=f"other-{site.namespace()}")
    operator.create(made(VOLCANO, "PodGroup", "train", {"minMember": 2}))
    operator.pods(["train-0", "train-1"], None, annotations={"scheduling.k8s.io/group-name": "train"})
    assert eventually(lambda: bool(operator.warnings())), site.phases()
    before = operator.warnings()
    for number in range(3):
        operator.pods([f"load-{number}"], None, nodeSelector={LANE: f"other-{site.namespace()}"})
        site.await_phases(f"load-{number}", {"Running": 1})
        time.sleep(1.0)
    assert operator.warnings() == before
