"""The condition PodScheduled of pods that wait: written when its cause changes; a message that only counts anew, once an hour.

Autoscalers go by its reason: see `explain/more_nodes.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from phalanx.controllers.controller import Patch, View
from phalanx.dialects.status import PodScheduledCondition
from phalanx.dialects.traits import dialect_status
from phalanx.errors import ClusterError
from phalanx.explain.answer import group_status
from phalanx.explain.cause import remembered
from phalanx.explain.cause_key import CauseKey, cause_of, cause_of_error, cause_of_text
from phalanx.explain.more_nodes import Lacking, lacking_nodes, scaling_condition
from phalanx.explain.quarantine import quarantine_condition
from phalanx.explain.why import why
from phalanx.model.conditions import IS_GATED, POD_SCHEDULED
from phalanx.model.kinds import POD, Document, split_key
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey, TaskKey
from phalanx.model.task_status import Status
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.scheduling.refusals import Refusals
from phalanx.session.decision import Decisions, Outcome
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError

BETWEEN_CAUSES_SECONDS, BETWEEN_COUNTS_SECONDS = 30.0, 3600.0
"""How long a message stands before another cause, or only other numbers, replace it."""
BETWEEN_GATED_SECONDS = 10.0
MOST_GONE = 100
"""Of so many pods that are gone, or more, it is forgotten that their conditions were refused."""
WAITING = ("Unschedulable", "UnschedulableOnNodePool")
"""Conditions of groups that say why they wait."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What a pod was told, why, and when."""

    condition: PodScheduledCondition
    cause: CauseKey
    moment: float
    gang: GangKey

    def is_news(self, before: "_Said | None") -> bool:
        """Tell whether it is worth writing after what was said before."""
        if before is None or before.condition.reason != self.condition.reason:
            return True
        pause = BETWEEN_COUNTS_SECONDS if before.cause == self.cause else BETWEEN_CAUSES_SECONDS
        is_over = not 0.0 <= self.moment - before.moment < pause  # a clock that was set back tells nothing of what has passed
        return before.condition.message != self.condition.message and is_over


def _due(outcome: Outcome, state: TaskState, snapshot: Snapshot, lacking: Lacking, *, will_ask: bool) -> _Said:
    """Return what a pod is to be told; one that says nothing itself, because it was not tried, why its gang waits."""
    found = dialect_status(outcome.state.gang).pod_condition(state, snapshot.nodes.names)
    lacks_nodes = state.task.key in lacking.get(outcome.state.gang.key, ())
    condition = scaling_condition(found, state.task, lacks_nodes=lacks_nodes, will_ask=will_ask)
    if condition.message:
        cause = cause_of_error(state.error) if isinstance(state.error, FitError) else cause_of_text(condition.message)
        return _Said(condition, cause, outcome.now, outcome.state.gang.key)
    key = (_of_gang, outcome.state.gang.key)
    message, cause = remembered(outcome.aftermath, key, lambda: _of_gang(outcome, snapshot))
    return _Said(replace(condition, message=message), cause, outcome.now, outcome.state.gang.key)


def _of_gang(outcome: Outcome, snapshot: Snapshot) -> tuple[str, CauseKey]:
    conditions = group_status(snapshot, outcome).conditions
    has_own = not outcome.state.verdicts  # what a plugin refuses to the gang as a whole, the words of some dialects leave out
    own = next((item.message for item in conditions if item.type in WAITING and item.message and has_own), "")
    return own or why(outcome, snapshot), cause_of(outcome, snapshot)


class PodConditions:
    """Says why pods wait."""

    def __init__(
        self, view: View, failed: Callable[[Exception], None], requests_nodes: Callable[[GangState], bool] = lambda state: False
    ) -> None:
        """Know nothing of what was said before; `failed` is called when the condition of a pod cannot be made.

        `requests_nodes` tells of which gangs the nodes are asked for as a whole: no autoscaler is to see their pods one by one.
        """
        self._view, self._failed, self._requests_nodes = view, failed, requests_nodes
        self._said: dict[str, _Said] = {}
        """What each pod was told last, by uid; what was refused or overwritten since is not in it."""
        self._lacking: Lacking = {}
        """The pods that more nodes would help, by what the last session that looked at each has found."""
        self._refusals = Refusals()
        self._most = MOST_GONE

    def writes(self, snapshot: Snapshot, decisions: Decisions) -> Iterator[tuple[str, Patch]]:
        """Yield the conditions that a session changes, each with the uid of its pod."""
        self._refusals.due = None
        waiting = set[str]()
        self._lacking = lacking_nodes(snapshot, decisions, self._lacking)
        lacking = (outcome.state for outcome in decisions.outcomes if outcome.state.gang.key in self._lacking)
        asking = {state.gang.key for state in lacking if self._will_ask(state)}
        for outcome, state in _waiting(snapshot, decisions):
            try:
                new = _due(outcome, state, snapshot, self._lacking, will_ask=outcome.state.gang.key in asking)
            except Exception as problem:  # the other pods get theirs
                self._failed(problem)
                continue
            waiting.add(state.task.uid)
            if (
                new.condition.message
                and new.is_news(self._said.get(state.task.uid))
                and self._refusals.is_due(state.task.uid, outcome.now)
            ):
                self._said[state.task.uid] = new  # before it is sent: the answer may come at once
                yield from self._write(state, new.condition, outcome.now)
        self._keep(waiting, snapshot, decisions)

    def _will_ask(self, state: GangState) -> bool:
        """Tell whether the nodes of a gang are asked for as a whole; one that cannot be asked about stops no other."""
        try:
            return self._requests_nodes(state)
        except Exception as problem:
            self._failed(problem)
            return False

    def _keep(self, waiting: set[str], snapshot: Snapshot, decisions: Decisions) -> None:
        """Remember what was said to these pods, and to those of gangs that the session did not look at."""
        seen = {outcome.state.gang.key for outcome in decisions.outcomes}
        unseen = snapshot.gangs.keys() - seen
        self._said = {uid: said for uid, said in self._said.items() if uid in waiting or said.gang in unseen}
        if len(self._refusals) > self._most:  # those that are bound just now, or left out, may wait again
            self._refusals.keep({task.uid for key in snapshot.gangs for task in snapshot.members_of(key).values()})
            self._most = 2 * len(self._refusals) + MOST_GONE

    @property
    def due(self) -> float | None:
        """When a condition of the last session that was refused before may be written."""
        return self._refusals.due

    def answered(self, uid: str, problem: ClusterError | None) -> bool:
        """Hear what became of the condition of a pod; tell whether it has to be written again, a while later."""
        if problem is None:
            self._refusals.clear(uid)
        elif self._said.pop(uid, None) is not None:
            self._refusals.note(uid, self._view.now, at_least=problem.retry_after)
            return True
        return False

    def noticed(self, event: WatchEvent) -> bool:
        """Hear of a pod; tell whether what it was told is there no more."""
        uid = event.object["metadata"].get("uid", "")
        said = self._said.get(uid)
        if said is None or event.before is None or event.type == DELETED:
            return False
        was, now = _scheduled(event.before).get("message"), _scheduled(event.object).get("message")
        if was != said.condition.message or now == was:
            return False
        del self._said[uid]
        return True

    def _write(self, state: TaskState, condition: PodScheduledCondition, now: float) -> Iterator[tuple[str, Patch]]:
        task = state.task
        pod = self._view.find(POD, task.namespace, task.name)
        old = _scheduled(pod) if pod is not None else {}
        if pod is None or (old.get("reason"), old.get("message")) == (condition.reason, condition.message):
            return
        since = old.get("lastTransitionTime") if old.get("status") == "False" else None
        new = {
            "type": POD_SCHEDULED, "status": "False", "reason": condition.reason, "message": condition.message,
            "lastTransitionTime": since or moment_text(int(now)),
        }  # fmt: skip
        yield task.uid, Patch(POD, task.namespace, task.name, {"status": {"conditions": [new]}}, is_status=True)


class GatedConditions:
    """Says on pods that our gate holds back why their gang has no room; the API server only says that there is a gate."""

    def __init__(self, view: View) -> None:
        """Know nothing of what was said before."""
        self._view = view
        self._said: dict[TaskKey, float] = {}
        """When each pod got its condition last."""

    def writes(self, waits: Mapping[TaskKey, str], now: float) -> Iterator[Patch]:
        """Yield the conditions of pods whose condition is not up to date, each once in a while."""
        self._said = {key: said for key, said in self._said.items() if key in waits}
        for key, text in waits.items():
            pod = self._view.find(POD, *split_key(key))
            old = _scheduled(pod) if pod is not None else {}
            is_gated, said = old.get("reason") == IS_GATED["reason"], str(old.get("message", ""))
            if is_gated and cause_of_text(said) != cause_of_text(text) and now - self._said.get(key, 0.0) >= BETWEEN_GATED_SECONDS:
                self._said[key] = now
                yield Patch(POD, *split_key(key), {"status": {"conditions": [{**old, "message": text}]}}, is_status=True)


def _waiting(snapshot: Snapshot, decisions: Decisions) -> Iterator[tuple[Outcome, TaskState]]:
    """Yield the pods that wait, but not those behind a gate, which the API server explains, nor those of quarantined gangs.

    A group of KAI may say that its pods are not to be marked.
    """
    for outcome in decisions.outcomes:
        if not outcome.state.gang.marks_pods:
            continue
        if not outcome.state.gang.has_object and quarantine_condition(outcome, snapshot) is not None:
            continue
        for state in outcome.state.tasks:
            is_waiting = state.task.status is Status.PENDING and state.status is not Status.BINDING
            if is_waiting and not state.task.is_gated:
                yield outcome, state


def _scheduled(pod: Document) -> Document:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item.get("type") == POD_SCHEDULED), {})
