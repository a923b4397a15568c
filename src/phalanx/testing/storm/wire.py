"""The connection of one replica to the API server, and everything that can go wrong on it.

A request is judged when it goes out (may we write?), takes effect on the server at a moment of its own, and is answered at another:
the process that sent it may be frozen or dead by then. Faults come from windows, each with a kind, a share of the requests, and an
end; which requests are hit is drawn from the seed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from enum import Enum
from functools import partial
from random import Random
from typing import Any

from phalanx.errors import Busy, ClusterError, Conflict, Forbidden, Gone, Missing, ServerError, Unreachable
from phalanx.live.outbox import BUDGET
from phalanx.model.kinds import POD, Document, Kind
from phalanx.model.watch_event import BOOKMARK
from phalanx.sim.memory_client import BETWEEN_BOOKMARKS_SECONDS, LEASES, MemoryClient
from phalanx.store.api_client import Change
from phalanx.store.selection import selection
from phalanx.testing.storm.server import Server

LATEST_SECONDS = 5.0
"""So much later than others a request takes effect."""
TIMEOUT_SECONDS = 30.0
"""For so long a client waits for an answer."""
LONGEST_BEHIND_SECONDS, MOST_REPEATED = 6.0, 30
"""How far a watch that begins anew is behind at most, in seconds and in events."""
LATE_TWICE, SECOND_TIME_SECONDS = ("bind", "evict"), 10.0
"""So long after the first time a request may take effect a second time."""
STORM = "the storm: "
"""How everything begins that goes wrong on the wire, and that no server said."""
SHAKEN_SECONDS = 2.0
"""For so long watches take to go on after a connection was reset."""
WATCHED_FOR_SECONDS = 3.0
"""After so long at most a watch looks whether it was stalled or cut."""
SHORTEST_WAIT_SECONDS = 0.001
"""A timer may fire a nanosecond early, and who waits for that nanosecond waits for ever."""


class Fault(Enum):
    """What can happen to a request or a watch."""

    REFUSED = "fails before it takes effect"
    LOST = "takes effect, and the answer is lost"
    LATE = "takes effect late, and is answered late"
    TWICE = "takes effect twice"
    CONFLICT = "is refused because of a conflict"
    FORBIDDEN = "is a patch or creates something, and is forbidden"
    DISCOVERY = "is a request of the discovery, and fails"
    LEASE = "is about the lease, and fails"
    EVICTION = "is an eviction, and a budget does not allow it"
    CUT = "ends a watch"
    REPEATED = "repeats events of a watch"
    EXPIRED = "ends a watch, and the version is gone"
    SILENT = "lets a watch stay open and say nothing"


OF_WATCHES = frozenset({Fault.CUT, Fault.REPEATED, Fault.EXPIRED, Fault.SILENT})


ONLY: Mapping[Fault | None, tuple[str, ...]] = {Fault.CONFLICT: ("patch", "replace"), Fault.FORBIDDEN: ("patch", "create")}
"""Faults that happen to some verbs alone."""


@dataclass(frozen=True, slots=True)
class Window:
    """For a while, a share of the requests of a kind goes wrong."""

    fault: Fault
    share: float
    until: float
    kinds: frozenset[Kind] = frozenset()
    """Whose watches it is about; all if there are none."""

    def is_about(self, kind: Kind | None) -> bool:
        """Tell whether it is about watches of a kind."""
        return kind is None or not self.kinds or kind in self.kinds


class Witness:
    """Sees what a replica sends, and what becomes of it."""

    def sends(self, wire: "Wire", verb: str, about: str) -> None:
        """A write goes out."""

    def failed(self, wire: "Wire", verb: str, about: str, problem: ClusterError) -> None:
        """It did not reach the server."""

    def refused(self, wire: "Wire", verb: str, about: str, problem: ClusterError) -> None:
        """The server refused it."""

    def evicted(self, pod: Document) -> None:
        """A pod was asked to go."""


@dataclass(frozen=True, slots=True)
class _Sending:
    """How a request travels."""

    fault: Fault | None
    late: float
    """Seconds by which it takes effect late."""
    refused: Callable[[ClusterError], None]
    """Called with a refusal of the server itself."""
    is_late_twice: bool


class Wire(MemoryClient):
    """A client of the server in memory; see `ApiClient`."""

    def __init__(self, server: Server, chance: Random, outside: Context) -> None:
        """Begin with good weather; `outside` is the context in which the server does what it is asked."""
        super().__init__(server.store)
        self._server, self._chance, self._outside = server, chance, outside
        self.windows: list[Window] = []
        self.on_write: Callable[[str, str], None] = lambda verb, about: None
        """Called when a write is sent, before it takes effect."""
        self.last_write: tuple[float, str] | None = None
        """When something was last written that is no lease, and what."""
        self.sent = 0
        """How many requests were made that are no watches and not about leases."""
        self._watches: list[Any] = []
        self.stranded_until = 0.0
        """Binds that are sent before then take effect only then."""
        self._between_bookmarks = BETWEEN_BOOKMARKS_SECONDS
        self.witness, self.identity = Witness(), ""
        """Who looks at what is sent, and whose connection this is."""
        self.lag = 0.0
        """Seconds by which watches are behind, at most."""
        self._shaken_until = 0.0
        """A connection was reset: until then watches are behind."""
        self.faults = 0
        self.is_over = False
        """Nobody looks any more, and nothing is answered."""

    def be_far(self, latency: float, lag: float) -> None:
        """Let requests take so long each way, and watches be behind."""
        self._latency, self.lag = latency, lag

    def close(self) -> None:
        """Hear nothing any more."""
        for watch in self._watches:
            self.store.history.leave(watch)

    def _drawn(self, *faults: Fault, kind: Kind | None = None) -> Fault | None:
        now = asyncio.get_running_loop().time()
        self.windows = [window for window in self.windows if window.until > now]
        for window in self.windows:
            if window.fault in faults and window.is_about(kind) and self._chance.random() < window.share:
                self.faults += 1
                return window.fault
        return None

    # --- requests ----------------------------------------------------------------------------------------------------

    async def _ask(self, verb: str, about: str, answer: Callable[[], Any], *, is_write: bool = False) -> Any:  # Any: per request
        is_lease = about.startswith(LEASES)
        if self.is_over:
            raise Unreachable("the storm is over")
        if is_write and not is_lease and not self.may_write():
            raise Unreachable("not sent: this process does not lead any more")
        if is_write:
            self.on_write(verb, about)
        if is_write and not is_lease:
            self.witness.sends(self, verb, about)
            self.last_write = (asyncio.get_running_loop().time(), f"{verb} {about}")
        if not is_lease:
            self.sent += 1
        fault = self._fault_of(verb, about, is_write=is_write, is_lease=is_lease)
        if fault in (Fault.REFUSED, Fault.DISCOVERY, Fault.LEASE):
            problem = self._failure()
            self.witness.failed(self, verb, about, problem)
            await asyncio.sleep(self._latency)
            raise problem
        if fault is Fault.EVICTION:
            await asyncio.sleep(self._latency)
            raise Busy(f"{STORM}the disruption budget does not allow it", cause=(BUDGET, ""))
        if fault is Fault.CONFLICT:
            await asyncio.sleep(self._latency)
            raise Conflict("the object has been modified; please apply your changes to the latest version and try again")
        if fault is Fault.FORBIDDEN:
            no = Forbidden(f"{STORM}{verb} of {about} is forbidden")
            self.witness.refused(self, verb, about, no)
            await asyncio.sleep(self._latency)
            raise no
        if fault is None and about.startswith("/"):  # half of all requests; what they ask for seldom changes
            await asyncio.sleep(2 * self._latency)
            return answer()
        if fault is Fault.LOST:
            self._shaken_until = asyncio.get_running_loop().time() + SHAKEN_SECONDS
        sending = _Sending(fault, self._late(verb, fault), partial(self.witness.refused, self, verb, about), verb in LATE_TWICE)
        return own(await self._carried(answer, sending))

    def _late(self, verb: str, fault: Fault | None) -> float:
        late = self._chance.uniform(0.0, LATEST_SECONDS) if fault is Fault.LATE else 0.0
        return max(late, self.stranded_until - asyncio.get_running_loop().time()) if verb == "bind" else late

    def _fault_of(self, verb: str, about: str, *, is_write: bool, is_lease: bool) -> Fault | None:
        if is_lease:
            return self._drawn(Fault.LEASE)
        if about.startswith("/"):
            return self._drawn(Fault.DISCOVERY, Fault.REFUSED, Fault.LATE)
        if not is_write:
            return self._drawn(Fault.REFUSED, Fault.LATE)
        if verb == "evict" and self._drawn(Fault.EVICTION):
            return Fault.EVICTION
        fault = self._drawn(Fault.REFUSED, Fault.LOST, Fault.LATE, Fault.TWICE, Fault.CONFLICT, Fault.FORBIDDEN)
        return fault if verb in ONLY.get(fault, (verb,)) else None

    def _failure(self) -> ClusterError:
        kind = self._chance.choice((Unreachable, Unreachable, ServerError, Busy))
        problem = kind(f"{STORM}{kind.__name__}")
        problem.retry_after = self._chance.choice((0.0, 1.0, 5.0)) if kind is Busy else 0.0
        return problem

    async def evict(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Delete a pod as far as disruption budgets allow."""

        def act() -> None:
            pod = self.store.find(POD, namespace, name)
            self.store.evict(namespace, name, uid=uid)
            if pod is not None:
                self.witness.evicted(pod)

        await self._ask("evict", f"pods {name}", act, is_write=True)

    async def _carried(self, answer: Callable[[], Any], sending: "_Sending") -> Any:  # Any: per request
        """Let the server do something, and wait for its answer; both happen whatever becomes of this process."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Any] = loop.create_future()
        begun, date = loop.time(), [0.0]

        def again() -> Any:  # Any: see above
            """Do it once more; what binds or evicts, which pods of other times must not suffer from, a while later."""
            if not sending.is_late_twice:
                return answer()
            loop.call_later(self._chance.uniform(0.0, SECOND_TIME_SECONDS), _try, answer, context=self._outside)
            return None

        def act() -> None:
            date[0] = float(int(self.store.now))
            try:
                found = answer()
                if sending.fault is Fault.TWICE:
                    found = again()
            except ClusterError as problem:
                if sending.fault is not Fault.TWICE:
                    sending.refused(problem)
                loop.call_later(self._latency, _tell, told, None, problem, context=self._outside)
            else:
                lost = Unreachable(f"{STORM}the connection was reset") if sending.fault is Fault.LOST else None
                loop.call_later(self._latency + sending.late, _tell, told, found, lost, context=self._outside)

        loop.call_later(self._latency + sending.late, act, context=self._outside)
        if 2 * (self._latency + sending.late) > TIMEOUT_SECONDS:
            silence = Unreachable(f"no answer within {TIMEOUT_SECONDS:g} s")
            loop.call_later(TIMEOUT_SECONDS, _tell, told, None, silence, context=self._outside)
        found = await told
        self.heard(date[0], loop.time() - begun)
        return found

    def _discovered(self, path: str) -> Any:  # Any: JSON
        return self._server.discovered(path)

    # --- watches -----------------------------------------------------------------------------------------------------

    async def changes(
        self, kind: Kind, namespace: str = "", *, since: str, seconds: int, fields: str = ""
    ) -> AsyncGenerator[Sequence[Change], None]:
        """Yield changes as they come, and bookmarks, as far as the weather allows."""
        loop, bell, latest = asyncio.get_running_loop(), asyncio.Event(), list[Change]()
        chosen = selection(namespace, fields=fields)
        watch = await self._begin(kind, lambda: self.store.watch(kind, chosen, since=self._server.checked(since)))
        watch.wake, ends_at, heard, epoch = bell.set, loop.time() + seconds, loop.time(), self._server.epoch
        self._watches.append(watch)
        try:
            yield ()
            while loop.time() < ends_at:
                await self._spell(watch)
                lag = max(self.lag, self._shaken_until - loop.time())
                if lag > 0.0 and watch.has_news:
                    await asyncio.sleep(self._chance.uniform(0.0, lag))
                self._check_epoch(epoch)
                bell.clear()
                found = [Change(event.type, event.object) for event in watch.take()]
                if found:
                    if latest and self._drawn(Fault.REPEATED):  # the watch begins anew from an earlier version, and is slow
                        part = self._chance.randint(1, len(latest))
                        yield [Change(item.type, own(item.object)) for item in latest[:part]]
                        await asyncio.sleep(self._chance.uniform(0.0, LONGEST_BEHIND_SECONDS))
                        self._check_epoch(epoch)
                        yield [Change(item.type, own(item.object)) for item in latest[part:]]
                    latest, heard = [*latest, *found][-MOST_REPEATED:], loop.time()
                    yield [Change(item.type, own(item.object)) for item in found]
                elif loop.time() - heard >= self._between_bookmarks:
                    heard = loop.time()
                    yield [Change(BOOKMARK, {"metadata": {"resourceVersion": str(self.store.history.version)}})]
                else:
                    await _rung(bell, self._patience(heard, ends_at))
        finally:
            self._watches.remove(watch)
            self.store.history.leave(watch)

    def _check_epoch(self, epoch: int) -> None:
        if self._server.epoch != epoch:
            raise Unreachable("the server went away")

    def _patience(self, heard: float, ends_at: float) -> float:
        now = asyncio.get_running_loop().time()
        longest = max(min(heard + self._between_bookmarks, ends_at) - now, SHORTEST_WAIT_SECONDS)
        is_calm = not any(window.fault in OF_WATCHES for window in self.windows)
        return longest if is_calm else min(longest, WATCHED_FOR_SECONDS)

    async def _begin(self, kind: Kind, begin: Callable[[], Any]) -> Any:  # Any: a watch is not to be copied
        await asyncio.sleep(self._latency)
        if self._drawn(Fault.REFUSED, Fault.CUT):
            raise self._failure()
        if not self._server.serves(kind):
            raise Missing(f"the server could not find {kind.resource}")
        return begin()

    async def _spell(self, watch: Any) -> None:  # Any: see above
        """Let the weather of watches happen: an end, or silence."""
        fault = self._drawn(Fault.CUT, Fault.EXPIRED, Fault.SILENT, kind=watch.kind)
        if not self._server.serves(watch.kind):
            raise Missing(f"the server could not find {watch.kind.resource}")
        if fault is Fault.CUT:
            raise Unreachable("the watch was cut")
        if fault is Fault.EXPIRED:
            raise Gone("too old resource version")
        if fault is Fault.SILENT:
            while left := self._silence(watch.kind):
                await asyncio.sleep(min(left, WATCHED_FOR_SECONDS))
            await self._spell(watch)

    def _silence(self, kind: Kind) -> float:
        """Return for how long watches of a kind say nothing."""
        now = asyncio.get_running_loop().time()
        windows = [item for item in self.windows if item.fault is Fault.SILENT and item.is_about(kind) and item.until > now]
        return max((item.until - now for item in windows), default=0.0)


async def _rung(bell: asyncio.Event, seconds: float) -> None:
    """Wait until a bell rings, and ring it if nobody has for so long: half of what asyncio.timeout does is to cancel the wait."""
    alarm = asyncio.get_running_loop().call_later(seconds, bell.set)
    try:
        await bell.wait()
    finally:
        alarm.cancel()


def _try(answer: Callable[[], Any]) -> None:
    with suppress(ClusterError):
        answer()


def own(answer: Any) -> Any:  # Any: per request
    """Return an object, or a list of them, whose metadata the receiver may change, as mirrors do."""
    if isinstance(answer, tuple):
        return [own(item) for item in answer[0]], answer[1]
    if isinstance(answer, Mapping) and "metadata" in answer:
        return {**answer, "metadata": {**answer["metadata"]}}
    return answer


def _tell(told: "asyncio.Future[Any]", found: Any, problem: ClusterError | None) -> None:  # Any: per request
    if told.done():
        return
    if problem is None:
        told.set_result(found)
    else:
        told.set_exception(problem)
