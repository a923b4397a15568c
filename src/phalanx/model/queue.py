"""A queue: whose turn it is, and how much it may have."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from phalanx.model.resources import Resources

ROOT = "root"


@dataclass(frozen=True, slots=True)
class NodeGroupAffinity:
    """Which groups of nodes the tasks of a queue may use, and which they would rather use or avoid."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    """The most wanted first."""
    forbidden: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether it names no group at all."""
        return not (self.required or self.preferred or self.forbidden or self.avoided)


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """KAI's numbers of a queue, each for cpu (thousandths), memory (bytes) and GPUs (devices); -1 is without bound."""

    quota: tuple[float, ...]
    limit: tuple[float, ...]
    weight: tuple[float, ...]
    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """One queue, a leaf or an inner node of the queue tree."""

    name: str
    uid: str = ""
    weight: int = 1
    priority: int = 0
    parent: str = ""
    created: float = 0.0
    capability: Resources | None = None
    deserved: Resources = field(default_factory=dict)
    guarantee: Resources = field(default_factory=dict)
    is_reclaimable: bool = True
    state: str = "Open"
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_groups: NodeGroupAffinity | None = None
    bounds: QueueBounds | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether the queue takes new work."""
        return self.state == "Open"
