"""Volcano's objects: PodGroup, Queue, HyperNode, NodeShard."""

from dataclasses import replace

from phalanx.dialects.field_values import condition, key_of, label_selector, seconds, staleness_grace
from phalanx.dialects.kinds import volcano as kinds
from phalanx.dialects.kinds.reader import blank
from phalanx.errors import SnapshotError
from phalanx.model.gang import Counts, Gang, SubGroup, TopologyConstraint
from phalanx.model.node import HyperNode, HyperNodeMember
from phalanx.model.patterns import compile_pattern
from phalanx.model.queue import NodeGroupAffinity, Queue, QueueBounds
from phalanx.model.quota import under_quota_names, without_quota_names
from phalanx.model.resources import CPU, GPU, MEMORY, Resources, read_resources, scale_of
from phalanx.model.shard import Shard
from phalanx.model.task import GangKey

ALLOCATED_HYPERNODE = "volcano.sh/job-allocated-hypernode"
PREEMPTABLE = "volcano.sh/preemptable"
UNLIMITED = -1.0
LONGEST_SHOWN = 80
"""Characters of a pattern in a message."""


def gang(read: kinds.VolcanoPodGroup) -> Gang:
    """Read a PodGroup."""
    meta, spec = read.metadata, read.spec or blank(kinds.VolcanoPodGroupSpec)
    annotations, status = meta.annotations or {}, read.status or blank(kinds.VolcanoPodGroupStatus)
    minimum = read_resources(spec.min_resources, where="spec.minResources")
    preemptable, min_member = annotations.get(PREEMPTABLE), spec.min_member or 0
    if min_member < 0:
        raise SnapshotError(f"spec.minMember: {min_member} is negative; write 0 or more")
    for role, count in (spec.min_task_member or {}).items():
        if count < 0:
            raise SnapshotError(f"spec.minTaskMember[{role!r}]: {count} is negative; write 0 or more")
    return Gang(
        key=GangKey(key_of(meta)), uid=meta.uid or key_of(meta), queue=spec.queue or "default", min_member=min_member,
        role_minima=spec.min_task_member or {}, subgroups=tuple(map(_subgroup, spec.sub_group_policy or ())),
        topology=_topology(spec.network_topology), priority_class=spec.priority_class_name or "",
        created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"),
        min_resources=None if spec.min_resources is None else without_quota_names(minimum), min_quota=under_quota_names(minimum),
        phase=status.phase or "Pending", conditions=tuple(map(condition, status.conditions or ())),
        is_preemptable=None if preemptable is None else preemptable.lower() == "true",
        allocated_hypernode=annotations.get(ALLOCATED_HYPERNODE, ""), staleness_grace_seconds=staleness_grace(annotations),
        annotations=annotations, reported=_reported(status),
    )  # fmt: skip


def _reported(status: kinds.VolcanoPodGroupStatus) -> dict[str, Counts] | None:
    """Return what the status says of the members; of one that says nothing nobody expects it."""
    counts = (status.running, status.succeeded, status.failed)
    return None if counts == (None, None, None) else {"": (counts[0] or 0, counts[1] or 0, counts[2] or 0)}


def _topology(read: kinds.NetworkTopology | None) -> TopologyConstraint | None:
    if read is None:
        return None
    if read.mode not in ("", "hard", "soft"):
        raise SnapshotError(f"spec.networkTopology.mode: {read.mode!r} is unknown; write 'hard' or 'soft'")
    return TopologyConstraint(read.mode != "soft", read.highest_tier_allowed, read.highest_tier_name or "")


def _subgroup(read: kinds.VolcanoSubGroupPolicy) -> SubGroup:
    where = f"spec.subGroupPolicy[{read.name or ''}]"
    if not read.match_label_keys:
        raise SnapshotError(f"{where}.matchLabelKeys: missing; write the labels by whose values pods form sub-groups")
    if read.sub_group_size < 0 or read.min_sub_groups < 0:
        raise SnapshotError(f"{where}: a negative size or number of sub-groups; write 0 or more")
    return SubGroup(
        name=read.name or "", min_member=read.sub_group_size, min_subgroups=read.min_sub_groups,
        topology=_topology(read.network_topology), selector=label_selector(read.label_selector),
        match_keys=tuple(read.match_label_keys or ()),
    )  # fmt: skip


def queue(read: kinds.VolcanoQueue) -> Queue:
    """Read a Queue; one that no controller has seen yet counts as open."""
    meta, spec = read.metadata, read.spec or blank(kinds.VolcanoQueueSpec)
    state = read.status.state if read.status else None
    guarantee = spec.guarantee.resource if spec.guarantee else None
    found = Queue(
        name=meta.name, uid=meta.uid or meta.name, weight=spec.weight, priority=spec.priority or 0,
        parent=spec.parent or "", created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"),
        capability=_share(spec.capability, where="spec.capability") or None,
        deserved=_share(spec.deserved, where="spec.deserved"), guarantee=_share(guarantee, where="spec.guarantee.resource"),
        is_reclaimable=spec.reclaimable, state=state or "Open", annotations=meta.annotations or {},
        node_groups=_node_groups(spec.affinity),
    )  # fmt: skip
    return with_bounds(found)


def _share(quantities: object, *, where: str) -> Resources:
    """Read amounts of a queue; names of quotas bound nothing, as in Volcano."""
    return without_quota_names(read_resources(quantities, where=where))


def with_bounds(queue: Queue) -> Queue:
    """Return the queue as KAI's rules see it: its quota is what it deserves, its limit its capability, its weight counts above."""
    limit = queue.capability or {}
    return replace(
        queue, bounds=QueueBounds(_bounds(queue.deserved, 0.0), _bounds(limit, UNLIMITED), (float(max(queue.weight, 0)),) * 3)
    )


def _bounds(amounts: Resources, otherwise: float) -> tuple[float, ...]:
    """Return thousandths of a cpu, bytes and devices."""
    units = {CPU: 1, MEMORY: 1, GPU: scale_of(GPU)}
    return tuple(amounts[name] / unit if name in amounts else otherwise for name, unit in units.items())


def _node_groups(read: kinds.QueueAffinity | None) -> NodeGroupAffinity | None:
    if read is None:
        return None
    near, far = (each or blank(kinds.NodeGroups) for each in (read.node_group_affinity, read.node_group_anti_affinity))
    return NodeGroupAffinity(
        required=tuple(near.required_during_scheduling_ignored_during_execution or ()),
        preferred=tuple(near.preferred_during_scheduling_ignored_during_execution or ()),
        forbidden=tuple(far.required_during_scheduling_ignored_during_execution or ()),
        avoided=tuple(far.preferred_during_scheduling_ignored_during_execution or ()),
    )


def hypernode(read: kinds.VolcanoHyperNode) -> HyperNode:
    """Read a HyperNode."""
    spec = read.spec
    return HyperNode(read.metadata.name, spec.tier, spec.tier_name or "", tuple(map(_member, spec.members)))


def _member(read: kinds.HyperNodeMemberSpec) -> HyperNodeMember:
    selector, is_hypernode = read.selector or blank(kinds.MemberSelector), read.type == "HyperNode"
    if selector.exact_match is not None:
        return HyperNodeMember(is_hypernode, name=selector.exact_match.name)
    if selector.regex_match is not None:
        return HyperNodeMember(is_hypernode, pattern=_pattern(selector.regex_match.pattern))
    labels = selector.label_match.match_labels if selector.label_match else None
    return HyperNodeMember(is_hypernode, labels=None if labels is None else tuple(sorted(labels.items())))


def _pattern(text: str) -> str:
    try:
        compile_pattern(text)
    except SnapshotError as problem:
        shown = repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")
        raise SnapshotError(f"spec.members: regexMatch.pattern {shown} cannot be read: {problem}") from problem
    return text


def shard(read: kinds.NodeShard) -> Shard:
    """Read a NodeShard: the nodes in use, or the desired ones before anybody uses them."""
    in_use = read.status.nodes_in_use if read.status else None
    return Shard(read.metadata.name, frozenset(in_use or read.spec.nodes_desired))
