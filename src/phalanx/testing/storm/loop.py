"""An event loop in virtual time that several processes share: each can be frozen, as by SIGSTOP, go on, or be killed.

Whatever a process plans carries its context, and so does what it awaits. While it is frozen its callbacks are held back in their
order, whatever the others do; after its end they are held back for good, and no `finally` of it runs: nothing is left but what it
wrote. Only when nobody looks any more is it buried, so that its tasks end.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any

from phalanx.sim.virtual_loop import VirtualTimeLoop

OWNER: ContextVar["Process | None"] = ContextVar("owner", default=None)


class Process:
    """What shares a fate."""

    def __init__(self, name: str) -> None:
        """Run."""
        self.name = name
        self.is_frozen = self.is_dead = False
        self._held: list[_Step] = []

    def context(self) -> Context:
        """Return a context in which everything belongs to this process."""
        context = copy_context()
        context.run(OWNER.set, self)
        return context

    def hold(self, step: "_Step") -> bool:
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
        held, self._held = self._held, []
        for step in held:
            step.plan()


class _Step:
    """A callback of a process."""

    __slots__ = ("_args", "_callback", "_context", "_loop", "_process", "handle")

    def __init__(
        self, loop: "StormLoop", process: Process, callback: Callable[..., Any], args: tuple[Any, ...], context: Context
    ) -> None:
        self._loop, self._process, self._callback, self._args, self._context = loop, process, callback, args, context
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        if (self.handle is None or not self.handle.cancelled()) and not self._process.hold(self):
            self._callback(*self._args)

    def plan(self) -> None:
        """Let it happen soon."""
        self._loop.plan_step(self, self._context)


class StormLoop(VirtualTimeLoop):
    """Runs the callbacks of processes that run."""

    def call_soon(  # type: ignore[override]  # the type there says the same in more words
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Plan a callback for the process in whose context it is planned."""
        own = context if context is not None else copy_context()
        process = own.get(OWNER)
        if process is None:
            return super().call_soon(callback, *args, context=own)
        step = _Step(self, process, callback, args, own)
        step.handle = super().call_soon(step, context=own)
        return step.handle

    def call_at(  # type: ignore[override]  # see above
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Plan a callback for a moment."""
        own = context if context is not None else copy_context()
        process = own.get(OWNER)
        if process is None:
            return super().call_at(when, callback, *args, context=own)
        step = _Step(self, process, callback, args, own)
        handle = super().call_at(when, step, context=own)
        step.handle = handle
        return handle

    def plan_step(self, step: _Step, context: Context) -> None:
        """Plan what was held back."""
        super().call_soon(step, context=context)
