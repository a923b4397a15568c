"""Evictions cost work: a gang that was evicted is left alone for a while, and nobody is evicted for less than is lost.

What is lost is compared by the actions gangpreempt and gangreclaim (`actions/eviction_worth.py`). How often a gang was evicted is
an annotation of its group: pods that are evicted are made anew, and the group remembers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phalanx.errors import ConfigError
from phalanx.model.gang import Gang
from phalanx.model.moment import moment_of, moment_text
from phalanx.model.task import GangKey, Task
from phalanx.model.task_status import Status
from phalanx.session.arguments import Arguments
from phalanx.session.eviction_cost import EvictionCostSettings
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState
from phalanx.state.verdict import YES, Verdict

EVICTED = "phalanx.dev/evicted"
"""Annotation of a group: how often it was evicted, and when last."""
BY = ("gangpreempt", "gangreclaim", "preempt", "reclaim")
"""Actions whose evictions count: those for others."""
FORGOTTEN = 2
"""After so many times the longest back-off evictions count no more."""
MOST_DOUBLINGS = 62


@dataclass(frozen=True, slots=True)
class Evicted:
    """How often a gang was evicted, and when it last was."""

    times: int
    latest: float


def evictions_of(gang: Gang) -> Evicted | None:
    """Return what a group remembers; None if it was never evicted, or if nobody can read it."""
    text = gang.annotations.get(EVICTED)
    if not text:
        return None
    times, _, moment = text.partition(" times, last at ")
    latest = moment_of(moment)
    return Evicted(int(times), latest) if times.isdecimal() and latest is not None else None


def _begun(tasks: Iterable[Task]) -> float:
    """Return since when the first of some running tasks runs; 0 when nobody says."""
    return min((task.started for task in tasks if task.status is Status.RUNNING and task.started), default=0.0)


class EvictionCostPlugin:
    """Spares gangs that were evicted before, and evictions that destroy more than they give."""

    name = "evictioncost"
    protects = "it was evicted before, a short while ago"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings."""
        settings = Arguments(self.name, policy.arguments)
        self._first = settings.seconds("first", "1h") or 0.0
        self._longest = settings.seconds("longest", "24h") or 0.0
        most_lost = settings.at_least("mostLost", 0.25, 0.0)
        settings.done()
        if self._longest < self._first:
            raise ConfigError(f"plugin {self.name!r}, argument 'longest': shorter than 'first'; write at least as much")
        self._settings = EvictionCostSettings(most_lost)
        self._until: dict[GangKey, float] = {}

    def open(self, session: Session) -> None:
        """Leave the settings for the actions."""
        session.write_state(self._settings)

    def preemptable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name those that were not evicted lately."""
        return [task for task in candidates if self._left_alone_until(session, task) <= session.now]

    reclaimable = preemptable

    def evictable(
        self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str
    ) -> list[TaskState] | None:  # fmt: skip
        """Name the same for gang-aware actions; a gang is healed all the same."""
        return None if purpose == "heal" else self.preemptable(session, preemptor, candidates)

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Say how often it was evicted and until when it is left alone."""
        evicted, until = evictions_of(victim.gang.gang), self._left_alone_until(session, victim)
        if evicted is None or until <= session.now:
            return YES
        times = "once" if evicted.times == 1 else f"{evicted.times} times"
        text = f"was evicted {times} and is left alone until {moment_text(int(until))}"
        return Verdict.refuse(self.name, "EvictedBefore", text, times=evicted.times, until=moment_text(int(until)))

    def close(self, session: Session) -> None:
        """Let the groups of gangs remember that they were evicted."""
        for key in {each.task.gang for each in session.decisions.evictions.values() if each.action in BY}:
            if key is not None and (gang := session.snapshot.gangs.get(key)) is not None and gang.has_object:
                known = self._remembered(session, gang) or Evicted(0, 0.0)
                times = known.times + (not known.times or _begun(session.snapshot.members_of(key).values()) > known.latest)
                session.decisions.stamp(key, EVICTED, f"{times} times, last at {moment_text(int(session.now))}")

    def _left_alone_until(self, session: Session, task: TaskState) -> float:
        """Return until when a gang is not evicted again: so long after it has started again; in the past for most.

        One that has run on since before its eviction was never evicted: a budget or the API server refused it.
        """
        key = task.gang.gang.key
        if key not in self._until:
            evicted = self._remembered(session, task.gang.gang)
            begun = _begun(session.snapshot.members_of(key).values())
            is_back = evicted is not None and begun > evicted.latest
            self._until[key] = begun + self._wait(evicted.times) if evicted is not None and is_back else 0.0
        return self._until[key]

    def _remembered(self, session: Session, gang: Gang) -> Evicted | None:
        found = evictions_of(gang)
        return None if found is None or session.now - found.latest > FORGOTTEN * self._longest else found

    def _wait(self, times: int) -> float:
        return min(self._first * 2.0 ** min(times - 1, MOST_DOUBLINGS), self._longest)
