"""KAI's kinds."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from phalanx.dialects.kinds.fields import (
    LABEL_KEY,
    Amounts,
    Anything,
    CelRule,
    Count,
    CustomObject,
    Fields,
    Int32,
    Moment,
    ObjectCondition,
    PodGroupCondition,
    Positive,
    Strings,
    Text,
    checked_as,
    ruled,
)
from phalanx.dialects.schema import Meta as ObjectMeta
from phalanx.dialects.schema import Read
from phalanx.dialects.storage_schema import ClaimAllocation

HOSTNAME = "kubernetes.io/hostname"
DURATION = r"^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h|d|w|y))*$"


class KaiTopologyConstraint(Fields):
    """Where members have to be together."""

    topology: str | None = None
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class KaiSubGroup(Fields):
    """A part of a gang."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("no-own-parent", "!has(self.parent) || self.parent != self.name",
                "a sub-group is not its own parent; name another one, or leave parent out", ".parent"),
        CelRule("pods-or-sub-groups", "!has(self.minSubGroup) || !has(self.minMember) || self.minMember == 0",
                "minMember counts pods and minSubGroup counts sub-groups; write one of them", ".minSubGroup"),
    )  # fmt: skip
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    min_member: Annotated[Count, Meta(description="Pods that it needs; for a sub-group without others below it.")] | None = None
    min_sub_group: Annotated[Count, Meta(description="Sub-groups below it that it needs; all by default.")] | None = None
    parent: Text | None = None
    topology_constraint: KaiTopologyConstraint | None = None


SubGroups = Annotated[
    list[KaiSubGroup],
    Meta(
        max_length=256,
        extra=ruled(
            CelRule("sub-group-names-once", "self.all(s, self.exists_one(t, t.name == s.name))",
                    "two sub-groups have one name; give each its own"),
            CelRule("parents-exist", "self.all(s, !has(s.parent) || s.parent == '' || self.exists(t, t.name == s.parent))",
                    "a parent is not there; write the name of a sub-group of this object"),
        ),
    ),
]  # fmt: skip


class KaiPodGroupSpec(Fields):
    """What a gang asks for."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("members-or-sub-groups", "!has(self.minSubGroup) || !has(self.minMember) || self.minMember == 0",
                "minMember counts pods and minSubGroup counts sub-groups; write one of them", ".minSubGroup"),
    )  # fmt: skip
    min_member: Annotated[Count, Meta(description="Members that start together or not at all.")] | None = None
    min_sub_group: Annotated[Positive, Meta(description="Sub-groups without a parent that it needs; all by default.")] | None = None
    queue: Annotated[str, Meta(description="The queue that pays for it; a leaf.")] | None = None
    priority_class_name: str | None = None
    preemptibility: Literal["preemptible", "non-preemptible"] | None = None
    mark_unschedulable: bool | None = None
    scheduling_backoff: Annotated[Literal[-1, 1], Meta(description="1 to be tried once in a node pool, else -1.")] | None = None
    topology_constraint: KaiTopologyConstraint | None = None
    sub_groups: SubGroups | None = None
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    backoff_limit: Int32 | None = None


class ResourcesStatus(Fields):
    """What the members hold and ask for."""

    allocated: Amounts | None = None
    allocated_non_preemptible: Amounts | None = None
    requested: Amounts | None = None


class KaiPodGroupCondition(PodGroupCondition):
    """What was observed, and since when."""


class Reason(Fields):
    """Why a gang waits."""

    reason: str | None = None
    message: str | None = None
    details: Anything | None = None


class SchedulingCondition(Fields):
    """What a scheduler said of a gang in one node pool."""

    type: str | None = None
    node_pool: str | None = None
    reason: str | None = None
    message: str | None = None
    reasons: list[Reason] | None = None
    transition_id: str | None = field(default=None, name="transitionID")
    last_transition_time: Moment | None = None
    status: str | None = None


class KaiPodGroupStatus(Fields):
    """How far a gang has come."""

    phase: str | None = None
    conditions: list[KaiPodGroupCondition] | None = None
    running: Int32 | None = None
    succeeded: Int32 | None = None
    failed: Int32 | None = None
    pending: Int32 | None = None
    resources_status: ResourcesStatus | None = None
    scheduling_conditions: list[SchedulingCondition] | None = None


class KaiPodGroup(CustomObject):
    """Pods that start together or not at all."""

    spec: KaiPodGroupSpec | None = None
    status: KaiPodGroupStatus | None = None


Bound = Annotated[
    float,
    Meta(
        extra=ruled(
            CelRule("amount-or-unlimited", "self >= 0.0 || self == -1.0", "write 0 or more, or -1 for no bound"),
        )
    ),
]


class QueueResource(Fields):
    """What a queue has of one resource."""

    quota: Annotated[Bound, Meta(description="What is its own.")] | None = None
    limit: Annotated[Bound, Meta(description="What it never gets more of.")] | None = None
    over_quota_weight: Annotated[Bound, Meta(description="How what is left is shared.")] | None = None


class QueueResources(Fields):
    """What a queue has: devices, thousandths of a processor, and megabytes."""

    gpu: QueueResource | None = None
    cpu: QueueResource | None = None
    memory: QueueResource | None = None


class KaiQueueSpec(Fields):
    """What a queue is."""

    resources: QueueResources
    display_name: str | None = None
    parent_queue: Text | None = None
    priority: Annotated[int, Meta(description="Higher ones are served first; 100 by default.")] | None = None
    preempt_min_runtime: Annotated[str, Meta(max_length=64, pattern=DURATION)] | None = None
    reclaim_min_runtime: Annotated[str, Meta(max_length=64, pattern=DURATION)] | None = None


class KaiQueueStatus(Fields):
    """What a queue holds."""

    conditions: list[ObjectCondition] | None = None
    child_queues: list[str] | None = None
    allocated: Amounts | None = None
    allocated_non_preemptible: Amounts | None = None
    requested: Amounts | None = None


class KaiQueue(CustomObject):
    """A share of the cluster."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("no-own-parent", "!has(self.spec.parentQueue) || self.spec.parentQueue != self.metadata.name",
                "a queue is not its own parent; name another one, or leave parentQueue out", ".spec.parentQueue"),
    )  # fmt: skip
    spec: KaiQueueSpec
    status: KaiQueueStatus | None = None


class ReceivedGpu(Fields):
    """What a pod gets of GPUs."""

    count: int | None = None
    portion: str | None = None
    gpu_memory: str | None = None


class BindRequestClaim(Fields):
    """What one claim of the pod gets."""

    name: str | None = None
    allocation: Annotated[ClaimAllocation, Meta(extra=checked_as(Anything))] | None = None


class BindRequestSpec(Fields):
    """Which pod goes where."""

    pod_name: Annotated[str, Meta(min_length=1, max_length=253)]
    selected_node: Annotated[str, Meta(min_length=1, max_length=253)]
    received_resource_type: Literal["Regular", "Fraction", "MigInstance"] | None = None
    received_gpu: ReceivedGpu | None = field(default=None, name="receivedGPU")
    selected_gpu_groups: list[str] | None = field(default=None, name="selectedGPUGroups")
    resource_claim_allocations: list[BindRequestClaim] | None = None
    backoff_limit: Count | None = None


class BindRequestStatus(Fields):
    """How far it got."""

    phase: Literal["Pending", "Succeeded", "Failed"] | None = None
    reason: str | None = None
    failed_attempts: Count | None = None


class FieldsOwner(Read):
    """Who changed which fields, and when."""

    time: str | None = None


class BindRequestMeta(ObjectMeta):
    """Metadata with the times of changes."""

    managed_fields: list[FieldsOwner] | None = None


class KaiBindRequest(CustomObject):
    """A pod on its way to a node."""

    metadata: BindRequestMeta
    spec: BindRequestSpec
    status: BindRequestStatus | None = None


class Level(Fields):
    """One level of a topology."""

    node_label: Annotated[str, Meta(min_length=1, max_length=316, pattern=LABEL_KEY)]


Levels = Annotated[
    list[Level],
    Meta(
        min_length=1,
        max_length=16,
        extra=ruled(
            CelRule("levels-stay", "self == oldSelf", "the levels of a topology stay as they are; make another topology"),
            CelRule("levels-once", "self.all(i, self.exists_one(j, j.nodeLabel == i.nodeLabel))",
                    "two levels have one label; write each label once"),
            CelRule("hostname-last", f"self.all(i, i.nodeLabel != '{HOSTNAME}') || self[self.size() - 1].nodeLabel == '{HOSTNAME}'",
                    f"{HOSTNAME} is the narrowest level; write it last"),
        ),
    ),
]  # fmt: skip


class TopologySpec(Fields):
    """The levels, widest first."""

    levels: Levels


class Topology(CustomObject):
    """How nodes are near to each other, by labels."""

    spec: TopologySpec
    status: Anything | None = None


class PlacementStrategy(Fields):
    """Pack or spread."""

    gpu: Literal["binpack", "spread"] | None = None
    cpu: Literal["binpack", "spread"] | None = None


class MinRuntime(Fields):
    """How long jobs are left in peace."""

    preempt_min_runtime: Annotated[str, Meta(max_length=64, pattern=DURATION)] | None = None
    reclaim_min_runtime: Annotated[str, Meta(max_length=64, pattern=DURATION)] | None = None


class PluginOverride(Fields):
    """What a shard says of a plugin."""

    enabled: bool | None = None
    priority: int | None = None
    arguments: Strings | None = None


class ActionOverride(Fields):
    """What a shard says of an action."""

    enabled: bool | None = None
    priority: int | None = None


class UsageParams(Read):
    """Which part of the past counts."""

    half_life_period: str | None = None
    window_size: str | None = None
    window_type: str | None = None
    tumbling_window_start_time: str | None = None
    cron_window_duration_string: str | None = None
    staleness_period: str | None = None


class UsageDb(Read):
    """Where usage comes from, and how it is summed up."""

    usage_params: UsageParams | None = None


class SchedulingShardSpec(Fields):
    """Which nodes and gangs one scheduler looks after, and how."""

    args: Strings | None = None
    placement_strategy: PlacementStrategy | None = None
    partition_label_value: str | None = None
    queue_depth_per_action: dict[str, int] | None = None
    min_runtime: MinRuntime | None = None
    k_value: Annotated[float, Meta(ge=0)] | None = None
    usage_db: Annotated[UsageDb, Meta(extra=checked_as(Anything))] | None = field(default=None, name="usageDBConfig")
    plugins: dict[str, PluginOverride] | None = None
    actions: Annotated[dict[str, PluginOverride], Meta(extra=checked_as(dict[str, ActionOverride]))] | None = None


class SchedulingShardStatus(Fields):
    """How a shard does."""

    conditions: list[ObjectCondition] | None = None


class SchedulingShard(CustomObject):
    """The part of the cluster that one scheduler looks after."""

    spec: SchedulingShardSpec | None = None
    status: SchedulingShardStatus | None = None
