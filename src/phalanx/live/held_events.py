"""Events that wait until pods are bound: making one takes as long as a bind, and nobody needs it before the gang runs."""

import asyncio
from collections import deque
from collections.abc import Callable

from phalanx.controllers.controller import RecordEvent
from phalanx.live.clock import LoopClock
from phalanx.scheduling.events import MOST_WAITING, EventRecorder

STEP_SECONDS = 0.02
LONGEST_HOLD_SECONDS = 2.0
"""For so long events wait at a time, however many pods are being bound."""
AT_ONCE = 50
"""So many are recorded in one step; sessions and answers have their turn in between."""


class HeldEvents:
    """Records events at once, or a little later with the time at which they happened."""

    def __init__(self, recorder: EventRecorder, clock: LoopClock, *, is_busy: Callable[[], bool]) -> None:
        """`is_busy` says whether something more important waits."""
        self._recorder, self._clock, self._is_busy = recorder, clock, is_busy
        self._held: deque[tuple[RecordEvent, float]] = deque()
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def record(self, event: RecordEvent) -> None:
        """Record an event; when too many are held back it is left out, as it is when too many wait to be sent."""
        if self._held or self._is_busy():
            self._hold(event)
        else:
            self._recorder.record(event)

    def forget(self) -> None:
        """Forget what was held back: somebody else leads."""
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _hold(self, event: RecordEvent) -> None:
        if not self._held:
            self._until = self._clock.elapsed + LONGEST_HOLD_SECONDS
            self._timer = self._clock.after(STEP_SECONDS, self._look)
        if len(self._held) < MOST_WAITING:
            self._held.append((event, self._clock.now))

    def _look(self) -> None:
        if not self._is_busy() or self._clock.elapsed >= self._until:
            for _ in range(min(AT_ONCE, len(self._held))):
                self._recorder.record(*self._held.popleft())
        if self._held:
            self._timer = self._clock.after(STEP_SECONDS, self._look)
