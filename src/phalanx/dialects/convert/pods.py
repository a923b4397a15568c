"""Labels, annotations and fields by which pods are in a gang: those of one dialect are removed, those of another added."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from phalanx.dialects import gates, koordinator, kueue, native, yunikorn
from phalanx.dialects.cluster import describe
from phalanx.dialects.convert.neutral_gangs import GANG_GROUP_NAME, QUOTA, Lost, NeutralGang
from phalanx.dialects.group_references import with_group_name
from phalanx.dialects.kai_subgroups import SUBGROUP
from phalanx.dialects.pods import ROLE, TASK_GROUP
from phalanx.model.kinds import Document

MODELLED = frozenset({
    ROLE, TASK_GROUP, SUBGROUP, yunikorn.TASK_GROUPS, yunikorn.QUEUE, kueue.QUEUE, kueue.TOTAL_COUNT, QUOTA, GANG_GROUP_NAME,
    gates.GATE, gates.MIN_MEMBER, gates.PLAN, "volcano.sh/queue-name", native.QUEUE, "kai.scheduler/queue", "volcano.sh/task-index",
    koordinator.MIN_AVAILABLE, koordinator.SIGS_MIN_AVAILABLE, kueue.MANAGED, "kueue.x-k8s.io/role-hash",
    koordinator.WAITING_TIME, kueue.REQUIRED_TOPOLOGY, kueue.PREFERRED_TOPOLOGY,
})  # fmt: skip
"""Labels and annotations whose meaning is in the model, or that controllers put there."""
DIALECT_BY_PREFIX = {
    "volcano.sh/": "volcano", "scheduling.volcano.sh/": "volcano", "kai.scheduler/": "kai", "yunikorn.apache.org/": "yunikorn",
    "kueue.x-k8s.io/": "kueue", "gang.scheduling.koordinator.sh/": "koordinator", "pod-group.scheduling.sigs.k8s.io": "koordinator",
    "scheduling.x-k8s.io/": "coscheduling", gates.TIMEOUT: "gates", gates.AFTERWARDS: "gates",
}  # fmt: skip
SCHEDULERS = {
    "volcano": "volcano", "kai": "kai-scheduler", "yunikorn": "yunikorn", "koordinator": "koord-scheduler",
    "coscheduling": "scheduler-plugins-scheduler",
}  # fmt: skip
"""Who usually reads a dialect; the others are read by the scheduler that every cluster has."""
GATES = (kueue.ADMISSION_GATE, kueue.TOPOLOGY_GATE, gates.GATE)
OF_A_CLUSTER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences", "selfLink")


@dataclass(frozen=True, slots=True)
class PodPatch:
    """What to add to a pod."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)


def dialect_of(key: str) -> str:
    """Return the dialect to which a label or annotation belongs; empty for those of nobody."""
    return next((dialect for prefix, dialect in DIALECT_BY_PREFIX.items() if key.startswith(prefix)), "")


def is_foreign(key: str, dialect: str) -> bool:
    """Tell whether a label or annotation means something in other dialects alone."""
    return key in MODELLED or dialect_of(key) not in ("", dialect)


def kept(group: NeutralGang, dialect: str) -> dict[str, str]:
    """Return the annotations of a gang that mean the same in this dialect."""
    return {key: text for key, text in group.annotations.items() if not is_foreign(key, dialect)}


def bare(pod: Document, dialect: str) -> dict[str, Any]:
    """Return a pod as it would be submitted, without anything that is said in a dialect other than this one."""
    free = with_group_name(gates.as_made(pod), None)
    meta = {key: value for key, value in free["metadata"].items() if key not in OF_A_CLUSTER}
    for table in ("labels", "annotations"):
        kept = {key: text for key, text in (meta.pop(table, None) or {}).items() if not is_foreign(key, dialect)}
        meta |= {table: kept} if kept else {}
    spec = {key: value for key, value in free["spec"].items() if key not in ("nodeName", "schedulingGates")}
    held = [gate for gate in free["spec"].get("schedulingGates") or () if gate.get("name") not in GATES]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, **({"schedulingGates": held} if held else {})}}


def patched(pod: Document, patch: PodPatch, group: NeutralGang, dialect: str) -> dict[str, Any]:
    """Return a bare pod as a member of a gang, for the scheduler that reads this dialect."""
    meta, spec = dict(pod["metadata"]), {**pod["spec"], **patch.spec}
    for table, more in (("labels", patch.labels), ("annotations", patch.annotations)):
        meta |= {table: {**(meta.get(table) or {}), **more}} if more else {}
    if spec.get("schedulerName") in SCHEDULERS.values():
        spec.pop("schedulerName")
        spec |= {"schedulerName": SCHEDULERS[dialect]} if dialect in SCHEDULERS else {}
    if group.priority_class and "priorityClassName" not in spec:
        spec["priorityClassName"] = group.priority_class
    return {**pod, "metadata": meta, "spec": spec}


def lost_metadata(group: NeutralGang, dialect: str) -> Iterator[Lost]:
    """Yield what pods say in their dialect that the model does not hold."""
    for member in group.members:
        meta = member.document["metadata"]
        if meta.get("ownerReferences"):
            yield Lost(describe(member.document), "metadata.ownerReferences", "it is written as a pod that nobody owns")
        for table in ("labels", "annotations"):
            for key in meta.get(table) or {}:
                if key not in MODELLED and is_foreign(key, dialect) and not _names_group(member.document, table, key):
                    yield Lost(describe(member.document), f"metadata.{table}[{key!r}]", f"only {dialect_of(key)} knows it")


def _names_group(pod: Document, table: str, key: str) -> bool:
    """Tell whether a pod names its group by this."""
    return key not in (with_group_name(pod, None)["metadata"].get(table) or {})
