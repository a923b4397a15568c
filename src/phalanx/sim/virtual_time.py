"""Virtual time: things happen at a moment, at one moment by rank, and at one rank in the order in which they were planned."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush
from itertools import count


class Precedence(IntEnum):
    """What comes first at one moment: the world changes, kubelets and controllers follow, work is saved, sessions decide."""

    WORLD = 0
    KUBELET = 1
    WORK = 2
    CONTROLLER = 3
    CHECKPOINT = 4
    PLAN = 5
    SESSION = 6


@dataclass(slots=True)
class VirtualTimer:
    """Something planned; cancel it by forgetting what to do."""

    moment: float
    rank: int
    action: Callable[[], None] | None

    def cancel(self) -> None:
        """Do nothing when the moment comes."""
        self.action = None


class VirtualTime:
    """Plans and carries out."""

    def __init__(self, now: float) -> None:
        """Begin at a moment, in seconds since 1970."""
        self.now = now
        self._timers: list[tuple[float, int, int, VirtualTimer]] = []
        """By moment, rank and number."""
        self._numbers = count()

    def after(self, seconds: float, rank: Precedence, action: Callable[[], None]) -> VirtualTimer:
        """Plan something for later, or for this moment with 0."""
        return self.at(self.now + max(seconds, 0.0), rank, action)

    def at(self, moment: float, rank: Precedence, action: Callable[[], None]) -> VirtualTimer:
        """Plan something for a moment; what is past happens now."""
        timer = VirtualTimer(max(moment, self.now), rank, action)
        heappush(self._timers, (timer.moment, rank, next(self._numbers), timer))
        return timer

    def next_time(self) -> float | None:
        """Return the moment of what is planned next; None when nothing is."""
        while self._timers and self._timers[0][3].action is None:
            heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def next_deed(self, before: Precedence = Precedence.CHECKPOINT) -> float | None:
        """Return the moment of what is planned next besides what may do nothing: checkpoints, plans, sessions; else None."""
        planned = (moment for moment, rank, _, timer in self._timers if timer.action is not None and rank < before)
        return min(planned, default=None)

    def only_saves(self) -> bool:
        """Tell whether nothing but checkpoints is still to come."""
        return all(timer.action is None or rank == Precedence.CHECKPOINT for _, rank, _, timer in self._timers)

    def step(self) -> None:
        """Do what is planned next."""
        self.now, _, _, timer = heappop(self._timers)
        if timer.action is not None:
            timer.action()

    def advance(self, moment: float) -> None:
        """Do everything that is due until a moment, and be there."""
        while (due := self.next_time()) is not None and due <= moment:
            self.step()
        self.now = max(self.now, moment)
