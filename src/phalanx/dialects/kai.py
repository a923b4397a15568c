"""KAI's objects: PodGroup v2alpha2, Queue v2, Topology."""

from msgspec import field

from phalanx.dialects.fields import condition, integer, key_of, seconds, staleness_grace
from phalanx.dialects.schema import ConditionRead, Meta, Read
from phalanx.errors import SnapshotError
from phalanx.model.gang import STALE, Condition, Gang, SubGroup, TopologyConstraint
from phalanx.model.label_tree import LabelTree
from phalanx.model.quantity import LARGEST
from phalanx.model.queue import Queue, QueueBounds
from phalanx.model.selectors import LabelSelector
from phalanx.model.shard import NODE_POOL
from phalanx.model.task import GangKey

STALE_SINCE = "kai.scheduler/stale-podgroup-timestamp"
SUBGROUP = "kai.scheduler/subgroup-name"
UNLIMITED = -1.0
BYTES_PER_MEMORY_UNIT = 10**6
NO_BACKOFF, ONE_ATTEMPT = -1, 1


class ConstraintRead(Read):
    """Where a group or sub-group has to be."""

    topology: str = ""
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class SubGroupRead(Read):
    """A part of a group."""

    name: str = ""
    min_member: int = 1
    parent: str | None = None
    topology_constraint: ConstraintRead | None = None


class PodGroupSpecRead(Read):
    """What a PodGroup asks for."""

    min_member: int = 1
    queue: str = ""
    priority_class_name: str | None = None
    preemptibility: str | None = None
    topology_constraint: ConstraintRead | None = None
    sub_groups: list[SubGroupRead] | None = None
    scheduling_backoff: int | None = None
    mark_unschedulable: bool | None = None


class SchedulingConditionRead(Read):
    """What a scheduler said about a group in one node pool."""

    type: str = ""
    status: str = ""
    node_pool: str = ""
    reason: str = ""
    message: str = ""
    transition_id: str = field(default="", name="transitionID")


class PodGroupStatusRead(Read):
    """What was written on a PodGroup."""

    conditions: list[ConditionRead] | None = None
    scheduling_conditions: list[SchedulingConditionRead] | None = None


class PodGroupRead(Read):
    """A PodGroup."""

    metadata: Meta
    spec: PodGroupSpecRead | None = None
    status: PodGroupStatusRead | None = None


class BoundRead(Read):
    """What a queue has of one resource."""

    quota: float = 0.0
    limit: float = UNLIMITED
    over_quota_weight: float = 1.0


class BoundsRead(Read):
    """What a queue has of each resource."""

    gpu: BoundRead | None = None
    cpu: BoundRead | None = None
    memory: BoundRead | None = None


class KaiQueueSpec(Read):
    """What a queue is."""

    display_name: str | None = None
    parent_queue: str | None = None
    priority: int | None = None
    resources: BoundsRead | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class KaiQueueRead(Read):
    """A Queue."""

    metadata: Meta
    spec: KaiQueueSpec | None = None


class LevelRead(Read):
    """One level of a topology."""

    node_label: str = ""


class TopologySpecRead(Read):
    """The levels, widest first."""

    levels: list[LevelRead] | None = None


class TopologyRead(Read):
    """A Topology."""

    metadata: Meta
    spec: TopologySpecRead | None = None


def gang(read: PodGroupRead) -> Gang:
    """Read a PodGroup; a sub-group whose parent does not exist, or that is its own ancestor, is refused."""
    meta, spec = read.metadata, read.spec or PodGroupSpecRead()
    parts, annotations = spec.sub_groups or [], meta.annotations or {}
    _check_tree(parts)
    parents = {part.parent for part in parts}
    if spec.min_member < 0:
        raise SnapshotError(f"spec.minMember: {spec.min_member} is negative; write 1 or more")
    if spec.preemptibility not in (None, "", "preemptible", "non-preemptible"):
        raise SnapshotError(f"spec.preemptibility: {spec.preemptibility!r} is unknown; write 'preemptible' or 'non-preemptible'")
    return Gang(
        key=GangKey(key_of(meta)), uid=meta.uid or key_of(meta), queue=spec.queue, min_member=spec.min_member,
        subgroups=tuple(_subgroup(part, is_leaf=part.name not in parents) for part in parts),
        topology=_constraint(spec.topology_constraint),
        priority_class=spec.priority_class_name or "", created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"),
        is_preemptable=None if not spec.preemptibility else spec.preemptibility == "preemptible",
        conditions=_conditions(read), staleness_grace_seconds=staleness_grace(annotations), annotations=annotations, dialect="kai",
        node_pool=(meta.labels or {}).get(NODE_POOL, ""), tries_pool_once=_tries_pool_once(spec),
        marks_pods=spec.mark_unschedulable is not False,
    )  # fmt: skip


def _tries_pool_once(spec: PodGroupSpecRead) -> bool:
    if spec.scheduling_backoff not in (None, NO_BACKOFF, ONE_ATTEMPT):
        raise SnapshotError(
            f"spec.schedulingBackoff: {spec.scheduling_backoff} is unknown; write 1 to be tried once in a node pool, or -1"
        )
    return spec.scheduling_backoff == ONE_ATTEMPT


def _conditions(read: PodGroupRead) -> tuple[Condition, ...]:
    """Return the conditions of a PodGroup; the stamp that KAI puts on a stale one is read as the condition that says so."""
    status = read.status or PodGroupStatusRead()
    stamp = _stamp((read.metadata.annotations or {}).get(STALE_SINCE))
    stamped = (Condition(STALE, "True", since=stamp),) if stamp else ()
    return (*map(condition, status.conditions or ()), *stamped, *_attempts(status))


def _stamp(text: str | None) -> float:
    """Return a time that KAI noted; one that nobody can read counts as none, as it does there."""
    try:
        return seconds(text)
    except SnapshotError:
        return 0.0


def _attempts(status: PodGroupStatusRead) -> tuple[Condition, ...]:
    """Return what schedulers said about attempts in node pools, the latest last."""
    found = sorted(status.scheduling_conditions or (), key=_transition)
    return tuple(Condition(item.type, item.status, item.reason, item.message, node_pool=item.node_pool) for item in found)


def _transition(read: SchedulingConditionRead) -> int:
    return integer(read.transition_id or "0", where="status.schedulingConditions: transitionID")


def _check_tree(parts: list[SubGroupRead]) -> None:
    parents = {part.name: part.parent or "" for part in parts}
    if len(parents) < len(parts):
        raise SnapshotError("spec.subGroups: two have the same name; give each its own")
    for name, parent in parents.items():
        if parent and parent not in parents:
            raise SnapshotError(
                f"spec.subGroups: {name!r} names the parent {parent!r}, which does not exist; add it, or leave the parent out"
            )
        line = [name]
        while (above := parents[line[-1]]) and above not in line:
            line.append(above)
        if above:
            raise SnapshotError(f"spec.subGroups: {name!r} is its own ancestor; parents must form a tree, remove one of them")


def _subgroup(read: SubGroupRead, *, is_leaf: bool) -> SubGroup:
    """Read a sub-group; every leaf is needed."""
    if read.min_member < 0:
        raise SnapshotError(f"spec.subGroups: minMember of {read.name!r} is negative; write 1 or more")
    selector = LabelSelector().plus({SUBGROUP: read.name})
    return SubGroup(read.name, read.parent or "", read.min_member, int(is_leaf), _constraint(read.topology_constraint), selector)


def _constraint(read: ConstraintRead | None) -> TopologyConstraint | None:
    if read is None or not (read.topology or read.required_topology_level or read.preferred_topology_level):
        return None
    return TopologyConstraint(
        bool(read.required_topology_level), topology=read.topology, required_level=read.required_topology_level or "",
        preferred_level=read.preferred_topology_level or "",
    )  # fmt: skip


def queue(read: KaiQueueRead) -> Queue:
    """Read a Queue; amounts in thousandths of a cpu, bytes and devices, -1 without bound."""
    meta, spec = read.metadata, read.spec or KaiQueueSpec()
    resources = spec.resources or BoundsRead()
    cpu, memory, gpu = (each or BoundRead() for each in (resources.cpu, resources.memory, resources.gpu))
    units = (1, BYTES_PER_MEMORY_UNIT, 1)
    bounds = QueueBounds(
        _amounts((cpu.quota, memory.quota, gpu.quota), units), _amounts((cpu.limit, memory.limit, gpu.limit), units),
        _amounts((cpu.over_quota_weight, memory.over_quota_weight, gpu.over_quota_weight), (1, 1, 1)),
        spec.preempt_min_runtime or "", spec.reclaim_min_runtime or "",
    )  # fmt: skip
    return Queue(
        name=meta.name, uid=meta.uid or meta.name, priority=100 if spec.priority is None else spec.priority,
        parent=spec.parent_queue or "", created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"), bounds=bounds,
    )  # fmt: skip


def _amounts(values: tuple[float, ...], units: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(map(_amount, ("cpu", "memory", "gpu"), values, units))


def _amount(name: str, value: float, unit: int) -> float:
    if value != UNLIMITED and not 0 <= value * unit <= LARGEST:  # false for NaN
        raise SnapshotError(f"spec.resources.{name}: {value} is not an amount; write 0 or more, or -1 for no bound")
    return UNLIMITED if value == UNLIMITED else value * unit


def topology(read: TopologyRead) -> LabelTree:
    """Read a Topology."""
    levels = (read.spec or TopologySpecRead()).levels or []
    return LabelTree(read.metadata.name, tuple(level.node_label for level in levels))
