"""Workloads as objects of a cluster, in the dialect of the scheduler that is to read them."""

from collections.abc import Iterator
from typing import Any

from phalanx.dialects.group_references import GROUP, KAI_GROUP
from phalanx.dialects.pods import ROLE
from phalanx.model.work_annotations import CHECKPOINT_EVERY
from phalanx.sim.running_work import DURATION
from phalanx.sim.workload import PODS_PER_NODE, Machine, Workload, WorkloadGang, WorkloadPart

Document = dict[str, Any]


def cluster_objects(workload: Workload, dialect: str) -> Iterator[Document]:
    """Yield what is there before the first gang: nodes, queues and priority classes."""
    for machine in workload.machines:
        yield _node(machine)
    queues = {**dict.fromkeys((gang.queue for gang in workload.gangs), 1), **workload.weight_by_queue}
    if dialect == "kai":
        yield _kai_queue("all", "", 1)
    for name, weight in sorted(queues.items()):
        if dialect == "kai":
            yield _kai_queue(name, "all", weight)
        elif name != "default":
            yield {
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name},
                "spec": {"weight": weight, "reclaimable": True}, "status": {"state": "Open"},
            }  # fmt: skip
    for value in sorted({gang.priority for gang in workload.gangs if gang.priority}):
        yield {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": _class(value)}, "value": value,
        }  # fmt: skip


def gang_objects(gang: WorkloadGang, dialect: str) -> list[Document]:
    """Return the group and the pods of a gang."""
    return [_group(gang, dialect), *(pod for part in gang.parts for pod in _pods(gang, part, dialect))]


def _node(machine: Machine) -> Document:
    offers = {"pods": str(PODS_PER_NODE), **machine.offers}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": machine.name, "labels": {"kubernetes.io/hostname": machine.name, **machine.labels}},
        "status": {"capacity": offers, "allocatable": offers, "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def _kai_queue(name: str, parent: str, weight: int) -> Document:
    shares = {kind: {"quota": 0, "limit": -1, "overQuotaWeight": weight} for kind in ("cpu", "memory", "gpu")}
    spec = {"resources": shares, **({"parentQueue": parent} if parent else {})}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def _class(priority: int) -> str:
    return f"priority-{priority}".replace("--", "-minus-")


def _group(gang: WorkloadGang, dialect: str) -> Document:
    api = "scheduling.run.ai/v2alpha2" if dialect == "kai" else "scheduling.volcano.sh/v1beta1"
    spec: Document = {"minMember": gang.minimum or gang.tasks, "queue": gang.queue}
    if gang.priority:
        spec["priorityClassName"] = _class(gang.priority)
    annotations = {DURATION: f"{gang.duration:.3f}s"}
    if gang.checkpoint_every:
        annotations[CHECKPOINT_EVERY] = f"{gang.checkpoint_every:.3f}s"
    meta = {"name": gang.name, "namespace": gang.namespace, "annotations": annotations}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}


def _pods(gang: WorkloadGang, part: WorkloadPart, dialect: str) -> Iterator[Document]:
    key = KAI_GROUP if dialect == "kai" else GROUP
    limits = {name: amount for name, amount in part.request.items() if name not in ("cpu", "memory")}
    container = {"name": "main", "resources": {"requests": dict(part.request), **({"limits": limits} if limits else {})}}
    spec: Document = {"schedulerName": "kai-scheduler" if dialect == "kai" else "volcano", "containers": [container]}
    if part.node_labels:
        spec["nodeSelector"] = dict(part.node_labels)
    if gang.priority:
        spec["priorityClassName"] = _class(gang.priority)
    annotations = {key: gang.name} if dialect == "kai" else {key: gang.name, ROLE: part.name}
    for number in range(part.tasks):
        meta = {"name": f"{gang.name}-{part.name}-{number}", "namespace": gang.namespace, "annotations": annotations}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
