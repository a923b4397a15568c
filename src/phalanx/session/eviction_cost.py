"""What the plugin `evictioncost` wants of actions that evict."""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class EvictionCostSettings:
    """How much an eviction may destroy."""

    most_lost: float = inf
    """For each GPU second that the preemptor would wait: so many may be lost; `inf` for any."""
