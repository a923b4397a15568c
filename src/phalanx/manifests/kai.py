"""KAI's kinds."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from phalanx.manifests.fields import (
    LABEL_KEY,
    Amounts,
    Anything,
    Condition,
    Count,
    Fields,
    Int32,
    Moment,
    Positive,
    Rule,
    Strings,
    Text,
    ruled,
)

HOSTNAME = "kubernetes.io/hostname"
DURATION = r"^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h|d|w|y))*$"


class TopologyConstraint(Fields):
    """Where members have to be together."""

    topology: str | None = None
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class SubGroup(Fields):
    """A part of a gang."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("no-own-parent", "!has(self.parent) || self.parent != self.name",
             "a sub-group is not its own parent; name another one, or leave parent out", ".parent"),
    )  # fmt: skip
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    min_member: Count | None = None
    parent: Text | None = None
    topology_constraint: TopologyConstraint | None = None


SubGroups = Annotated[
    list[SubGroup],
    Meta(
        max_length=256,
        extra=ruled(
            Rule("sub-group-names-once", "self.all(s, self.exists_one(t, t.name == s.name))",
                 "two sub-groups have one name; give each its own"),
            Rule("parents-exist", "self.all(s, !has(s.parent) || s.parent == '' || self.exists(t, t.name == s.parent))",
                 "a parent is not there; write the name of a sub-group of this object"),
        ),
    ),
]  # fmt: skip


class PodGroupSpec(Fields):
    """What a gang asks for."""

    min_member: Annotated[Positive, Meta(description="Members that start together or not at all.")] | None = None
    queue: Annotated[str, Meta(description="The queue that pays for it; a leaf.")] | None = None
    priority_class_name: str | None = None
    preemptibility: Literal["preemptible", "non-preemptible"] | None = None
    mark_unschedulable: bool | None = None
    scheduling_backoff: Annotated[Literal[-1, 1], Meta(description="1 to be tried once in a node pool, else -1.")] | None = None
    topology_constraint: TopologyConstraint | None = None
    sub_groups: SubGroups | None = None
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    backoff_limit: Int32 | None = None


class ResourcesStatus(Fields):
    """What the members hold and ask for."""

    allocated: Amounts | None = None
    allocated_non_preemptible: Amounts | None = None
    requested: Amounts | None = None


class GroupCondition(Fields):
    """What was observed, and since when."""

    type: str | None = None
    status: str | None = None
    transition_id: str | None = field(default=None, name="transitionID")
    last_transition_time: Moment | None = None
    reason: str | None = None
    message: str | None = None


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


class PodGroupStatus(Fields):
    """How far a gang has come."""

    phase: str | None = None
    conditions: list[GroupCondition] | None = None
    running: Int32 | None = None
    succeeded: Int32 | None = None
    failed: Int32 | None = None
    pending: Int32 | None = None
    resources_status: ResourcesStatus | None = None
    scheduling_conditions: list[SchedulingCondition] | None = None


class PodGroup(Fields):
    """Pods that start together or not at all."""

    spec: PodGroupSpec | None = None
    status: PodGroupStatus | None = None


Bound = Annotated[
    float,
    Meta(
        extra=ruled(
            Rule("amount-or-unlimited", "self >= 0.0 || self == -1.0", "write 0 or more, or -1 for no bound"),
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


class QueueSpec(Fields):
    """What a queue is."""

    resources: QueueResources
    display_name: str | None = None
    parent_queue: Text | None = None
    priority: Annotated[int, Meta(description="Higher ones are served first; 100 unless said otherwise.")] | None = None
    preempt_min_runtime: Annotated[str, Meta(max_length=64, pattern=DURATION)] | None = None
    reclaim_min_runtime: Annotated[str, Meta(max_length=64, pattern=DURATION)] | None = None


class QueueStatus(Fields):
    """What a queue holds."""

    conditions: list[Condition] | None = None
    child_queues: list[str] | None = None
    allocated: Amounts | None = None
    allocated_non_preemptible: Amounts | None = None
    requested: Amounts | None = None


class Queue(Fields):
    """A share of the cluster."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("no-own-parent", "!has(self.spec.parentQueue) || self.spec.parentQueue != self.metadata.name",
             "a queue is not its own parent; name another one, or leave parentQueue out", ".spec.parentQueue"),
    )  # fmt: skip
    spec: QueueSpec
    status: QueueStatus | None = None


class ReceivedGpu(Fields):
    """What a pod gets of GPUs."""

    count: int | None = None
    portion: str | None = None
    gpu_memory: str | None = None


class ClaimAllocation(Fields):
    """What one claim of the pod gets."""

    name: str | None = None
    allocation: Anything | None = None


class BindRequestSpec(Fields):
    """Which pod goes where."""

    pod_name: Annotated[str, Meta(min_length=1, max_length=253)]
    selected_node: Annotated[str, Meta(min_length=1, max_length=253)]
    received_resource_type: Literal["Regular", "Fraction", "MigInstance"] | None = None
    received_gpu: ReceivedGpu | None = field(default=None, name="receivedGPU")
    selected_gpu_groups: list[str] | None = field(default=None, name="selectedGPUGroups")
    resource_claim_allocations: list[ClaimAllocation] | None = None
    backoff_limit: Count | None = None


class BindRequestStatus(Fields):
    """How far it got."""

    phase: Literal["Pending", "Succeeded", "Failed"] | None = None
    reason: str | None = None
    failed_attempts: Count | None = None


class BindRequest(Fields):
    """A pod on its way to a node."""

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
            Rule("levels-stay", "self == oldSelf", "the levels of a topology stay as they are; make another topology"),
            Rule("levels-once", "self.all(i, self.exists_one(j, j.nodeLabel == i.nodeLabel))",
                 "two levels have one label; write each label once"),
            Rule("hostname-last", f"self.all(i, i.nodeLabel != '{HOSTNAME}') || self[self.size() - 1].nodeLabel == '{HOSTNAME}'",
                 f"{HOSTNAME} is the narrowest level; write it last"),
        ),
    ),
]  # fmt: skip


class TopologySpec(Fields):
    """The levels, widest first."""

    levels: Levels


class Topology(Fields):
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


class SchedulingShardSpec(Fields):
    """Which nodes and gangs one scheduler looks after, and how."""

    args: Strings | None = None
    placement_strategy: PlacementStrategy | None = None
    partition_label_value: str | None = None
    queue_depth_per_action: dict[str, int] | None = None
    min_runtime: MinRuntime | None = None
    k_value: Annotated[float, Meta(ge=0)] | None = None
    usage_db_config: Anything | None = field(default=None, name="usageDBConfig")
    plugins: dict[str, PluginOverride] | None = None
    actions: dict[str, ActionOverride] | None = None


class SchedulingShardStatus(Fields):
    """How a shard does."""

    conditions: list[Condition] | None = None


class SchedulingShard(Fields):
    """The part of the cluster that one scheduler looks after."""

    spec: SchedulingShardSpec | None = None
    status: SchedulingShardStatus | None = None
