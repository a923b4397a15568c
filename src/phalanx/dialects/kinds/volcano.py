"""Volcano's groups and queues, hypernodes, shards and the small kinds around them."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from phalanx.dialects.kinds.fields import (
    INT32,
    Amounts,
    CelRule,
    Count,
    CustomObject,
    Fields,
    Int32,
    Int64,
    Moment,
    ObjectCondition,
    PodGroupCondition,
    Positive,
    Selector,
    Strings,
    Text,
    checked_as,
    when_missing,
)

ONE_TIER = CelRule(
    "one-tier", "!(has(self.highestTierAllowed) && has(self.highestTierName))",
    "both highestTierAllowed and highestTierName are given; write one of them", ".highestTierName",
)  # fmt: skip


class NetworkTopology(Fields):
    """How near to each other the members must be."""

    rules: ClassVar[tuple[CelRule, ...]] = (ONE_TIER,)
    mode: Annotated[Literal["hard", "soft"], Meta(description="hard waits for such a place; soft only prefers it.")] = "hard"
    highest_tier_allowed: Annotated[Count, Meta(description="The widest tier of hypernodes that they may span.")] | None = None
    highest_tier_name: Annotated[Text, Meta(description="The same tier, by its name.")] | None = None


class VolcanoSubGroupPolicy(Fields):
    """How members form parts that are placed together."""

    name: Text | None = None
    network_topology: NetworkTopology | None = None
    sub_group_size: Annotated[Positive, Meta(description="Members that a part needs.")] = 1
    min_sub_groups: Annotated[Count, Meta(description="Parts that the group needs.")] = 0
    label_selector: Selector | None = None
    match_label_keys: Annotated[list[str], Meta(description="Members with equal values of these labels form a part.")] | None = None


class VolcanoPodGroupSpec(Fields):
    """What a gang asks for."""

    min_member: Annotated[Count, Meta(description="Members that start together or not at all.")] | None = None
    min_task_member: Annotated[dict[str, Count], Meta(description="Members that each role needs.")] | None = None
    queue: Annotated[Text, Meta(description="The queue that pays for it.")] = "default"
    priority_class_name: Text | None = None
    min_resources: Annotated[Amounts, Meta(description="What the minimum needs.")] | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[VolcanoSubGroupPolicy] | None = None


class VolcanoPodGroupStatus(Fields):
    """How far a gang has come."""

    phase: Literal["Pending", "Running", "Unknown", "Inqueue", "Completed"] | None = None
    conditions: list[PodGroupCondition] | None = None
    running: Count | None = None
    succeeded: Count | None = None
    failed: Count | None = None


class VolcanoPodGroup(CustomObject):
    """Pods that start together or not at all."""

    spec: VolcanoPodGroupSpec | None = None
    status: VolcanoPodGroupStatus | None = None


# --- queues --------------------------------------------------------------------------------------------------------------


class Guarantee(Fields):
    """What nobody else gets."""

    resource: Amounts | None = None


class NodeGroups(Fields):
    """Groups of nodes by name."""

    required_during_scheduling_ignored_during_execution: list[str] | None = None
    preferred_during_scheduling_ignored_during_execution: list[str] | None = None


class QueueAffinity(Fields):
    """Where the members of a queue may and may not run."""

    node_group_affinity: NodeGroups | None = None
    node_group_anti_affinity: NodeGroups | None = None


class ExtendCluster(Fields):
    """Another cluster that takes members of a queue."""

    name: str | None = None
    weight: Int32 | None = None
    capacity: Amounts | None = None


class DeviceQuota(Fields):
    """What a queue has of one class of devices."""

    count: Int64
    capacity: Amounts | None = None


class DeviceQuotas(Fields):
    """What a queue has of devices, by class."""

    capability: dict[str, DeviceQuota] | None = None
    deserved: dict[str, DeviceQuota] | None = None
    guarantee: dict[str, DeviceQuota] | None = None


def _covers(greater: str, smaller: str, *, if_named: bool) -> str:
    """Return the CEL that compares two maps of amounts: every amount of the smaller one is at most that of the greater one."""
    has_one = f"has({greater}) && r in {greater} && "
    unless = f"!has({greater}) || !(r in {greater}) || " if if_named else has_one
    compared = f"quantity(string({greater}[r])).compareTo(quantity(string({smaller}[r]))) >= 0"
    return f"{smaller}.all(r, {unless}{compared})"


_GUARANTEE = "!has(self.guarantee) || !has(self.guarantee.resource) || "


class VolcanoQueueSpec(Fields):
    """What a queue has."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "deserved-covers-guarantee",
            "!has(self.deserved) || " + _GUARANTEE + _covers("self.deserved", "self.guarantee.resource", if_named=False),
            "guarantees more of a resource than is deserved; write at least as much of each guaranteed resource into deserved",
            ".deserved",
        ),
        CelRule(
            "capability-covers-deserved",
            "!has(self.deserved) || " + _covers("self.capability", "self.deserved", if_named=True),
            "deserves more of a resource than capability allows; write less into deserved, or more into capability",
            ".deserved",
        ),
        CelRule(
            "capability-covers-guarantee",
            _GUARANTEE + _covers("self.capability", "self.guarantee.resource", if_named=True),
            "guarantees more of a resource than capability allows; write less into guarantee, or more into capability",
            ".guarantee",
        ),
    )  # fmt: skip
    weight: Annotated[int, Meta(ge=1, le=65535, extra_json_schema={"format": INT32})] = 1
    priority: Annotated[Count, Meta(description="Higher ones are served first.")] | None = None
    parent: Text | None = None
    capability: Annotated[Amounts, Meta(description="What it never gets more of.")] | None = None
    deserved: Annotated[Amounts, Meta(description="What it may take back from others.")] | None = None
    guarantee: Guarantee | None = None
    reclaimable: Annotated[bool, Meta(description="Whether others may take back what is theirs.")] = True
    affinity: QueueAffinity | None = None
    type: Text | None = None
    extend_clusters: list[ExtendCluster] | None = None
    dequeue_strategy: Literal["fifo", "traverse"] = "traverse"
    dra: DeviceQuotas | None = None


class QueueReservation(Fields):
    """Nodes that are kept for a queue."""

    nodes: list[str] | None = None
    resource: Amounts | None = None


class VolcanoQueueStatus(Fields):
    """What a queue holds."""

    state: Literal["Open", "Closed", "Closing", "Unknown"] | None = None
    unknown: Count | None = None
    pending: Count | None = None
    running: Count | None = None
    inqueue: Count | None = None
    completed: Count | None = None
    reservation: QueueReservation | None = None
    allocated: Amounts | None = None


class VolcanoQueue(CustomObject):
    """A share of the cluster."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "no-own-parent", "!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name",
            "a queue is not its own parent; name another one, or leave parent out", ".spec.parent",
        ),
        CelRule(
            "root-stays", "self.metadata.name != 'root' || has(self.spec) == has(oldSelf.spec) && "
            "(!has(self.spec) || self.spec == oldSelf.spec)",
            "the root of all queues stays as it is; make a queue below it", ".spec",
        ),
    )  # fmt: skip
    spec: VolcanoQueueSpec | None = None
    status: VolcanoQueueStatus | None = None


# --- nodes ---------------------------------------------------------------------------------------------------------------


class ExactMatch(Fields):
    """A member by its name."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]


class RegexMatch(Fields):
    """Members by a pattern of their names."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "pattern-compiles", "'node'.matches(self.pattern) in [true, false]",
            "the pattern cannot be read; write a regular expression such as ^rack-1-.*$", ".pattern",
        ),
    )  # fmt: skip
    pattern: Annotated[str, Meta(min_length=1, max_length=253)]


class MemberSelector(Fields):
    """Which nodes or hypernodes are members."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "one-selector", "[has(self.exactMatch), has(self.regexMatch), has(self.labelMatch)].exists_one(given, given)",
            "write exactly one of exactMatch, regexMatch and labelMatch",
        ),
    )  # fmt: skip
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: Selector | None = None


class HyperNodeMemberSpec(Fields):
    """Nodes or hypernodes inside a hypernode."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "labels-mean-nodes", "self.type == 'Node' || !has(self.selector) || !has(self.selector.labelMatch)",
            "labelMatch chooses nodes only; write type: Node, or choose hypernodes by exactMatch or regexMatch", ".selector",
        ),
    )  # fmt: skip
    type: Literal["Node", "HyperNode"]
    selector: MemberSelector | None = None


class HyperNodeSpec(Fields):
    """Where a hypernode stands, and what is in it."""

    tier: Annotated[Int32, Meta(description="1 is the narrowest.", extra=when_missing(1))]
    members: Annotated[list[HyperNodeMemberSpec], Meta(min_length=1, max_length=4096)]
    tier_name: Text | None = None


class HyperNodeStatus(Fields):
    """How big a hypernode is."""

    conditions: list[ObjectCondition] | None = None
    node_count: Annotated[Int64, Meta(ge=0)] | None = None


class VolcanoHyperNode(CustomObject):
    """Nodes that are near to each other."""

    spec: HyperNodeSpec
    status: HyperNodeStatus | None = None


class NodeShardSpec(Fields):
    """Which nodes a shard should have."""

    nodes_desired: list[str]


class NodeShardStatus(Fields):
    """Which nodes a shard has."""

    last_update_time: Moment | None = None
    nodes_in_use: list[str] | None = None
    nodes_to_remove: list[str] | None = None
    nodes_to_add: list[str] | None = None


class NodeShard(CustomObject):
    """Nodes that one scheduler looks after."""

    spec: NodeShardSpec
    status: NodeShardStatus | None = None


class ResourceInfo(Fields):
    """What a node has of a resource, by NUMA node."""

    allocatable: str | None = None
    capacity: Int64 | None = None


class CpuInfo(Fields):
    """Where a processor is."""

    numa: Count | None = None
    socket: Count | None = None
    core: Count | None = None


class GpuInfo(Fields):
    """Where a GPU is."""

    numa: Count | None = None
    bus_id: str | None = field(default=None, name="busID")
    device_model: str | None = None


class NumatopologySpec(Fields):
    """The insides of a node."""

    policies: Strings | None = None
    res_reserved: Annotated[Amounts, Meta(extra=checked_as(Strings))] | None = None
    numares: dict[str, ResourceInfo] | None = None
    cpu_detail: dict[str, CpuInfo] | None = None
    gpu_detail: dict[str, GpuInfo] | None = None


class Numatopology(CustomObject):
    """The insides of a node, under its name."""

    spec: NumatopologySpec | None = None


class CommandTarget(Fields):
    """What a command is for."""

    kind: str
    name: str
    api_version: str | None = None
    uid: str | None = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Command(CustomObject):
    """An order to a job or a queue."""

    action: Annotated[str, Meta(description="AbortJob, ResumeJob, OpenQueue, CloseQueue and the like.")] | None = None
    target: CommandTarget | None = None
    reason: str | None = None
    message: str | None = None
