"""One session that can be looked at after each of its steps.

It is decided once with everything traced. Whoever wants to know more about a step than the trace says lets the session run again up
to that step, reads what it knows, and abandons it.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, ParamSpec, TypeVar

from phalanx.scheduling.shards import decide
from phalanx.session.cycle import Catalogue, Profile, run_isolated, run_traced
from phalanx.session.decision import Decisions
from phalanx.session.isolation import without
from phalanx.session.policy import Policy
from phalanx.session.session import Session
from phalanx.session.shard_decisions import together
from phalanx.session.trace import Trace, TraceEvent
from phalanx.state.snapshot import Snapshot
from phalanx.stepping.place import Place, places

EVERYTHING = 5
"""The level at which a trace leaves nothing out."""

Fields = ParamSpec("Fields")
Found = TypeVar("Found")


class Mark(NamedTuple):
    """A moment of a session: after so many events of the scheduler of one shard, of which there is mostly one."""

    part: int
    events: int


class _Reached(BaseException):
    """Everything that was wanted of a run is read. No Exception: whoever isolates faults must not take it for one."""


class _ListeningTrace(Trace):
    """Calls somebody after each event, and ends the run when told that it is enough."""

    __slots__ = ("_is_enough", "_session")

    def __init__(self, is_enough: Callable[[int, Session], bool], gangs: Collection[str]) -> None:
        """Start before the session is there; with `gangs` only what concerns these is recorded."""
        super().__init__(EVERYTHING, gangs)
        self._is_enough = is_enough
        self._session: Session | None = None

    def opened(self, session: Session) -> None:
        """Tell of the opening, and of what plugins noted while the session opened: nothing was placed meanwhile."""
        self._session = session
        for count in range(len(self.events) + 1):
            self._tell(count)

    def note(self, kind: Callable[Fields, TraceEvent], *args: Fields.args, **kwargs: Fields.kwargs) -> None:
        """Record a step and tell of it."""
        before = len(self.events)
        super().note(kind, *args, **kwargs)
        if len(self.events) > before:
            self._tell(len(self.events))

    def _tell(self, count: int) -> None:
        if self._session is not None and self._is_enough(count, self._session):
            self.level = 0  # statements that are left on the way out discard, which is no step any more
            raise _Reached


@dataclass(frozen=True, slots=True)
class _Part:
    """What the scheduler of one shard sees, and what it decides."""

    snapshot: Snapshot
    policy: Policy
    catalogue: Catalogue
    decisions: Decisions
    gangs: Collection[str]

    def run(self, is_enough: Callable[[int, Session], bool]) -> None:
        """Run the cycle again, until it is enough."""
        trace = _ListeningTrace(is_enough, self.gangs)
        with suppress(_Reached):
            run_traced(self.snapshot, self.policy, self.catalogue, trace, opened=trace.opened)


@dataclass(frozen=True, slots=True)
class Step:
    """One event of the trace, where it stands, and what it belongs to."""

    number: int
    """From 1 on, over all levels."""
    event: TraceEvent
    place: Place

    def __str__(self) -> str:
        return f"#{self.number} [{self.event.level}] {self.event.text}"


class SteppedSession:
    """A session with its steps; each can be read again as often as one likes."""

    def __init__(self, snapshot: Snapshot, profile: Profile, title: str = "session", *, gangs: Collection[str] = ()) -> None:
        """Decide once, and keep what happened; with `gangs` only what concerns these, which is far less in a large cluster."""
        self.snapshot, self.title, self._gangs = snapshot, title, gangs
        self._parts: list[_Part] = []
        shards = decide(snapshot, profile, run=self._run)
        self.decisions = together(shards)
        events = [(shard.shard, part.decisions.trace) for shard, part in zip(shards, self._parts, strict=False)]
        self.steps = [Step(number, *found) for number, found in enumerate(places(events, snapshot), start=1)]

    def _run(
        self, snapshot: Snapshot, policy: Policy, catalogue: Catalogue, *, trace_level: int = 0, traced_gangs: Collection[str] = ()
    ) -> Decisions:
        """Decide as `run_isolated` does, and remember on what: gangs on which the cycle fails are left out of it."""
        decisions = run_isolated(snapshot, policy, catalogue, trace_level=EVERYTHING, traced_gangs=self._gangs)
        self._parts.append(_Part(without(snapshot, decisions.faults), policy, catalogue, decisions, self._gangs))
        return decisions

    @property
    def policies(self) -> list[Policy]:
        """The policy of each shard, of which there is mostly one."""
        return [part.policy for part in self._parts]

    @property
    def count(self) -> int:
        """How many steps there are."""
        return len(self.steps)

    def mark(self, number: int) -> Mark:
        """Return the moment after a step; 0 is when the session has opened."""
        for part, found in enumerate(self._parts):
            if number <= len(found.decisions.trace):
                return Mark(part, number)
            number -= len(found.decisions.trace)
        raise IndexError(number)

    def mark_before(self, number: int) -> Mark:
        """Return the moment before a step, in the same session of a shard."""
        part, events = self.mark(number)
        return Mark(part, max(events - 1, 0))

    def read(self, marks: Iterable[Mark], reader: Callable[[Session], Found]) -> dict[Mark, Found]:
        """Run the session again, and read something at some moments; the reader changes nothing."""
        found: dict[Mark, Found] = {}
        wanted: dict[int, set[int]] = {}
        for mark in marks:
            wanted.setdefault(mark.part, set()).add(mark.events)
        for part, counts in wanted.items():
            self._parts[part].run(_reading(part, counts, reader, found))
        return found

    def read_all(self, reader: Callable[[Session], Found]) -> dict[Mark, Found]:
        """Run the session again, and read something at all moments, anew where the books have changed."""
        marks = (Mark(part, events) for part, each in enumerate(self._parts) for events in range(len(each.decisions.trace) + 1))
        return self.read(marks, _remembering(reader))


def _reading(
    part: int, counts: set[int], reader: Callable[[Session], Found], found: dict[Mark, Found]
) -> Callable[[int, Session], bool]:
    last = max(counts)

    def is_enough(count: int, session: Session) -> bool:
        if count in counts:
            found[Mark(part, count)] = reader(session)
        return count >= last

    return is_enough


def _remembering(reader: Callable[[Session], Found]) -> Callable[[Session], Found]:
    """Return a reader that gives the same answer again while the books of a session stay the same."""
    known: list[tuple[Session, int, Found]] = []

    def read(session: Session) -> Found:
        if not known or known[0][0] is not session or known[0][1] != session.version:
            known[:] = [(session, session.version, reader(session))]
        return known[0][2]

    return read
