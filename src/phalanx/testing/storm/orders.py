"""What people want to run, in the words of each dialect: the object of a gang, and the pods that its owner makes for it.

Who owns pods without writing a group leaves that to the pod grouper: `pytorch`, `ray`, `mpi`, `jobset` and `lws` are
training-operator, KubeRay, mpi-operator, JobSet and LeaderWorkerSet with no more than a scheduler's name. Of a `job` every pod
starts alone. A `vcjob` is written once, and Phalanx's own controller makes its pods. Of `koordinator`, `kueue` and `yunikorn` pods
alone make the gang, and of `gates`, behind our own gate, too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phalanx.controllers.grouper.job_sets import ANY_ORDER, GROUP_INDEX, REPLICATED_JOB, WORKER_INDEX
from phalanx.controllers.grouper.kubeflow import JOB_ROLE, LAUNCHER, REPLICA_TYPE, WORKER
from phalanx.controllers.grouper.ray import GROUP_LABEL, HEAD_PART, RAY_CLUSTER
from phalanx.dialects.gates import GATE as OUR_GATE
from phalanx.dialects.gates import MIN_MEMBER
from phalanx.dialects.group_references import (
    COSCHEDULING_GROUP,
    GATES_GANG,
    GROUP,
    KOORDINATOR_GANG,
    KUEUE_GROUP,
    YUNIKORN_APP,
)
from phalanx.dialects.koordinator import MIN_AVAILABLE
from phalanx.dialects.kueue import TOTAL_COUNT
from phalanx.dialects.pods import TASK_GROUP
from phalanx.dialects.yunikorn import TASK_GROUPS
from phalanx.model.kinds import Document, Kind, kind_at
from phalanx.testing.storm.replica import SCHEDULER

NAMESPACE = "default"
VOLCANO, COSCHEDULING, JOB, BARE = "volcano", "coscheduling", "job", "bare"
NATIVE, KOORDINATOR, KUEUE, YUNIKORN, GATES = "native", "koordinator", "kueue", "yunikorn", "gates"
PYTORCH, RAY, MPI, JOB_SET, LEADER_WORKER, VOLCANO_JOB = "pytorch", "ray", "mpi", "jobset", "lws", "vcjob"
DIALECTS = (
    VOLCANO, VOLCANO, VOLCANO, COSCHEDULING, COSCHEDULING, JOB, BARE, NATIVE, KOORDINATOR, KUEUE, YUNIKORN, GATES,
    PYTORCH, RAY, MPI, JOB_SET, LEADER_WORKER, VOLCANO_JOB,
)  # fmt: skip
"""Some are drawn more often than others."""
OF_ONE_SIZE = (NATIVE, KOORDINATOR, KUEUE, YUNIKORN, GATES, JOB_SET, LEADER_WORKER)
"""Gangs whose minimum stays when their owner scales them: it cannot be changed, or pods say it."""
SIZED_WHEN_MADE = (JOB_SET, LEADER_WORKER)
"""Objects that say when they are made how large their gang is; nothing of that can be changed later."""
OWNING = (JOB, PYTORCH, RAY, MPI, JOB_SET, LEADER_WORKER)
"""Objects that own the pods of their gang; nobody but the pod grouper says what the gang is."""
WITH_NEW_NAMES = (JOB, RAY)
"""Owners that give every pod a name of its own."""
VOLCANO_GROUP, COSCHEDULING_KIND = kind_at("scheduling.volcano.sh", "podgroups"), kind_at("scheduling.x-k8s.io", "podgroups")
KAI_GROUP = kind_at("scheduling.run.ai", "podgroups")
OBJECT_KINDS: dict[str, Kind] = {
    VOLCANO: VOLCANO_GROUP, COSCHEDULING: COSCHEDULING_KIND, JOB: kind_at("batch", "jobs"),
    NATIVE: kind_at("scheduling.k8s.io", "podgroups"), PYTORCH: kind_at("kubeflow.org", "pytorchjobs"), RAY: RAY_CLUSTER,
    MPI: kind_at("kubeflow.org", "mpijobs"), JOB_SET: kind_at("jobset.x-k8s.io", "jobsets"),
    LEADER_WORKER: kind_at("leaderworkerset.x-k8s.io", "leaderworkersets"), VOLCANO_JOB: kind_at("batch.volcano.sh", "jobs"),
}  # fmt: skip
GATE, INDEX = "storm/hold", "storm/index"
STORAGE_CLASS = "storm"
WORKERS, FIRST, TASK = "workers", "first", "worker"
MOST_RETRIES = 1000


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody wants to run."""

    name: str
    dialect: str
    size: int
    gpus: int
    priority: str
    queue: str
    seconds: float
    """How long it works once all of it runs."""
    at: float
    """When it is submitted."""
    restarts_whole: bool = False
    """Its owner makes all of its pods anew when it loses one, as many operators do."""
    one_by_one: bool = False
    """Its owner makes the next pod a while after the one before, as those do that make a leader first and then its workers."""
    gated: float = 0.0
    """For so many seconds somebody holds each of its pods back by a scheduling gate, as quota controllers do."""
    after_admission: bool = False
    """Its owner makes pods only once its Volcano group is admitted, as training-operator and Volcano's own controllers do."""
    has_claims: bool = False
    """Each pod has a claim for a volume, which is made where the pod is to go: the binder binds it."""
    ends_apart: bool = False
    """Its pods are done one after the other, in any order, and not all at once."""


def object_of(order: Order, size: int, minimum: int) -> dict[str, Any]:
    """Return the object that stands for a gang."""
    kind, spec = OBJECT_KINDS[order.dialect], spec_of(order, size, minimum)
    if order.dialect == VOLCANO:
        spec |= {"priorityClassName": order.priority, "queue": order.queue}
    if order.dialect == JOB:
        spec |= {"completions": size, "template": _template(order)}
    if order.dialect == VOLCANO_JOB:
        policies = [{"event": "PodEvicted", "action": "RestartJob"}, {"event": "PodFailed", "action": "RestartJob"}]
        spec |= {
            "schedulerName": SCHEDULER, "queue": order.queue, "priorityClassName": order.priority, "policies": policies,
            "maxRetry": MOST_RETRIES,
        }  # fmt: skip
    meta = {"namespace": NAMESPACE, "name": order.name}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}


def spec_of(order: Order, size: int, minimum: int) -> dict[str, Any]:
    """Return what an object says of its size: what its owner changes to scale it."""
    match order.dialect:
        case "job":
            return {"parallelism": size}
        case "native":
            return {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        case "pytorch":
            return {"pytorchReplicaSpecs": {"Worker": {"replicas": size, "template": _template(order)}}}
        case "ray":
            workers = {"groupName": WORKERS, "replicas": size - 1, "template": _template(order)}
            return {"headGroupSpec": {"template": _template(order)}, "workerGroupSpecs": [workers] if size > 1 else []}
        case "mpi":
            launcher = {"replicas": 1, "template": _template(order)}
            workers = {"Worker": {"replicas": size - 1, "template": _template(order)}} if size > 1 else {}
            return {"mpiReplicaSpecs": {"Launcher": launcher, **workers}}
        case "jobset":
            job = {"spec": {"parallelism": size, "completions": size, "template": _template(order)}}
            jobs = [{"name": WORKERS, "replicas": 1, "template": job}]
            return {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": ANY_ORDER}}
        case "lws":
            return {"replicas": 1, "leaderWorkerTemplate": {"size": size, "workerTemplate": _template(order)}}
        case "vcjob":
            return {"minAvailable": minimum, "tasks": [{"name": TASK, "replicas": size, "template": _template(order)}]}
        case _:
            return {"minMember": minimum}


def _template(order: Order) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": order.name}}, "spec": {**pod_spec_of(order), "restartPolicy": "Never"}}


def pod_of(order: Order, index: int, *, number: int, minimum: int, owner: Document | None) -> dict[str, Any]:
    """Return a pod of a gang; `number` tells it from those before it."""
    name = f"{order.name}-{index}-{number}" if order.dialect in WITH_NEW_NAMES else f"{order.name}-{index}"
    labels, annotations = _membership(order, index, minimum)
    meta: dict[str, Any] = {
        "namespace": NAMESPACE, "name": name, "labels": {"app": order.name, **labels},
        "annotations": {INDEX: str(index), **annotations},
    }  # fmt: skip
    if order.dialect in OWNING and owner is not None:
        named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": order.name, "uid": owner["metadata"]["uid"]}
        meta["ownerReferences"] = [{**named, "controller": True}]
    spec = pod_spec_of(order)
    gates = [*([GATE] if order.gated else []), *([OUR_GATE] if order.dialect == GATES else [])]
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    if order.has_claims:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name(order, index)}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _membership(order: Order, index: int, minimum: int) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the labels and annotations that tie a pod to its gang."""
    match order.dialect:
        case "volcano":
            return {}, {GROUP: order.name}
        case "coscheduling":
            return {COSCHEDULING_GROUP: order.name}, {}
        case "koordinator":
            return {}, {KOORDINATOR_GANG: order.name, MIN_AVAILABLE: str(minimum)}
        case "kueue":
            return {KUEUE_GROUP: order.name}, {TOTAL_COUNT: str(minimum)}
        case "gates":
            return {GATES_GANG: order.name}, {MIN_MEMBER: str(minimum)}
        case "yunikorn":
            described = {} if index else {TASK_GROUPS: json.dumps(_task_groups(order, minimum))}
            return {YUNIKORN_APP: order.name}, {TASK_GROUP: WORKERS if index else FIRST, **described}
        case "pytorch":
            return {REPLICA_TYPE: WORKER}, {}
        case "ray":
            return {GROUP_LABEL: WORKERS if index else HEAD_PART}, {}
        case "mpi":
            return {JOB_ROLE: WORKER if index else LAUNCHER}, {}
        case "jobset":
            return {REPLICATED_JOB: WORKERS}, {}
        case "lws":
            return {GROUP_INDEX: "0", WORKER_INDEX: str(index)}, {}
        case _:
            return {}, {}


def _task_groups(order: Order, minimum: int) -> list[dict[str, Any]]:
    """Return the parts of a YuniKorn application: one pod that comes first, and the others."""
    asks = {"cpu": "1", "nvidia.com/gpu": str(order.gpus)}
    sizes = {FIRST: 1, WORKERS: minimum - 1}
    return [{"name": name, "minMember": size, "minResource": asks} for name, size in sizes.items() if size]


def pod_spec_of(order: Order) -> dict[str, Any]:
    """Return what each pod of a gang asks for."""
    asks = {"cpu": "1", "nvidia.com/gpu": str(order.gpus)}
    container = {"name": "main", "image": "train:1", "resources": {"requests": asks, "limits": asks}}
    group = {"schedulingGroup": {"podGroupName": order.name}} if order.dialect == NATIVE else {}
    return {
        "schedulerName": SCHEDULER, "containers": [container], "priorityClassName": order.priority,
        "terminationGracePeriodSeconds": 5, **group,
    }  # fmt: skip


def claim_name(order: Order, index: int) -> str:
    """Return the name of the claim of a pod: it outlives the pod, as that of a StatefulSet does."""
    return f"{order.name}-data-{index}"


def claim_of(order: Order, index: int) -> dict[str, Any]:
    """Return the claim of a pod."""
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": NAMESPACE, "name": claim_name(order, index), "labels": {"app": order.name}},
        "spec": {
            "storageClassName": STORAGE_CLASS, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        },
    }  # fmt: skip
