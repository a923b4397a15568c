"""The condition PodScheduled of pods that wait: written when its cause changes; a message that only counts anew, once an hour."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from phalanx.controllers.controller import Patch, View
from phalanx.dialects.status import PodScheduledCondition
from phalanx.dialects.traits import dialect_status
from phalanx.explain.cause_key import CauseKey, cause_of_error, cause_of_text
from phalanx.explain.quarantine import quarantine_condition
from phalanx.explain.why import why
from phalanx.model.conditions import IS_GATED, POD_SCHEDULED
from phalanx.model.kinds import POD, Document, split_key
from phalanx.model.moment import moment_text
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.session.decision import Decisions, Outcome
from phalanx.state.gang_state import TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError

BETWEEN_CAUSES_SECONDS, BETWEEN_COUNTS_SECONDS = 30.0, 3600.0
"""How long a message stands before another cause, or only other numbers, replace it."""
BETWEEN_GATED_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Said:
    """What a pod was told, why, and when."""

    condition: PodScheduledCondition
    cause: CauseKey
    moment: float

    def is_news(self, before: "_Said | None") -> bool:
        """Tell whether it is worth writing after what was said before."""
        if before is None or before.condition.reason != self.condition.reason:
            return True
        pause = BETWEEN_COUNTS_SECONDS if before.cause == self.cause else BETWEEN_CAUSES_SECONDS
        return before.condition.message != self.condition.message and self.moment - before.moment >= pause


def _cause(state: TaskState, condition: PodScheduledCondition) -> CauseKey:
    return cause_of_error(state.error) if isinstance(state.error, FitError) else cause_of_text(condition.message)


def _in_words(condition: PodScheduledCondition, outcome: Outcome, snapshot: Snapshot) -> PodScheduledCondition:
    """Return a condition that says something: a pod that no node was asked about waits for what its gang waits for."""
    return condition if condition.message else replace(condition, message=why(outcome, snapshot))


class PodConditions:
    """Says why pods wait."""

    def __init__(self, view: View, failed: Callable[[Exception], None]) -> None:
        """Know nothing of what was said before; `failed` is called when the condition of a pod cannot be made."""
        self._view, self._failed = view, failed
        self._said: dict[str, _Said] = {}
        """What each pod was told last, by uid."""

    def writes(self, snapshot: Snapshot, decisions: Decisions) -> Iterator[Patch]:
        """Yield the conditions that a session changes."""
        names = snapshot.nodes.names
        waiting = {}
        for outcome, state in _waiting(snapshot, decisions):
            try:
                condition = _in_words(dialect_status(outcome.state.gang).pod_condition(state, names), outcome, snapshot)
            except Exception as problem:  # the other pods get theirs
                self._failed(problem)
                continue
            waiting[state.task.uid] = self._said.get(state.task.uid)
            new = _Said(condition, _cause(state, condition), outcome.now)
            if condition.message and new.is_news(self._said.get(state.task.uid)):
                waiting[state.task.uid] = new
                yield from self._write(state, condition, outcome.now)
        self._said = {uid: said for uid, said in waiting.items() if said is not None}

    def _write(self, state: TaskState, condition: PodScheduledCondition, now: float) -> Iterator[Patch]:
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
        yield Patch(POD, task.namespace, task.name, {"status": {"conditions": [new]}}, is_status=True)


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
    """Yield the pods that wait, but not those behind a gate, which the API server explains, nor those of quarantined gangs."""
    for outcome in decisions.outcomes:
        if not outcome.state.gang.has_object and quarantine_condition(outcome, snapshot) is not None:
            continue
        for state in outcome.state.tasks:
            is_waiting = state.task.status is Status.PENDING and state.status is not Status.BINDING
            if is_waiting and not state.task.is_gated:
                yield outcome, state


def _scheduled(pod: Document) -> Document:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item.get("type") == POD_SCHEDULED), {})
