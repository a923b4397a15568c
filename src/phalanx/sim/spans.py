"""Durations of which some are drawn."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds, or a range of which some are drawn."""

    low: float
    high: float

    def draw(self, chance: Random) -> float:
        """Return some seconds of the range; a range of one value takes no chance."""
        return self.low if self.low == self.high else chance.uniform(self.low, self.high)
