"""A cluster to carry out on that does nothing by itself: requests wait for their answers, and time stands until it is set."""

from collections.abc import Callable

from phalanx.controllers.controller import View
from phalanx.errors import ClusterError
from phalanx.scheduling.port import Done, Effort, SingleWrite
from phalanx.store.kube.mirror import Mirror


class Waiting:
    """Something that happens later."""

    def __init__(self, outside: "Outside", moment: float, action: Callable[[], None]) -> None:
        self._outside, self.moment, self.action = outside, moment, action

    def cancel(self) -> None:
        self._outside.timers.remove(self)


class Outside:
    """A port and its clock: requests wait until they are answered, and time stands until it is set."""

    def __init__(self, mirror: Mirror, now: float) -> None:
        self.view: View = mirror
        self.now = self.elapsed = now
        self.sent: list[tuple[SingleWrite, Done | None]] = []
        self.timers: list[Waiting] = []

    @property
    def clock(self) -> "Outside":
        return self

    def after(self, seconds: float, action: Callable[[], None]) -> Waiting:
        self.timers.append(Waiting(self, self.now + seconds, action))
        return self.timers[-1]

    def send(self, write: SingleWrite, done: Done | None = None, *, effort: Effort = Effort.USUAL, is_note: bool = False) -> None:
        self.sent.append((write, done))

    def answer(self, problem: ClusterError | None) -> SingleWrite:
        """Answer the first request, and return it."""
        write, done = self.sent.pop(0)
        if done is not None:
            done(problem)
        return write

    def wait(self) -> float:
        """Let the next timer come; return after how many seconds it did."""
        timer, before = self.timers.pop(0), self.now
        self.now = timer.moment
        timer.action()
        return self.now - before
