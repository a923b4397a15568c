"""Time on a real cluster: that of the event loop. On a loop with virtual time everything that asks here lives in that.

What time it is says the API server. The times on objects are by its clock, and decisions compare them with now: how long a gang has
been stale, when a pod was bound, when a bind may be tried again. By the clock of this machine, ten minutes behind, a broken gang
would not be healed for ten minutes; ahead, nobody would get any time. So the clock of the machine counts only as far as the answers
of the server agree with it, and only until the first one: from then on time goes on from there, whatever is done to the clock here.
"""

import asyncio
import time
from collections.abc import Callable

DATE_SECONDS = 1.0
"""The servers' dates are in whole seconds."""


def boottime() -> float:
    """Return seconds by a clock that never goes back and counts time that the machine slept; where there is none, the monotonic."""
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class LoopClock:
    """Waits by the event loop, and knows what time people say it is."""

    def __init__(self, wall: Callable[[], float] = time.time, boot: Callable[[], float] = boottime) -> None:
        """`wall` returns seconds since 1970, `boot` seconds that go on while the machine sleeps."""
        self._wall, self._boot = wall, boot
        self._offset: float | None = None
        """What to add to `boot` for the time of the server; None before its first answer."""

    @property
    def now(self) -> float:
        """Seconds since 1970, by the clock of the server once it has answered."""
        return self._wall() if self._offset is None else self._boot() + self._offset

    def hear(self, date: float, seconds: float) -> None:
        """Take in what time it was by the server, in whole seconds, when it answered a request that took so long.

        That was at some moment between request and answer. An answer that is read late, because this process was stopped, leaves
        the time as it is.
        """
        answered = self._boot()
        offset = self._wall() - answered if self._offset is None else self._offset
        self._offset = min(max(offset, date - answered), date + DATE_SECONDS - (answered - seconds))

    @property
    def elapsed(self) -> float:
        """Seconds that never go back; they may stand still while the machine sleeps."""
        return asyncio.get_running_loop().time()

    @property
    def since_boot(self) -> float:
        """Seconds that never go back nor stand still: how long a lease holds is judged by it."""
        return self._boot()

    def after(self, seconds: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Call something after some seconds."""
        return asyncio.get_running_loop().call_later(seconds, action)
