"""A node, and what else of the cluster placement reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from phalanx.model.resources import Resources
from phalanx.model.selectors import Labels
from phalanx.model.shape import UNKNOWN_GPU_MEMORY_MIB, Taint

GPU_MEMORY = "nvidia.com/gpu.memory"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A machine that runs tasks."""

    name: str
    labels: Labels = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    is_unschedulable: bool = False
    allocatable: Resources = field(default_factory=dict)
    """What tasks may use, oversubscription and volume slots included."""
    reported: Resources = field(default_factory=dict)
    """What the node itself reports as allocatable."""
    image_bytes: Mapping[str, int] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    is_ready: bool = True
    """The node says that it is; one that says nothing counts as ready."""

    @property
    def gpu_memory_mib(self) -> float:
        """The memory of each of its GPUs, cut to a multiple of 100; 100 when no label says it."""
        label = self.labels.get(GPU_MEMORY, "")
        memory = float(label if label.isdecimal() and int(label) else UNKNOWN_GPU_MEMORY_MIB)
        return memory // 100 * 100 if memory > 100 else memory


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """How much of a node was really in use, as shares of what it has, and when that was measured."""

    cpu: float
    memory: float
    measured: float


@dataclass(frozen=True, slots=True)
class HyperNodeMember:
    """One line of a HyperNode's member list."""

    is_hypernode: bool = False
    name: str = ""
    pattern: str = ""
    labels: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class HyperNode:
    """A network domain: nodes or smaller domains that are close to each other."""

    name: str
    tier: int
    tier_name: str = ""
    members: tuple[HyperNodeMember, ...] = ()
