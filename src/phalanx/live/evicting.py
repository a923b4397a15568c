"""Evictions of a session: through the eviction API, so that disruption budgets hold; sessions see who was told to go as going."""

from collections.abc import Callable

from phalanx.controllers.controller import Evict, RecordEvent
from phalanx.errors import ClusterError
from phalanx.explain.events import eviction_text
from phalanx.live.binding import Hands
from phalanx.live.outbox import Rank
from phalanx.model.kinds import POD, Document
from phalanx.model.status import Status
from phalanx.session.decision import Eviction

PREEMPTED = "Preempted"


class Evicting:
    """Tells pods to go."""

    def __init__(self, hands: Hands, *, wake: Callable[[], None]) -> None:
        """Evict nobody yet; `wake` asks for another session, a while later."""
        self._hands, self._wake = hands, wake
        self.evicted: list[Callable[[Eviction], None]] = []
        """Told of every pod that was told to go."""
        self.refused: list[Callable[[Eviction, str], None]] = []
        """Told of every pod that may not go, and why."""

    def start(self, eviction: Eviction) -> None:
        """Tell a pod to go; while a budget says no it stays, and another session decides what to do about it."""
        task = eviction.task
        self._hands.picture.expect(task, Status.RELEASING, task.node)
        pod = self._hands.mirror.find(POD, task.namespace, task.name)  # it may be gone when the answer comes
        order = Evict(task.namespace, task.name, task.uid if task.knows_uid else "", eviction.message)
        self._hands.outbox.put(
            Rank.EVICT, (POD, task.namespace, task.name), lambda: self._hands.writer.evict(order),
            lambda problem: self._done(eviction, pod, problem), is_patient=False,
        )  # fmt: skip

    def _done(self, eviction: Eviction, pod: Document | None, problem: ClusterError | None) -> None:
        task = eviction.task
        if problem is not None:
            self._hands.picture.give_up(task, self._hands.mirror.find(POD, task.namespace, task.name))
            for refusal in self.refused:
                refusal(eviction, str(problem))
            self._wake()
            return
        if pod is not None:
            self._hands.writer.leave(RecordEvent(pod, PREEMPTED, eviction_text(eviction)))
        for listener in self.evicted:
            listener(eviction)
