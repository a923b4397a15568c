"""How long a gang runs: what is expected, with a spread, and what it may not exceed. Seconds; `inf` where nobody knows."""

from dataclasses import dataclass
from math import inf

ON_TIME_SECONDS, ON_TIME_PART = 60.0, 0.05
"""A gang is late once it runs longer than expected by so many seconds, or by this part of what was expected: starts are written in
whole seconds, and pods take a moment to end."""
LATE_PART = 0.5
"""Of a gang that is late nothing is known any more; the middle guess is that it needs half as long again."""


@dataclass(frozen=True, slots=True)
class RunTimes:
    """The run time of a gang from start to end, as far as anybody says."""

    shortest: float = inf
    longest: float = inf
    """Between these two the end is expected."""
    maximum: float = inf
    """After which it is ended, or should be; a limit, not a guess."""
    source: str = ""
    """Who says what is expected, as a person would say it; empty when nobody does."""
    limit: str = ""
    """Who says what the maximum is."""
    faults: tuple[str, ...] = ()
    """What could not be read."""
    is_guess: bool = False
    """Nobody says what is expected: it is what others like it took. It tells when room may be there, and bounds nothing."""

    @property
    def expected(self) -> float:
        """The middle of what is expected; without that the maximum."""
        return min((self.shortest + self.longest) / 2, self.maximum)

    @property
    def bound(self) -> float:
        """How long it runs at most, by the longest that is expected and by the maximum."""
        return self.maximum if self.is_guess else min(self.longest, self.maximum)

    @property
    def is_known(self) -> bool:
        """Tell whether anybody says when it ends."""
        return self.expected < inf

    def end(self, begun: float, now: float) -> float:
        """Return when it ends that began so long ago and still runs; `inf` when nobody knows."""
        if not self.is_known:
            return inf
        for seconds in (self.expected, min(self.longest, self.maximum), self.maximum):
            if seconds < inf and now < begun + seconds + on_time(seconds):
                return max(begun + seconds, now)
        return now + (now - begun) * LATE_PART


UNKNOWN = RunTimes()


def on_time(seconds: float) -> float:
    """Return for how long after its expected end a gang is not late yet."""
    return max(ON_TIME_SECONDS, seconds * ON_TIME_PART)
