"""Work for a simulated cluster: gangs with a time of arrival and a duration, whatever they come from.

Traces (`traces/`) and the generator (`generate.py`) make workloads; `workload_objects.py` turns them into objects of a cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
