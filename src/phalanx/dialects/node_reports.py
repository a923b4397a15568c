"""What others report about nodes: their NUMA topology (Numatopology) and what is really in use (NodeMetrics)."""

from collections.abc import Iterable

from phalanx.dialects import schema
from phalanx.dialects.field_values import integer, seconds
from phalanx.dialects.kinds.reader import blank
from phalanx.dialects.kinds.volcano import CpuInfo, Numatopology, NumatopologySpec, ResourceInfo
from phalanx.errors import SnapshotError
from phalanx.model.node import NodeUsage
from phalanx.model.numa import NumaTopology
from phalanx.model.resources import CPU, MEMORY, Resources, amount_of, read_resources

MOST_CPUS = 1 << 16

Measurement = tuple[Resources, float]
"""What was in use, and when."""


class NodeMetrics(schema.Read):
    metadata: schema.Meta
    timestamp: str | None = None
    usage: schema.Quantities = None


def numa_topology(read: Numatopology) -> NumaTopology:
    """Read a Numatopology; it has the name of its node."""
    spec = read.spec or blank(NumatopologySpec)
    policies, places = spec.policies or {}, {_cpu(text): place for text, place in (spec.cpu_detail or {}).items()}
    numas = sorted({place.numa or 0 for place in places.values()})
    free = _free(spec, places)
    return NumaTopology(
        read.metadata.name, policies.get("CPUManagerPolicy") or "none", policies.get("TopologyManagerPolicy") or "none",
        _count(places, places, numas), _count(free, places, numas),
    )  # fmt: skip


def _count(cpus: Iterable[int], places: dict[int, CpuInfo], numas: list[int]) -> tuple[int, ...]:
    found = [places[cpu].numa or 0 for cpu in cpus]
    return tuple(found.count(numa) for numa in numas)


def _free(spec: NumatopologySpec, places: dict[int, CpuInfo]) -> list[int]:
    """Return the CPUs that can be handed out: the kubelet keeps the first cores for itself."""
    resource = (spec.numares or {}).get(CPU) or blank(ResourceInfo)
    in_order = sorted(places, key=lambda cpu: (places[cpu].socket or 0, places[cpu].core or 0, cpu))
    kept = -(-amount_of(CPU, (spec.res_reserved or {}).get(CPU, 0)) // 1000)
    listed = set(_cpu_set(resource.allocatable or ""))
    return [cpu for cpu in in_order[max(kept, 0) :] if cpu in listed]


def _cpu(text: str) -> int:
    return integer(text, where="spec.cpuDetail")


def _cpu_set(text: str) -> Iterable[int]:
    """Read a list such as `0-3,8`."""
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        start = integer(first, where="spec.numares.cpu.allocatable")
        end = integer(last if dash else first, where="spec.numares.cpu.allocatable")
        if not 0 <= start <= end < MOST_CPUS:
            raise SnapshotError(f"spec.numares.cpu.allocatable: {part!r} is not a range of CPUs; write for example '0-3,8'")
        yield from range(start, end + 1)


def measurement(read: NodeMetrics) -> Measurement:
    """Read NodeMetrics; they have the name of their node."""
    return read_resources(read.usage, where="usage"), seconds(read.timestamp, where="timestamp")


def node_usage(measured: Measurement, node: schema.NodeRead) -> NodeUsage:
    """Return how much of a node is in use, as shares of what it offers to pods, as `kubectl top` shows them."""
    used, at = measured
    whole = read_resources((node.status or schema.NodeStatus()).allocatable, where="status.allocatable")
    cpu, memory = (used.get(name, 0) / whole[name] if whole.get(name) else 0.0 for name in (CPU, MEMORY))
    return NodeUsage(cpu, memory, at)
