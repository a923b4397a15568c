"""What placement sees of a task. Tasks with the same shape are interchangeable for every node, so they are fitted,
scored and placed as one class. The dialects intern shapes, and say which parts of a pod count (`dialects/task_classes.py`):
equal shapes are one object, compared by identity. Whatever has to remember something for a shape takes the shape itself as key.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from phalanx.model.resources import Resources
from phalanx.model.selectors import Labels, LabelSelector, NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class Toleration:
    """Permission to use nodes with a matching taint."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Taint:
    """A mark on a node that keeps tasks away."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node itself."""

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"

    def conflicts(self, other: "HostPort") -> bool:
        """Tell whether both cannot be open on one node."""
        same = self.port == other.port and self.protocol == other.protocol
        return same and (self.address == other.address or "0.0.0.0" in (self.address, other.address))


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods that matter, and the label key that says what counts as the same place."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str] = frozenset()
    namespace_selector: LabelSelector | None = None
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """Terms that attract to, or repel from, places where other pods run."""

    required: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class NodePreference:
    """A preferred condition on node labels, with its weight."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """How unevenly matching pods may be spread over the values of one node label."""

    topology_key: str
    max_skew: int
    hard: bool
    selector: LabelSelector | None
    min_domains: int = 1
    honor_node_affinity: bool = True
    honor_taints: bool = False


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A resource claim that a task names, under the name its containers use."""

    name: str
    claim: str


ContainerLimits = tuple[tuple[str, int], ...]
"""Names and amounts that one container may use at most."""


UNKNOWN_GPU_MEMORY_MIB = 100.0
"""The memory that a GPU counts with when its node has no label for it."""


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A part of one or several GPUs: of each device this portion, or so much of its memory."""

    portion: float = 0.0
    memory_mib: int = 0
    devices: int = 1

    def portion_of(self, memory_mib: float = UNKNOWN_GPU_MEMORY_MIB) -> float:
        """Return which part of a device with so much memory it is; a request for memory is rounded up to a hundredth."""
        return self.portion or -(-self.memory_mib * 100 // memory_mib) / 100


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Shape:
    """Everything about a task that a filter or a score can read."""

    namespace: str = "default"
    labels: Labels = field(default_factory=dict)
    """Those that some selector of the cluster reads; the task has all of them."""
    request: Resources = field(default_factory=dict)
    scoring_request: tuple[int, int] = (0, 0)
    """cpu and memory for the least and most requested scores: containers without a request count 100m and 200Mi."""
    booked_request: tuple[int, int] = (0, 0)
    """The same once the task is on a node; differs only for pods with pod-level requests."""
    node_selector: Labels = field(default_factory=dict)
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    node_preferences: tuple[NodePreference, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: PodAffinity = PodAffinity()
    anti_affinity: PodAffinity = PodAffinity()
    spread: tuple[SpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    images: tuple[str, ...] = ()
    containers: int = 1
    volume_claims: tuple[str, ...] = ()
    resource_claims: tuple[ClaimUse, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    container_limits: tuple[ContainerLimits, ...] = ()
    """One entry per container; empty when none has limits."""
    is_guaranteed: bool = False
    """Every container may use exactly the cpu and memory it asks for, and no more."""
    gpu_share: GpuShare | None = None
    is_revocable: bool = False
    """The task may use nodes that are lent for a part of the day."""
    ignores_pods: bool = False
    """No term about other pods counts, be it of this task or about it: whoever looks at such a shape looks at pods apart."""

    is_best_effort: bool = field(init=False)
    """The task asks for nothing but a place."""
    has_affinity: bool = field(init=False)
    """The task has pod affinity or anti-affinity terms."""
    is_self_contained: bool = field(init=False)
    """Placing one such task changes how nodes look to the next one only on the node that took it."""
    looks_at_pods_only: bool = field(init=False)
    """Beyond the node that took it, only terms about pods can tie it to the next one: affinity, anti-affinity, spread."""

    def __post_init__(self) -> None:
        """Compute what is asked for every task and node."""
        terms = (self.affinity.required, self.affinity.preferred, self.anti_affinity.required, self.anti_affinity.preferred)
        object.__setattr__(self, "is_best_effort", not any(amount for name, amount in self.request.items() if name != "pods"))
        object.__setattr__(self, "has_affinity", any(terms))
        holds = bool(self.gpu_share or self.host_ports or self.volume_claims or self.resource_claims)
        object.__setattr__(self, "is_self_contained", not (any(terms) or self.spread or holds))
        object.__setattr__(self, "looks_at_pods_only", not holds)

    def apart(self) -> "Shape":
        """Return what is left of the shape without other pods: the same for all shapes with the same placement key."""
        nobody = PodAffinity()
        return replace(self, namespace="", labels={}, affinity=nobody, anti_affinity=nobody, spread=(), ignores_pods=True)

    def placement_key(self) -> Hashable:
        """Return what matters when no other pod matters: tasks that differ only in namespace and labels have the same key.

        Gangs of several teams often ask for the same.
        """
        return (
            _items(self.request), self.scoring_request, self.booked_request, _items(self.node_selector), self.node_terms,
            self.node_preferences, self.tolerations, self.images, self.containers, _items(self.annotations),
            self.container_limits, self.is_guaranteed, self.is_revocable, self.gpu_share,
        )  # fmt: skip


def _items(mapping: Mapping[str, object]) -> Hashable:
    return tuple(sorted(mapping.items())) if mapping else ()
