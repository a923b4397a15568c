"""Give broken gangs a fresh start: what is left of a gang that lost members it needs is evicted once its grace is over.

It is the last action: who can be completed was completed by those before it, by `allocate` first of all (`brokenFirst`). A gang of
which one pod is protected is left alone, since the rest of it would not start again as a whole.
"""

from collections.abc import Mapping, Sequence
from math import inf

from phalanx.model.gang import STALE
from phalanx.model.task_status import Status
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.trace_events import GangStale
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.staleness import Lack, leftovers, stale_parts
from phalanx.state.verdict import Verdict


class HealAction:
    """Evicts what is left of gangs that have been below a minimum for too long, so that they start again as a whole."""

    name = "heal"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings."""
        settings = Arguments(self.name, arguments)
        self._grace_seconds = settings.grace("grace", "60s")
        settings.done()

    def run(self, session: Session) -> None:
        """Evict what is left of stale gangs whose grace is over, and record a verdict on the others; no gang waits for another."""
        for key in sorted(session.gangs):
            gang = session.gangs[key]
            short = stale_parts(gang)
            if short:
                self._heal(session, gang, short)

    def _heal(self, session: Session, gang: GangState, short: list[Lack]) -> None:
        said = gang.gang.staleness_grace_seconds
        grace = self._grace_seconds if said is None else said
        seen = session.snapshot.short_since.get(gang.gang.key, 0.0)
        since = {id(lack): lack.since(gang.gang, session.now, seen) for lack in short}
        due = [lack for lack in short if session.now - since[id(lack)] >= grace]
        if not due and grace < inf:
            session.decisions.look_again(min(since.values()) + grace)
        # One part is named in the message: the one that breaks the whole gang, and of several the one that is short for longest.
        first = min(due or short, key=lambda lack: (not lack.is_vital, since[id(lack)]))
        stale = _Stale(gang, first, session.now - since[id(first)], grace)
        outcome = self._evict(session, leftovers(gang, due), stale) if due else stale.forecast()
        text = stale.text()
        session.trace.note(GangStale, gang.key, text, outcome)
        numbers = {"since": min(since.values()), "is_evicted": int(any(task.is_evicted for task in gang.tasks))}
        gang.verdicts.append(Verdict.refuse(self.name, STALE, f"{text}; {outcome}", **numbers))

    def _evict(self, session: Session, victims: Sequence[TaskState], stale: "_Stale") -> str:
        """Evict what is left, unless a task of it is protected; return a sentence that says which."""
        protected = _protected(session, victims)
        if protected is not None:
            return f"it is left alone, because {protected.task.key} is protected"
        with session.statement() as statement:
            for victim in victims:
                statement.evict(victim, action=self.name, preemptor="", reason=stale.reason())
            statement.commit()
        return "evicted, so that it starts again as a whole"


class _Stale:
    """Writes the sentences about a stale gang."""

    def __init__(self, gang: GangState, lack: Lack, seconds: float, grace_seconds: float) -> None:
        self._gang, self._lack, self._seconds, self._grace_seconds = gang, lack, seconds, grace_seconds

    def text(self) -> str:
        """Say what is short and since when: ``2 of 4 tasks run, below the minimum of 3 for 35 s``."""
        place = f"{self._lack.part}: " if self._lack.part else ""
        return f"{place}{self._count()}, below the minimum of {self._lack.minimum} for {self._seconds:.0f} s"

    def _count(self) -> str:
        lack = self._lack
        if not lack.counts_tasks:
            return f"{lack.have} whole"
        has_succeeded = any(task.status is Status.SUCCEEDED for task in lack.tasks)
        verb = "runs" if lack.have == 1 else "run"
        return f"{lack.have} of {len(lack.tasks)} tasks {verb}{' or succeeded' if has_succeeded else ''}"

    def forecast(self) -> str:
        """Say what becomes of the gang when nothing changes."""
        if self._grace_seconds == inf:
            return "it is left alone, because its grace never ends"
        more = self._lack.minimum - self._lack.have
        return f"evicted in {self._grace_seconds - self._seconds:.0f} s unless {more} more {_find(more)} a place"

    def reason(self) -> str:
        """Say to a pod why it has to go."""
        return f"evicted with what is left of gang {self._gang.key} ({self.text()}), so that it starts again as a whole"


def _find(count: int) -> str:
    return "finds" if count == 1 else "find"


def _protected(session: Session, victims: Sequence[TaskState]) -> TaskState | None:
    """Return a task that may not go: its pod or gang says so, or a plugin."""
    for task in victims:
        if task.gang.gang.is_preemptable is False or not task.task.is_preemptable:
            return task
    allowed = set(map(id, session.evictable(victims[0], victims, "heal"))) if victims else set()
    return next((task for task in victims if id(task) not in allowed), None)
