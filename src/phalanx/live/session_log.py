"""What a session decided, as lines of the log. Nothing is put into words that nobody wants to read.

    1  one line for a session that decided something
    2  what becomes of gangs: started, grown, pipelined, evicted for whom; that one waits, when the reason is new
    3  every gang that waits, in every session; and from here on the trace of the session, as far as it was recorded:
       what happened, with commit and discard
    4  each task: tries, orders, votes, and the room of its node
    5  each node and plugin: filters and scores; actions entered and left

The trace is recorded by `run_cycle` itself, if it is given the verbosity as `trace_level`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby

from phalanx.explain.cause_key import CauseKey, cause_of
from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.explain.reason_text import counted
from phalanx.explain.why import why
from phalanx.live.logs import Line
from phalanx.model.listing import listed
from phalanx.model.task import GangKey
from phalanx.model.task_status import HOLDING
from phalanx.session.decision import Decisions, Eviction, Outcome
from phalanx.session.trace import TraceEvent
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

SESSIONS, GANGS, EVERY_GANG = 1, 2, 3
_ALSO = {"task": "pod"}
"""What the log calls a field of the trace."""


class Narrator:
    """Makes log lines of sessions; remembers why gangs waited, so as not to repeat itself."""

    def __init__(self, gangs: Collection[str] = ()) -> None:
        """Begin with nothing said; with gangs, speak of these only."""
        self._said: dict[GangKey, CauseKey] = {}
        self._told_gangs = frozenset(gangs)

    def lines(self, snapshot: Snapshot, decisions: Decisions, *, cycle: int, verbosity: int) -> Iterator[Line]:
        """Yield what is to be said about a session, up to a verbosity."""
        if verbosity < SESSIONS:
            return
        found = self._lines(snapshot, decisions, verbosity)
        yield from (Line(line.verbosity, line.text, {**line.fields, "cycle": cycle}) for line in found)

    def _lines(self, snapshot: Snapshot, decisions: Decisions, verbosity: int) -> Iterator[Line]:
        if verbosity >= EVERY_GANG:
            yield from map(_step, decisions.trace)
        if verbosity >= GANGS:
            yield from _evictions(filter(self._is_told, decisions.evictions.values()))
            yield from self._gangs(snapshot, decisions, verbosity)
        if decisions.binds or decisions.evictions or decisions.pipelined:
            yield Line(SESSIONS, _summary(decisions))

    def _gangs(self, snapshot: Snapshot, decisions: Decisions, verbosity: int) -> Iterator[Line]:
        self._said = {key: text for key, text in self._said.items() if key in snapshot.gangs}
        for outcome in decisions.outcomes:
            if not self._told_gangs or outcome.state.key in self._told_gangs:
                yield from self._gang(outcome, snapshot, verbosity)

    def _is_told(self, eviction: Eviction) -> bool:
        return not self._told_gangs or not self._told_gangs.isdisjoint((eviction.task.gang or "", eviction.preemptor))

    def _gang(self, outcome: Outcome, snapshot: Snapshot, verbosity: int) -> Iterator[Line]:
        gang = outcome.state
        key, standing, fields = GangKey(gang.key), gang_status(gang), {"gang": gang.key, "queue": gang.gang.queue}
        if standing in (GangStatus.STARTS, GangStatus.GROWS):
            yield Line(GANGS, _start(gang, standing), fields)
        before, text = self._said.pop(key, None), why(outcome, snapshot)
        if not text:
            return
        cause = self._said[key] = cause_of(outcome, snapshot)
        level = GANGS if cause != before else EVERY_GANG
        if level <= verbosity:
            waits = " waits" if standing in (GangStatus.WAITS, GangStatus.PIPELINED) else ""
            yield Line(level, f"gang {gang.key}{waits}: {text}", fields)


def _start(gang: GangState, standing: GangStatus) -> str:
    placed = counted(gang.tally.total(HOLDING), "pod")
    return f"gang {gang.key} {'starts' if standing is GangStatus.STARTS else 'grows'}: {placed} of {len(gang.tasks)} with a place"


def _evictions(evictions: Iterable[Eviction]) -> Iterator[Line]:
    """Yield a line for each gang and whoever its pods go for, and by which action."""
    for (_, preemptor, action), group in groupby(sorted(evictions, key=_cause), _cause):
        victims = list(group)
        yield Line(GANGS, _eviction(victims, preemptor, action), _about(victims))


def _cause(eviction: Eviction) -> tuple[str, str, str]:
    return eviction.task.gang or "", eviction.preemptor, eviction.action


def _eviction(victims: list[Eviction], preemptor: str, action: str) -> str:
    names = listed([victim.task.key for victim in victims])
    whose = f" of gang {victims[0].task.gang}" if victims[0].task.gang else ""
    whom = f" for {preemptor}" if preemptor else ""
    return f"{counted(len(victims), 'pod')}{whose} evicted by {action}{whom}: {names}"


def _about(victims: list[Eviction]) -> Mapping[str, object]:
    gang = victims[0].task.gang
    return {**({"gang": gang} if gang else {}), "pods": [victim.task.key for victim in victims]}


def _step(step: TraceEvent) -> Line:
    return Line(step.level, step.text, {_ALSO.get(key, key): value for key, value in step.fields.items()})


def _summary(decisions: Decisions) -> str:
    standings = [gang_status(outcome.state) for outcome in decisions.outcomes]
    starts, waits = standings.count(GangStatus.STARTS), sum(not standing.has_minimum for standing in standings)
    pods = f"{counted(len(decisions.binds), 'pod')} to bind, {len(decisions.pipelined)} pipelined"
    return f"session: {counted(starts, 'gang')} started, {waits} waiting, {pods}, {len(decisions.evictions)} to evict"
