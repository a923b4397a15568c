"""The memory store as carrying out sees it: writes are carried out at once, binds after a while, in virtual time."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import assert_never

from phalanx.controllers.controller import Bind, Create, Delete, Evict, Patch, RecordEvent, View
from phalanx.errors import Busy, ClusterError, Exists, Missing, ServerError
from phalanx.scheduling.port import Done, Effort, SingleWrite
from phalanx.sim.settings import AT_ONCE, Span
from phalanx.sim.virtual_time import Precedence, VirtualTime, VirtualTimer
from phalanx.store import patches
from phalanx.store.memory import MemoryStore

RETRY_SECONDS = 1.0


class RankedClock:
    """Virtual time for those who act at one rank of a moment."""

    def __init__(self, time: VirtualTime, rank: Precedence) -> None:
        """Let what is planned here happen at this rank."""
        self._time, self._rank = time, rank

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self._time.now

    @property
    def elapsed(self) -> float:
        """The same: virtual time never jumps."""
        return self._time.now

    def after(self, seconds: float, action: Callable[[], None]) -> VirtualTimer:
        """Call something after some seconds."""
        return self._time.after(seconds, self._rank, action)


class StorePort:
    """Writes to a store."""

    def __init__(
        self, store: MemoryStore, time: VirtualTime, rank: Precedence, *, bind: Span = AT_ONCE, chance: Random | None = None
    ) -> None:
        """Act at one rank of each moment; `bind` is how long binds take, drawn by `chance`."""
        self._store, self._time, self._bind_delay, self._chance = store, time, bind, chance or Random(0)
        self._clock = RankedClock(time, rank)
        self.recorded: list[Callable[[RecordEvent], None]] = []
        """Called with every event that somebody records."""
        self.evicting: list[Callable[[Evict], None]] = []
        """Called with every eviction before it is tried; a budget may still say no."""
        self.evicted: list[Callable[[Evict], None]] = []
        """Called with every eviction that went through."""

    @property
    def view(self) -> View:
        """The objects of the store."""
        return self._store

    @property
    def clock(self) -> RankedClock:
        """Virtual time."""
        return self._clock

    def send(
        self, write: SingleWrite, done: Done | None = None, *, effort: Effort = Effort.USUAL, is_note: bool = False
    ) -> None:  # fmt: skip
        """Carry out a write at once, or a bind after its delay."""
        delay = self._bind_delay.draw(self._chance) if isinstance(write, Bind) else 0.0
        if delay:
            self._time.after(delay, Precedence.KUBELET, partial(self._try, write, done, effort))
        else:
            self._try(write, done, effort)

    def _try(self, write: SingleWrite, done: Done | None, effort: Effort) -> None:
        problem: ClusterError | None = None
        try:
            self._carry_out(write)
        except ClusterError as refusal:
            if effort is Effort.ENDLESS and isinstance(refusal, Busy | ServerError):
                self._clock.after(RETRY_SECONDS, partial(self._try, write, done, effort))
                return
            problem = refusal  # gone or changed meanwhile, where nobody waits for the answer: the next session sees what is there
        if done is not None:
            done(problem)

    def _carry_out(self, write: SingleWrite) -> None:
        match write:
            case Create(document):
                with suppress(Exists):
                    self._store.create(document)
            case Patch(kind, namespace, name, patch, is_status):
                form = patches.STRATEGIC if write.is_by_type else patches.MERGE
                self._store.patch(kind, namespace, name, patch, form=form, is_status=is_status)
            case Delete(kind, namespace, name, uid):
                with suppress(Missing):
                    self._store.delete(kind, namespace, name, uid=uid)
            case Evict():
                self._evict(write)
            case Bind(namespace, name, node, uid, annotations):
                self._store.bind(namespace, name, node, uid=uid, annotations=annotations)
            case RecordEvent():
                for listener in self.recorded:
                    listener(write)
            case _:
                assert_never(write)

    def _evict(self, write: Evict) -> None:
        for listener in self.evicting:
            listener(write)
        with suppress(Missing):
            self._store.evict(write.namespace, write.name, uid=write.uid)
            for listener in self.evicted:
                listener(write)
