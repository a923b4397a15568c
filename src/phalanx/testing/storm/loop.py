"""An event loop in virtual time that several processes share: each can be frozen, as by SIGSTOP, go on, or be killed.

Whatever a process plans carries its context, and so does what it awaits. While it is frozen its callbacks are held back in their
order, whatever the others do; after its end they are held back for good, and no `finally` of it runs: nothing is left but what it
wrote. Only when nobody looks any more is it buried, so that its tasks end.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from heapq import heappush
from typing import Any

from phalanx.sim.virtual_loop import VirtualTimeLoop

OWNER: ContextVar["Process | None"] = ContextVar("owner", default=None)


class Process:
    """What shares a fate."""

    def __init__(self, name: str) -> None:
        """Run."""
        self.name = name
        self.is_frozen = self.is_dead = False
        self._held: list[asyncio.Handle] = []

    def context(self) -> Context:
        """Return a context in which everything belongs to this process."""
        context = copy_context()
        context.run(OWNER.set, self)
        return context

    def hold(self, step: asyncio.Handle) -> bool:
        """Keep what cannot happen now; tell whether that is so."""
        is_held = self.is_frozen or self.is_dead
        if is_held:
            self._held.append(step)
        return is_held

    def thaw(self) -> None:
        """Go on: what was held back happens now, in its order."""
        self.is_frozen = False
        if not self.is_dead:
            self._go_on()

    def kill(self) -> None:
        """End without another word."""
        self.is_dead = True

    def bury(self) -> None:
        """Let what was held back happen, when it does no harm any more."""
        self.is_frozen = self.is_dead = False
        self._go_on()

    def _go_on(self) -> None:
        loop, held, self._held = asyncio.get_running_loop(), self._held, []
        assert isinstance(loop, StormLoop), "processes run on no other"
        for step in held:
            loop.plan(step)


class _Step(asyncio.Handle):
    """A callback of a process: a handle of its own, since a storm makes hundreds of thousands of them."""

    __slots__ = ("process",)
    process: Process

    def _run(self) -> None:
        if not self.process.hold(self):
            super()._run()


class _TimedStep(asyncio.TimerHandle):
    """A callback of a process, for a moment."""

    __slots__ = ("process",)
    process: Process
    _scheduled: bool

    def _run(self) -> None:
        if not self.process.hold(self):
            super()._run()


class StormLoop(VirtualTimeLoop):
    """Runs the callbacks of processes that run."""

    # What asyncio's own loop works through; it has no public way to plan a handle that is there already.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def call_soon(  # type: ignore[override]  # the type there says the same in more words
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Plan a callback for the process in whose context it is planned."""
        own = context if context is not None else copy_context()
        process = own.get(OWNER)
        if process is None:
            return super().call_soon(callback, *args, context=own)
        step = _Step(callback, args, self, own)
        step.process = process
        self._ready.append(step)
        return step

    def call_at(  # type: ignore[override]  # see above
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Plan a callback for a moment."""
        own = context if context is not None else copy_context()
        process = own.get(OWNER)
        if process is None:
            return super().call_at(when, callback, *args, context=own)
        step = _TimedStep(when, callback, args, self, own)
        step.process = process
        heappush(self._scheduled, step)
        step._scheduled = True  # so that asyncio counts it when it is cancelled
        return step

    def plan(self, step: asyncio.Handle) -> None:
        """Plan what was held back."""
        self._ready.append(step)
