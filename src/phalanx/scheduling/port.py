"""What carrying out asks of the outside: objects to look at, writes, and time.

There are two outsides: an API server over HTTP (`live/api_port.py`) and the memory store in virtual time (`sim/store_port.py`).
Everything in this package runs on both, unchanged. Answers to writes come by a call: later from an API server, at once from the
memory store, so nobody here may rely on either.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from phalanx.controllers.controller import Bind, Create, Delete, Evict, Patch, RecordEvent, View
from phalanx.errors import ClusterError

SingleWrite = Create | Patch | Delete | Evict | Bind | RecordEvent
Done = Callable[[ClusterError | None], None]
"""Called with the refusal of a write, or with None when it is through."""
Report = Callable[[str], None]
"""Called with what goes wrong, in a sentence for the log."""


class Effort(Enum):
    """How long a write is tried that cannot be carried out at the moment."""

    USUAL = "a few times, for about a minute"
    JOINED = "as usual; a patch goes together with others of the object that wait, and all of them get its answer"
    ONCE = "the first answer counts: a disruption budget that says no is left to the next session"
    ENDLESS = "as long as we may write: half of a gang would stay behind otherwise"


class Timer(Protocol):
    """Something that happens later."""

    def cancel(self) -> None:
        """Let it not happen."""
        ...


class Clock(Protocol):
    """Time, real or virtual."""

    @property
    def now(self) -> float:
        """Seconds since 1970, as objects say it; on a real cluster it may jump."""
        ...

    @property
    def elapsed(self) -> float:
        """Seconds that never go back: waits and durations are measured by it."""
        ...

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call something after some seconds; with 0 soon, but not before this call returns."""
        ...


class ClusterPort(Protocol):
    """A cluster to look at and to write to."""

    @property
    def view(self) -> View:
        """The objects as they are known here."""
        ...

    @property
    def clock(self) -> Clock:
        """The time that this cluster lives in."""
        ...

    def send(
        self, write: SingleWrite, done: Done | None = None, *, effort: Effort = Effort.USUAL, is_note: bool = False
    ) -> None:  # fmt: skip
        """Carry out a write; writes about one object keep their order. A note may wait until nothing else is to be sent."""
        ...
