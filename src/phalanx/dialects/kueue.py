"""Kueue's plain pod groups: pods alone make the gang, each says how many they are, and all of them start together.

Quota, admission and the Workload object are Kueue's. Its gates keep pods waiting until it has admitted them; where no Kueue is
there, `controllers/kueue.py` can lift the gate. Kueue deletes pods beyond the total count; here they are members that the gang
can do without, since nobody but their owner knows which of them are too many. The label that names the LocalQueue means our queue
of that name only where there is one: most clusters with Kueue have none.
"""

from collections.abc import Mapping

from phalanx.dialects.field_values import integer, staleness_grace
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang, TopologyConstraint
from phalanx.model.task import GangKey, Task

TOTAL_COUNT = "kueue.x-k8s.io/pod-group-total-count"
FAST_ADMISSION = "kueue.x-k8s.io/pod-group-fast-admission"
QUEUE = "kueue.x-k8s.io/queue-name"
ADMISSION_GATE, TOPOLOGY_GATE = "kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"
REQUIRED_TOPOLOGY, PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
MANAGED = "kueue.x-k8s.io/managed"
"""Label that Kueue puts on the pods that it manages."""
WHERE = f"metadata.annotations[{TOTAL_COUNT!r}]"


def gang(task: Task) -> Gang:
    """Return the group as a pod describes it."""
    return Gang(
        key=GangKey(task.group), uid=task.uid, dialect="kueue", has_object=False,
        preferred_queue=task.labels.get(QUEUE, ""),
        min_member=1 if is_fast(task.annotations) else total_count(task.annotations), priority_class=task.priority_class,
        created=task.created, phase="Inqueue", annotations=task.annotations,
        staleness_grace_seconds=staleness_grace(task.annotations), topology=_topology(task),
    )  # fmt: skip


def _topology(task: Task) -> TopologyConstraint | None:
    """Return the node label of which all pods share a value.

    Where Kueue is installed it chooses the domain of each pod set itself, and writes it as node selectors before it lifts its gate.
    """
    required, preferred = task.annotations.get(REQUIRED_TOPOLOGY, ""), task.annotations.get(PREFERRED_TOPOLOGY, "")
    if task.labels.get(MANAGED) or not (required or preferred):
        return None
    return TopologyConstraint(is_hard=bool(required), required_level=required, preferred_level="" if required else preferred)


def total_count(annotations: Mapping[str, str]) -> int:
    """Return how many pods the group has, by the annotation of one of them."""
    text = annotations.get(TOTAL_COUNT)
    if text is None:
        raise SnapshotError(f"{WHERE}: missing; write on every pod of the group how many they are, such as '4'")
    count = integer(text, where=WHERE)
    if count < 1:
        raise SnapshotError(f"{WHERE}: {text!r} is too small; write 1 or more")
    return count


def is_fast(annotations: Mapping[str, str]) -> bool:
    """Tell whether the group has fast admission: it does not wait until all of its pods exist."""
    return annotations.get(FAST_ADMISSION) == "true"


def disagreement(gang: Gang, counts: Gang) -> str:
    """Say what is wrong with a pod that describes its group otherwise than the oldest one does; empty if nothing is."""
    own, agreed = gang.annotations[TOTAL_COUNT], counts.annotations[TOTAL_COUNT]
    if own == agreed:
        return ""
    return f"{WHERE}: {own!r}, but the oldest pod of group {gang.name} says {agreed!r}; write one number on all of its pods"
