"""Work for a simulated cluster: gangs with a time of arrival and a duration, wherever they come from, and machines.

Traces (`traces/`) and the generator (`generate.py`) make workloads; `workload_objects.py` turns them into objects of a cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from phalanx.model.resources import CPU, GPU, MEMORY, PODS

LOW, NORMAL, HIGH = 10, 50, 90
"""Priorities. All are below 100: from there on KAI takes a gang for one that must not be preempted."""
GPU_MODEL = "nvidia.com/gpu.product"
"""The label of a node that names the model of its GPUs."""
PODS_PER_NODE = 110
"""The default of kubelets."""
MIB_PER_GIB = 1024
SECONDS_PER_MINUTE = 60


@dataclass(frozen=True, slots=True)
class WorkloadPart:
    """Equal tasks of a gang: a role such as `ps` or `worker`."""

    tasks: int
    request: Mapping[str, str]
    """Of one task, as quantities: ``{"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}``."""
    name: str = "worker"
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that a node must have."""


@dataclass(frozen=True, slots=True)
class WorkloadGang:
    """Work that starts together: submitted so many seconds after the start, done after so many with its minimum running."""

    name: str
    submitted: float
    duration: float
    parts: tuple[WorkloadPart, ...]
    queue: str = "default"
    priority: int = 0
    minimum: int = 0
    """How many tasks must start together; 0: all."""
    namespace: str = "default"
    checkpoint_every: float = 0.0
    """How long it works from one checkpoint to the next; 0 if it saves nothing."""

    @property
    def tasks(self) -> int:
        """How many tasks it has."""
        return sum(part.tasks for part in self.parts)


@dataclass(frozen=True, slots=True)
class Machine:
    """A node that offers so much."""

    name: str
    offers: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workload:
    """Gangs in the order of their arrival, the machines they run on, and the weights of their queues."""

    gangs: tuple[WorkloadGang, ...]
    machines: tuple[Machine, ...]
    weight_by_queue: Mapping[str, int] = field(default_factory=dict)

    def with_checkpoints(self, minutes: float) -> "Workload":
        """Return the same with gangs that save their work every so many minutes, or with 0 never."""
        every = minutes * SECONDS_PER_MINUTE
        return replace(self, gangs=tuple(replace(gang, checkpoint_every=every) for gang in self.gangs)) if every else self


# --- quantities and machines --------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)  # a trace has millions of tasks, but few sizes
def quantities(*, gpus: int = 0, cpu_milli: int = 0, memory_mib: int = 0) -> Mapping[str, str]:
    """Return amounts as quantities; what is 0 is left out."""
    found = {CPU: _cpu(cpu_milli), MEMORY: _memory(memory_mib), GPU: str(gpus)}
    return {name: quantity for name, quantity in found.items() if quantity != "0"}


def machine(name: str, *, labels: dict[str, str] | None = None, gpus: int = 0, cpu_milli: int = 0, memory_mib: int = 0) -> Machine:
    """Return a machine that offers this, and room for as many pods as usual."""
    offers = quantities(gpus=gpus, cpu_milli=cpu_milli, memory_mib=memory_mib)
    return Machine(name, {**offers, PODS: str(PODS_PER_NODE)}, labels or {})


def _cpu(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _memory(mib: int) -> str:
    if not mib:
        return "0"
    return f"{mib}Mi" if mib % MIB_PER_GIB else f"{mib // MIB_PER_GIB}Gi"
