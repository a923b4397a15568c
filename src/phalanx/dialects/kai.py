"""KAI's objects: PodGroup v2alpha2, Queue v2, Topology."""

from collections.abc import Iterable

from phalanx.dialects import kai_subgroups
from phalanx.dialects.field_values import condition, integer, key_of, seconds, staleness_grace
from phalanx.dialects.kinds import kai as kinds
from phalanx.dialects.kinds.reader import blank
from phalanx.errors import SnapshotError
from phalanx.model.gang import STALE, Condition, Gang
from phalanx.model.label_tree import LabelTree
from phalanx.model.quantity import LARGEST
from phalanx.model.queue import Queue, QueueBounds
from phalanx.model.shard import NODE_POOL
from phalanx.model.task import GangKey

STALE_SINCE = "kai.scheduler/stale-podgroup-timestamp"
UNLIMITED = -1.0
BYTES_PER_MEMORY_UNIT = 10**6
NO_BACKOFF, ONE_ATTEMPT = -1, 1
DEFAULT_PRIORITY = 50
"""Of a group that names no priority class, in a cluster without a default one."""


def gang(read: kinds.KaiPodGroup) -> Gang:
    """Read a PodGroup; a sub-group whose parent does not exist, or that is its own ancestor, is refused.

    With sub-groups the least number of pods that meets them is the gang's minimum: `spec.minMember` is then only a sum for people
    to read, in KAI as here.
    """
    meta, spec = read.metadata, read.spec or blank(kinds.KaiPodGroupSpec)
    annotations = meta.annotations or {}
    subgroups = kai_subgroups.subgroups(spec)
    min_member = kai_subgroups.min_member(spec, subgroups)
    if spec.preemptibility not in (None, "", "preemptible", "non-preemptible"):
        raise SnapshotError(f"spec.preemptibility: {spec.preemptibility!r} is unknown; write 'preemptible' or 'non-preemptible'")
    return Gang(
        key=GangKey(key_of(meta)), uid=meta.uid or key_of(meta), queue=spec.queue or "", min_member=min_member,
        subgroups=subgroups, min_children=spec.min_sub_group, topology=kai_subgroups.constraint(spec.topology_constraint),
        priority_class=spec.priority_class_name or "", created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"),
        is_preemptable=None if not spec.preemptibility else spec.preemptibility == "preemptible",
        conditions=_conditions(read), staleness_grace_seconds=staleness_grace(annotations), annotations=annotations, dialect="kai",
        node_pool=(meta.labels or {}).get(NODE_POOL, ""), tries_pool_once=_tries_pool_once(spec),
        marks_pods=spec.mark_unschedulable is not False, default_priority=DEFAULT_PRIORITY, is_always_active=True,
        unheeded_minimum=kai_subgroups.unheeded_minimum(spec, subgroups),
    )  # fmt: skip


def _tries_pool_once(spec: kinds.KaiPodGroupSpec) -> bool:
    if spec.scheduling_backoff not in (None, NO_BACKOFF, ONE_ATTEMPT):
        raise SnapshotError(
            f"spec.schedulingBackoff: {spec.scheduling_backoff} is unknown; write 1 to be tried once in a node pool, or -1"
        )
    return spec.scheduling_backoff == ONE_ATTEMPT


def _conditions(read: kinds.KaiPodGroup) -> tuple[Condition, ...]:
    """Return the conditions of a PodGroup; the stamp that KAI puts on a stale one is read as the condition that says so."""
    status = read.status or blank(kinds.KaiPodGroupStatus)
    stamp = _stamp((read.metadata.annotations or {}).get(STALE_SINCE))
    stamped = (Condition(STALE, "True", since=stamp),) if stamp else ()
    return (*map(condition, status.conditions or ()), *stamped, *_attempts(status))


def _stamp(text: str | None) -> float:
    """Return a time that KAI noted; one that nobody can read counts as none, as it does there."""
    try:
        return seconds(text)
    except SnapshotError:
        return 0.0


def _attempts(status: kinds.KaiPodGroupStatus) -> tuple[Condition, ...]:
    """Return what schedulers said about attempts in node pools, the latest last."""
    found = sorted(status.scheduling_conditions or (), key=_transition)
    return tuple(
        Condition(item.type or "", item.status or "", item.reason or "", item.message or "", node_pool=item.node_pool or "")
        for item in found
    )


def _transition(read: kinds.SchedulingCondition) -> int:
    return integer(read.transition_id or "0", where="status.schedulingConditions: transitionID")


def queue(read: kinds.KaiQueue) -> Queue:
    """Read a Queue; amounts in thousandths of a cpu, bytes and devices, -1 without bound."""
    meta, spec, given = read.metadata, read.spec, read.spec.resources
    parts = [part or blank(kinds.QueueResource) for part in (given.cpu, given.memory, given.gpu)]
    units = (1, BYTES_PER_MEMORY_UNIT, 1)
    bounds = QueueBounds(
        _amounts([part.quota for part in parts], units, 0.0), _amounts([part.limit for part in parts], units, UNLIMITED),
        _amounts([part.over_quota_weight for part in parts], (1, 1, 1), 1.0),
        spec.preempt_min_runtime or "", spec.reclaim_min_runtime or "",
    )  # fmt: skip
    return Queue(
        name=meta.name, uid=meta.uid or meta.name, priority=100 if spec.priority is None else spec.priority,
        parent=spec.parent_queue or "", created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"), bounds=bounds,
    )  # fmt: skip


def _amounts(values: Iterable[float | None], units: tuple[int, ...], otherwise: float) -> tuple[float, ...]:
    given = (otherwise if value is None else value for value in values)
    return tuple(map(_amount, ("cpu", "memory", "gpu"), given, units))


def _amount(name: str, value: float, unit: int) -> float:
    if value != UNLIMITED and not 0 <= value * unit <= LARGEST:  # false for NaN
        raise SnapshotError(f"spec.resources.{name}: {value} is not an amount; write 0 or more, or -1 for no bound")
    return UNLIMITED if value == UNLIMITED else value * unit


def topology(read: kinds.Topology) -> LabelTree:
    """Read a Topology."""
    return LabelTree(read.metadata.name, tuple(level.node_label for level in read.spec.levels))
