"""The inside of a node: CPUs in NUMA nodes, and how its kubelet hands them out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumaTopology:
    """One node. CPUs are counted, not named: which of them a container gets is the kubelet's business."""

    node: str
    cpu_policy: str = "none"
    """`static` gives containers of guaranteed pods whole CPUs of their own."""
    topology_policy: str = "none"
    """How strictly such CPUs must share NUMA nodes: none, best-effort, restricted or single-numa-node."""
    cpus: tuple[int, ...] = ()
    """CPUs of each NUMA node."""
    free: tuple[int, ...] = ()
    """CPUs of each NUMA node that no container has for its own and the kubelet does not keep."""
