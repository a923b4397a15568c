"""Evictions of a session: through the eviction API, so that disruption budgets hold; sessions see victims as leaving at once."""

from collections import Counter
from collections.abc import Callable, Iterable, Set
from functools import partial

from phalanx.controllers.controller import Evict, RecordEvent
from phalanx.errors import ClusterError
from phalanx.explain.events import eviction_text
from phalanx.model.kinds import POD, Document
from phalanx.model.task_status import Status
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.port import ClusterPort, Effort
from phalanx.scheduling.refusals import Refusals
from phalanx.session.decision import Decisions, Eviction

PREEMPTED = "Preempted"
LONGEST_PAUSE = 30.0
"""Before an eviction is tried again that was refused: a disruption budget may allow it any time."""
MOST_GONE = 1000
"""Of so many pods it is remembered that their eviction was refused; then of those that a session wants to evict."""


class Evictor:
    """Evicts the victims of sessions."""

    def __init__(self, port: ClusterPort, cache: SchedulerCache, *, wake: Callable[[], None]) -> None:
        """`wake` is called when another session is needed, a while later."""
        self._port, self._cache, self._wake = port, cache, wake
        self.evicted: list[Callable[[Eviction], None]] = []
        """Called with every eviction that went through."""
        self.refused: list[Callable[[Eviction, str], None]] = []
        """Called with every eviction that was refused, and why."""
        self.settled: list[Callable[[str], None]] = []
        """Called with everybody for whom others were to go, once all of these have been told, or stay."""
        self._unanswered: Counter[str] = Counter()
        self._refusals = Refusals(LONGEST_PAUSE)
        """By the uid of the pod."""

    def hold_back(self, parts: Iterable[Decisions]) -> None:
        """Leave out evictions that the server refused a moment ago, with all others for the same gang: they would be in vain.

        Nothing is said of these gangs either: sessions decide for them what does not come about.
        """
        self._refusals.due = None
        for decisions in parts if self._refusals else ():
            now, wanted = self._port.clock.now, decisions.evictions.values()
            resting = {_for_whom(each) for each in wanted if not self._refusals.is_due(each.task.uid, now)}
            if resting:
                _leave_out(decisions, resting)
            elif len(self._refusals) > MOST_GONE:
                self._refusals.keep({each.task.uid for each in wanted})

    @property
    def due(self) -> float | None:
        """When the first eviction may be sent again that the last session wanted and that rests."""
        return self._refusals.due

    def start(self, eviction: Eviction) -> None:
        """Evict a pod; while a disruption budget says no it stays, and another session decides what to do about it."""
        task = eviction.task
        self._cache.assume(task, Status.RELEASING, task.node)
        pod = self._port.view.find(POD, task.namespace, task.name)  # it may be gone when the answer comes
        self._unanswered[eviction.preemptor] += 1
        evict = Evict(task.namespace, task.name, task.uid if task.knows_uid else "", eviction.message)
        self._port.send(evict, partial(self._answered, eviction, pod), effort=Effort.ONCE)

    @property
    def awaited_by(self) -> Set[str]:
        """The gangs and pods for which somebody is to go who has not been told yet."""
        return self._unanswered.keys()

    def _answered(self, eviction: Eviction, pod: Document | None, problem: ClusterError | None) -> None:
        self._count_down(eviction.preemptor)
        task = eviction.task
        if problem is not None:
            self._refusals.note(task.uid, self._port.clock.now, at_least=problem.retry_after)
            self._cache.forget(task, self._port.view.find(POD, task.namespace, task.name))
            for refusal in self.refused:
                refusal(eviction, str(problem))
            self._wake()
            return
        self._refusals.clear(task.uid)
        if pod is not None:
            self._port.send(RecordEvent(pod, PREEMPTED, eviction_text(eviction)))
        for listener in self.evicted:
            listener(eviction)

    def _count_down(self, preemptor: str) -> None:
        self._unanswered[preemptor] -= 1
        if self._unanswered[preemptor] <= 0:
            del self._unanswered[preemptor]
            for listener in self.settled:
                listener(preemptor)


def _leave_out(decisions: Decisions, whom: set[str]) -> None:
    held = {key: each for key, each in decisions.evictions.items() if _for_whom(each) in whom}
    for key in held:
        del decisions.evictions[key]
    silent = {*whom, *(each.task.gang for each in held.values())}
    decisions.outcomes = [outcome for outcome in decisions.outcomes if outcome.state.gang.key not in silent]


def _for_whom(eviction: Eviction) -> str:
    """Return what evictions have in common that are for nothing without each other; those for nobody, their own gang."""
    return eviction.preemptor or eviction.task.gang or eviction.task.key
