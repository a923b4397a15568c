"""The fields of Kubernetes objects that we read, as typed structs.

A wrong type is an error that names the field; unknown fields are ignored.
"""

from typing import Annotated, Any, TypeAlias

from msgspec import Meta as Limits
from msgspec import Struct

Quantities: TypeAlias = dict[str, str | int | float] | None
Strings: TypeAlias = dict[str, str] | None
Int32: TypeAlias = Annotated[int, Limits(ge=-(2**31), le=2**31 - 1)]
"""What the API server takes where a field is a whole number."""


class Read(Struct, rename="camel", kw_only=True):
    """Base of all structs: camel case outside, snake case inside."""


class Owner(Read):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Leaving(Read):
    """The part of the metadata that says whether an object is going."""

    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int32 | None = None


class Meta(Leaving):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    creation_timestamp: str | None = None
    labels: Strings = None
    annotations: Strings = None
    owner_references: list[Owner] | None = None


class Expression(Read):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Selector(Read):
    match_labels: Strings = None
    match_expressions: list[Expression] | None = None


class NodeTerm(Read):
    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeTerms(Read):
    node_selector_terms: list[NodeTerm] | None = None


class WeightedNodeTerm(Read):
    weight: Int32 = 0
    preference: NodeTerm | None = None


class NodeAffinity(Read):
    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedNodeTerm] | None = None


class PodTerm(Read):
    topology_key: str = ""
    label_selector: Selector | None = None
    namespaces: list[str] | None = None
    namespace_selector: Selector | None = None


class WeightedPodTerm(Read):
    weight: Int32 = 0
    pod_affinity_term: PodTerm | None = None


class PodAffinityRead(Read):
    required_during_scheduling_ignored_during_execution: list[PodTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodTerm] | None = None


class Affinity(Read):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinityRead | None = None
    pod_anti_affinity: PodAffinityRead | None = None


class TolerationRead(Read):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Port(Read):
    host_port: Int32 | None = None
    protocol: str | None = None
    host_ip: str | None = None


class ClaimName(Read):
    name: str = ""
    request: str | None = None


class ResourceRequirements(Read):
    requests: Quantities = None
    limits: Quantities = None
    claims: list[ClaimName] | None = None


class Container(Read):
    name: str = ""
    image: str | None = None
    resources: ResourceRequirements | None = None
    ports: list[Port] | None = None
    restart_policy: str | None = None


class Spread(Read):
    topology_key: str = ""
    max_skew: Int32 = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: Selector | None = None
    match_label_keys: list[str] | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class ClaimVolume(Read):
    claim_name: str = ""


class EphemeralVolume(Read):
    """Nobody reads of what kind its claim will be, only that there will be one."""


class PodVolume(Read):
    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None


class PodClaim(Read):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class Gate(Read):
    name: str = ""


class ShapeSpec(Read):
    """The part of a pod's spec that placement reads."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Quantities = None
    resources: ResourceRequirements | None = None
    node_selector: Strings = None
    affinity: Affinity | None = None
    tolerations: list[TolerationRead] | None = None
    topology_spread_constraints: list[Spread] | None = None
    volumes: list[PodVolume] | None = None
    resource_claims: list[PodClaim] | None = None


class SchedulingGroup(Read):
    pod_group_name: str | None = None


class PodSpec(Read):
    """The part of a pod's spec that says who it is and where."""

    node_name: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[Gate] | None = None
    scheduling_group: SchedulingGroup | None = None


class ClaimStatus(Read):
    name: str = ""
    resource_claim_name: str | None = None


class PodCondition(Read):
    type: str = ""
    status: str = ""
    reason: str | None = None
    last_transition_time: str | None = None


class Terminated(Read):
    finished_at: str | None = None


class ContainerState(Read):
    terminated: Terminated | None = None


class ContainerStatus(Read):
    state: ContainerState | None = None


class PodStatus(Read):
    phase: str | None = None
    qos_class: str | None = None
    conditions: list[PodCondition] | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: list[ClaimStatus] | None = None


class Pod(Read):
    metadata: Meta
    spec: PodSpec
    status: PodStatus | None = None


class TaintRead(Read):
    key: str = ""
    value: str | None = None
    effect: str = "NoSchedule"


class Image(Read):
    names: list[str] | None = None
    size_bytes: int = 0


class NodeSpec(Read):
    taints: list[TaintRead] | None = None
    unschedulable: bool | None = None


class NodeCondition(Read):
    type: str = ""
    status: str = ""


class NodeStatus(Read):
    allocatable: Quantities = None
    capacity: Quantities = None
    images: list[Image] | None = None
    conditions: list[NodeCondition] | None = None


class NodeRead(Read):
    metadata: Meta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class PriorityClass(Read):
    metadata: Meta
    value: Int32 = 0
    global_default: bool | None = None


class Named(Read):
    """An object of which only the name and labels matter."""

    metadata: Meta


class ServiceSpec(Read):
    selector: Strings = None


class Service(Read):
    metadata: Meta
    spec: ServiceSpec | None = None


class ConditionRead(Read):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class DisruptionBudgetSpec(Read):
    selector: Selector | None = None


class DisruptionBudgetStatus(Read):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] | None = None


class DisruptionBudgetRead(Read):
    metadata: Meta
    spec: DisruptionBudgetSpec | None = None
    status: DisruptionBudgetStatus | None = None


class QuotaSpec(Read):
    hard: Quantities = None
    scopes: list[str] | None = None
    scope_selector: dict[str, Any] | None = None  # any: only whether it is there matters


class QuotaStatus(Read):
    hard: Quantities = None
    used: Quantities = None


class QuotaRead(Read):
    metadata: Meta
    spec: QuotaSpec | None = None
    status: QuotaStatus | None = None
