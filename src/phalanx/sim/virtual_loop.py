"""An event loop in virtual time: whoever sleeps is woken at once, and the clock says that the time has passed.

The process that runs on a real cluster runs on it unchanged, against a store in memory (`memory_client.py`): minutes of waiting, of
leases and of back-off take milliseconds, and the same input gives the same order of events.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from phalanx.errors import StuckError

START = 1000.0
"""Of the loop's own clock: not 0, which some take for "never"."""
T = TypeVar("T")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in the order of their moments, without waiting for any."""

    def __init__(self) -> None:
        """Begin at a moment."""
        self.moment = START
        super().__init__(_InstantSelector(self))

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self.moment


class _InstantSelector(selectors.SelectSelector):
    """Answers at once; where a real one would wait for so long, the time of the loop has passed."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let virtual time pass unless something is ready."""
        if timeout == 0:  # something is planned for now, and there are no sockets to keep waiting
            return []
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise StuckError("nothing is planned any more, and nobody is done; something waits for an event that never comes")
        self._loop.moment += max(timeout, 0.0)
        return []


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
