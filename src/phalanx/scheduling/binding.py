"""Binds of a session, gang by gang. A gang that cannot be bound whole is rolled back.

The API server has no transaction: the pods of a gang are bound by as many requests, and any of them may be refused. The invariant
is that a gang ends up whole or not there. A pod that is bound cannot be unbound, so roll-back means that what has landed is evicted
again; its owner makes it anew, and it waits with the others. Three things keep this from doing harm:

* nothing is judged before every bind of the gang has an answer: until then a refused pod stays assumed on its node, so that no
  session hands out its place or tries it alone;
* whether the rest is enough is judged by `lacks`, the same rule by which `heal` finds stale gangs: a gang that is whole without the
  refused pod keeps what it has. What binds of an earlier leader brought to a node goes too, unless the gang may have worked;
* a bind that nobody answered is no refusal. It is sent again for as long as we lead (`Effort` of the port); whoever leads next sees
  on the pods how far we got, and finishes the gang or heals it.

A permit stage before the first bind, as Coscheduling has one, does not help here: sessions decide for whole gangs anyway, and what
fails is the bind itself.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from phalanx.controllers.controller import Bind, Evict, RecordEvent
from phalanx.controllers.objects import group_of
from phalanx.dialects.bind_requests import FAILED_BINDS, failed_binds_document
from phalanx.errors import ClusterError, Missing, Unreachable
from phalanx.model.bind_request import remember
from phalanx.model.gang import Quorum
from phalanx.model.kinds import POD, split_key
from phalanx.model.task import FailedBind, GangKey, Task, TaskKey
from phalanx.model.task_status import HOLDING, Status
from phalanx.scheduling.annotator import Annotator
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.port import ClusterPort, Effort
from phalanx.session.decision import Decisions
from phalanx.state.gang_state import GangState
from phalanx.state.quorum import was_never_whole
from phalanx.state.staleness import lacks

BINDING_ERROR = "BindingError"
FORGOTTEN_SECONDS = 1800.0
"""After so long without another failure a group has forgotten the last one."""
OTHER_UID = "Precondition failed: UID"
ELSEWHERE = "is already assigned to node"
GONE = ("is being deleted", "not found", OTHER_UID, ELSEWHERE)
"""What a refusal says when the pod is no more, another one of its name is there, or it has a node already; no node refused it."""


@dataclass(slots=True)
class Round:
    """The binds of one gang in one session."""

    gang: GangKey | None
    unanswered: int
    counts_unplaced: bool = False
    """As the session that decided it counts members without requests."""
    landed: list[tuple[Task, str]] = field(default_factory=list)
    refused: dict[TaskKey, tuple[Task, str, str]] = field(default_factory=dict)
    """Pods with the node that was asked for and why it was refused."""
    overtaken: set[TaskKey] = field(default_factory=set)
    """Pods that have a node already: a bind of an earlier leader, or of an earlier term, came late."""


class Binding:
    """Binds pods and takes care that gangs stay whole."""

    def __init__(self, port: ClusterPort, cache: SchedulerCache, annotator: Annotator, *, wake: Callable[[], None]) -> None:
        """`wake` is called when another session is needed."""
        self._port, self._cache, self._annotator, self._wake = port, cache, annotator, wake
        self.bound: list[Callable[[Task, str, float], None]] = []
        """Called with every pod that is bound, its node, and how many seconds it took."""
        self.refused: list[Callable[[Task, ClusterError, float], None]] = []
        """Called with every bind that was refused, why, and after how many seconds."""
        self.rolled_back: list[Callable[[Task, str], None]] = []
        """Called with every pod that is evicted because its gang could not be bound whole, and why."""

    def start(self, decisions: Decisions, left_out: frozenset[TaskKey] = frozenset()) -> None:
        """Send the binds of a session, those of one gang together."""
        by_gang: dict[str, list[tuple[Task, str]]] = {}
        for key, node in decisions.binds.items():
            task = self._cache.cluster.state.task(key)
            if task is not None and key not in left_out:
                by_gang.setdefault(task.gang or key, []).append((task, node))
        for binds in by_gang.values():
            # All are assumed before the first is sent: an answer may come at once, and must not find half of the gang.
            for task, node in binds:
                self._cache.assume(task, Status.BINDING, node)
            current = Round(binds[0][0].gang, len(binds), decisions.counts_unplaced)
            for task, node in binds:
                uid = task.uid if task.knows_uid else ""
                bind = Bind(task.namespace, task.name, node, uid, decisions.annotations.get(task.key))
                self._port.send(bind, partial(self._answered, current, task, node, self._port.clock.elapsed))

    def _answered(self, current: Round, task: Task, node: str, begun: float, problem: ClusterError | None) -> None:
        if isinstance(problem, Unreachable):
            return  # dropped: whoever leads now finishes this gang or rolls it back
        seconds = self._port.clock.elapsed - begun
        if problem is None:
            current.landed.append((task, node))
            for listener in self.bound:
                listener(task, node, seconds)
        else:
            for refusal in self.refused:
                refusal(task, problem, seconds)
            self._note_refusal(current, task, node, problem)
        current.unanswered -= 1
        if not current.unanswered:
            self._end_round(current)

    def _end_round(self, current: Round) -> None:
        if current.refused:
            self._conclude(current)
        elif current.landed and current.gang is not None:
            self._clear(current.gang)

    # --- what was refused --------------------------------------------------------------------------------------------

    def _note_refusal(self, current: Round, task: Task, node: str, problem: ClusterError) -> None:
        """Keep a refused pod assumed on its node until the whole gang has answers: no session tries it again before."""
        if ELSEWHERE in str(problem):
            current.overtaken.add(task.key)
        if isinstance(problem, Missing) or any(word in str(problem) for word in GONE):
            self._forget(task)
        else:
            current.refused[task.key] = (task, node, str(problem))

    def _forget(self, task: Task) -> None:
        self._cache.forget(task, self._port.view.find(POD, task.namespace, task.name))
        self._wake()

    def _conclude(self, current: Round) -> None:
        """Let refused pods remember where they were refused; if the gang is not whole without them, roll it back."""
        for task, node, reason in current.refused.values():
            self._forget(task)
            self._remember(task, node, reason)
            self._record(task, f"binding to node {node} was refused: {reason}")
        if current.gang is not None:
            self._remember_in_group(current.gang, {node: reason for _, node, reason in current.refused.values()})
        gang = self._gang_after(current)
        if gang is None or not lacks(gang):
            return
        first, (_, _, reason) = next(iter(current.refused.items()))
        text = f"rolled back: pod {split_key(first)[1]} of its gang could not be bound: {reason}"
        for task, node in (*current.landed, *self._bound_by_others(gang, current)):
            self._take_back(task, node, text)

    def _bound_by_others(self, gang: GangState, current: Round) -> list[tuple[Task, str]]:
        """Return the members that binds of somebody else brought to a node, where the gang was never whole and nobody works."""
        own = {task.key for task, _ in current.landed}
        others = [state.task for state in gang.tasks if state.status in HOLDING and state.task.key not in own]
        is_new = was_never_whole(gang.gang, [state.task for state in gang.tasks])
        return [(task, task.node) for task in others if is_new or task.key in current.overtaken]

    def _take_back(self, task: Task, node: str, text: str) -> None:
        self._record(task, text)
        for listener in self.rolled_back:
            listener(task, text)
        if node:  # otherwise the watch is still to tell on which one
            self._cache.assume(task, Status.RELEASING, node)

        def done(problem: ClusterError | None) -> None:
            if problem is not None:
                self._forget(task)
            self._wake()

        self._port.send(Evict(task.namespace, task.name, task.uid, text), done, effort=Effort.ENDLESS)

    def _gang_after(self, current: Round) -> GangState | None:
        """Return the gang as the round left it, though watches may not have told yet that somebody else has bound a pod."""
        state = self._cache.cluster.state
        gang = state.gang(current.gang) if current.gang is not None else None
        if gang is None:
            return None
        members = [self._as_answered(current, task) for task in state.members(gang.key).values()]
        own = {task.key for task, _ in current.landed} | current.refused.keys()
        if gang.quorum is Quorum.ONCE and not any(task.status in HOLDING for task in members if task.key not in own):
            gang = replace(gang, quorum=Quorum.PRESENT)  # what this round brought is no proof that it was whole before
        return GangState(gang, ((task, -1) for task in members), counts_unplaced=current.counts_unplaced)

    def _as_answered(self, current: Round, task: Task) -> Task:
        is_unseen = task.key in current.overtaken and task.status is Status.PENDING
        return replace(task, status=Status.BOUND) if is_unseen else task

    def _remember(self, task: Task, node: str, reason: str) -> None:
        """Write on a pod that a bind of it failed, so that sessions wait before they try the same again.

        One that was made anew under the same name meanwhile has not failed yet.
        """
        pod = self._port.view.find(POD, task.namespace, task.name)
        if pod is None or (task.knows_uid and pod["metadata"].get("uid") != task.uid):
            return
        failure = FailedBind(node, 1, self._port.clock.now, reason)
        self._annotator.write(pod, _texts(remember(task.failed_binds, failure)))

    def _remember_in_group(self, key: GangKey, reasons: Mapping[str, str]) -> None:
        """Write on a group that binds of its pods failed: the pods may be made anew."""
        gang, now = self._cache.cluster.state.gang(key), self._port.clock.now
        if gang is None or (group := group_of(self._port.view, gang)) is None:
            return
        known = tuple(each for each in gang.failed_binds if now - each.latest < FORGOTTEN_SECONDS)
        for node, reason in reasons.items():
            known = remember(known, FailedBind(node, 1, now, reason))
        self._annotator.write(group, _texts(known))

    def _clear(self, key: GangKey) -> None:
        """Let a gang that could be bound forget what failed before."""
        gang = self._cache.cluster.state.gang(key)
        if gang is not None and gang.failed_binds and (group := group_of(self._port.view, gang)) is not None:
            self._annotator.write(group, {FAILED_BINDS: None})

    def _record(self, task: Task, text: str) -> None:
        pod = self._port.view.find(POD, task.namespace, task.name)
        if pod is not None:
            self._port.send(RecordEvent(pod, BINDING_ERROR, text, is_warning=True, is_expected=True))


def _texts(failures: Iterable[FailedBind]) -> dict[str, str | None]:
    return {FAILED_BINDS: msgspec.json.encode(failed_binds_document(failures)).decode()}
