"""How much queues have used in the past, as somebody measured it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

RESOURCES = ("cpu", "memory", "gpu")
"""What is measured: cores, bytes and devices."""

Series = tuple[tuple[float, float], ...]
"""Moments in seconds since 1970, in order, each with the amount in use from then on."""


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """Amounts over time; several series of one thing add up."""

    used: Mapping[str, Mapping[str, tuple[Series, ...]]] = field(default_factory=dict)
    """By queue and resource."""
    capacity: Mapping[str, tuple[Series, ...]] = field(default_factory=dict)
    """What the cluster had, by resource; without one it counts as what it has now."""

    @property
    def measured(self) -> float:
        """When the newest sample was taken; 0 without any."""
        lines = [*self.capacity.values(), *(lines for queue in self.used.values() for lines in queue.values())]
        return max((series[-1][0] for each in lines for series in each if series), default=0.0)

    def plus(self, other: "QueueHistory") -> "QueueHistory":
        """Return both together."""
        queues = {
            name: _joined(self.used.get(name, {}), other.used.get(name, {})) for name in dict.fromkeys((*self.used, *other.used))
        }
        return QueueHistory(queues, _joined(self.capacity, other.capacity))


def _joined(left: Mapping[str, tuple[Series, ...]], right: Mapping[str, tuple[Series, ...]]) -> dict[str, tuple[Series, ...]]:
    return {name: (*left.get(name, ()), *right.get(name, ())) for name in dict.fromkeys((*left, *right))}
