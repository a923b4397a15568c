"""Time on a real cluster: that of the event loop. On a loop with virtual time everything that asks here lives in that."""

import asyncio
import time
from collections.abc import Callable


def boottime() -> float:
    """Return seconds by a clock that never goes back and counts time that the machine slept; where there is none, the monotonic."""
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class LoopClock:
    """Waits by the event loop, and knows what time people say it is."""

    def __init__(self, wall: Callable[[], float] = time.time, boot: Callable[[], float] = boottime) -> None:
        """`wall` returns seconds since 1970, `boot` seconds that go on while the machine sleeps."""
        self._wall, self._boot = wall, boot

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self._wall()

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
