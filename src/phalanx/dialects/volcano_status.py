"""What a session means for a PodGroup, in Volcano's words: phase, conditions, messages; and for its pods."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

from phalanx.model.gang import STALE, Condition, Gang
from phalanx.model.kinds import GROUP_BY_DIALECT, Document, Kind
from phalanx.model.moment import moment_text
from phalanx.model.status import COMPLETED, HOLDING, SCHEDULED, Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.staleness import stale_verdict
from phalanx.state.verdict import FitError

NOT_READY, READY = "pod group is not ready", "pod group is ready"
GROUP = GROUP_BY_DIALECT["volcano"]
COUNTED = {"running": Status.RUNNING, "succeeded": Status.SUCCEEDED, "failed": Status.FAILED}
READY_REASON = "tasks in gang are ready to be scheduled"


@dataclass(frozen=True, slots=True)
class PodCondition:
    """What to write on a pod that did not get a node."""

    reason: str
    message: str
    nominated_node: str = ""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """What to write on a PodGroup."""

    phase: str
    conditions: tuple[Condition, ...]
    documents: Mapping[str, Document] = field(default_factory=dict)
    """What the status of each group of the gang holds besides, or instead where its dialect has other words."""


@dataclass(frozen=True, slots=True)
class GroupWrite:
    """A status for one object, and annotations, of which None removes one."""

    kind: Kind
    namespace: str
    name: str
    status: Document
    annotations: Mapping[str, str | None] = field(default_factory=dict)


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session; `names` are the node names by number."""
    fresh = _gang_condition(outcome.state, names) if outcome.is_guarded else None
    new = (*([fresh] if fresh else ()), *stale_condition(outcome.state))
    kept = [old for old in outcome.state.gang.conditions if old.type not in {STALE, *(condition.type for condition in new)}]
    gang = outcome.state
    return GroupStatus(_phase(gang, fresh), (*kept, *new), {gang.gang.key: _counted(gang)})


def _counted(gang: GangState) -> dict[str, int]:
    return {word: gang.tally.counts[status] for word, status in COUNTED.items()}


def settled_phase(gang: GangState) -> str:
    """Return the phase of a group that no session touches: it stays."""
    return gang.gang.phase


def writes(gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
    """Return the status of the PodGroup."""
    conditions = [condition_document(item) for item in status.conditions]
    written = {"phase": status.phase, "conditions": conditions, **status.documents.get(gang.key, {})}
    return (GroupWrite(GROUP, gang.namespace, gang.name, written),)


def condition_document(item: Condition) -> dict[str, str]:
    """Return a condition; the time of its last change, if it is known, in whole seconds and never too early."""
    entry = {"type": item.type, "status": item.status, "reason": item.reason, "message": item.message}
    if item.node_pool:
        entry["nodePool"] = item.node_pool
    if item.since:
        entry["lastTransitionTime"] = moment_text(ceil(item.since))
    return entry


def stale_condition(gang: GangState) -> tuple[Condition, ...]:
    """Return the condition of a gang that runs below a minimum, with the time since when it does; an eviction ends it."""
    verdict = stale_verdict(gang)
    if verdict is None or verdict.numbers["is_evicted"]:
        return ()
    return (Condition(STALE, "True", "BelowMinimum", verdict.message, float(verdict.numbers["since"])),)


def _gang_condition(gang: GangState, names: list[str]) -> Condition | None:
    if not gang.tasks:
        return None
    if gang.is_ready:
        return Condition("Scheduled", "True", READY_REASON)
    is_waiting = gang.tally.counts[Status.PENDING] or gang.tally.counts[Status.PIPELINED]
    if _scheduled(gang) >= gang.gang.min_member and not is_waiting:
        return None
    missing = gang.gang.min_member - placeable(gang)
    message = f"{missing}/{len(gang.tasks)} tasks in gang unschedulable: {fit_error(gang, names)}"
    return Condition("Unschedulable", "True", "NotEnoughResources", message)


def placeable(gang: GangState) -> int:
    """Count the members that have a place or nearly had one: a place that was given back because the gang was not whole."""
    nearly = sum(task.attempt in HOLDING for task in gang.tasks if task.status is Status.PENDING)
    return gang.tally.ready + nearly


def fit_error(gang: GangState, names: list[str]) -> str:
    """Say how the gang stands: counts by status, reasons of the waiting tasks, and the first real cause."""
    counts = Counter({status.word: count for status, count in zip(Status, gang.tally.counts, strict=True) if count})
    counts["minAvailable"] = gang.gang.min_member
    text = f"{READY if gang.is_ready else NOT_READY}, {_histogram(counts)}"
    reasons = Counter(pod_condition(task, names).reason for task in gang.tasks if task.status is Status.PENDING)
    if reasons:
        text += f"; {Status.PENDING.word}: {_histogram(reasons)}"
    blocked = first_blocked(gang.tasks)
    cause = gang.error or (f"{blocked.task.name}: {_error_text(blocked)}" if blocked else "")
    return f"{text}. Origin reason is {cause}" if cause else text


def first_blocked(tasks: Iterable[TaskState]) -> TaskState | None:
    """Return the task to name as the cause: one that nodes refused before one that was skipped, then the first name."""
    blocked = (task for task in tasks if _error_text(task))
    return min(blocked, key=lambda task: (not isinstance(task.error, FitError), task.task.key), default=None)


def _histogram(counts: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {word}" for word, count in counts.items()))


def _error_text(task: TaskState) -> str:
    """Say why a task has no node; its queue's reason too, which Volcano leaves out and users miss most."""
    if task.error is None:
        return task.refusal.message if task.refusal is not None else ""
    return task.error.text if isinstance(task.error, FitError) else task.error


def pod_condition(task: TaskState, names: list[str]) -> PodCondition:
    """Say what became of a task that is not bound: placed if only the gang were whole, promised, or without a node."""
    status, node = (task.status, task.node) if task.attempt is None else (task.attempt, task.attempt_node)
    if status is Status.ALLOCATED:
        where = f"Pod {task.task.key} can possibly be assigned to {names[node]}"
        return PodCondition("Schedulable", f"{where}, once minAvailable is satisfied")
    if status is Status.PIPELINED:
        where = f"Pod {task.task.key} can possibly be assigned to {names[node]}"
        return PodCondition("Unschedulable", f"{where}, once resource is released and minAvailable is satisfied", names[node])
    return PodCondition("Unschedulable", _error_text(task))


def _scheduled(gang: GangState) -> int:
    leaving = sum(task.status is Status.RELEASING and task.node >= 0 for task in gang.tasks)
    return gang.tally.total(SCHEDULED) + leaving


def _phase(gang: GangState, fresh: Condition | None) -> str:
    if gang.tally.counts[Status.RUNNING] and fresh is not None and fresh.type == "Unschedulable":
        return "Unknown"
    scheduled = _scheduled(gang)
    if scheduled >= gang.gang.min_member:
        return "Completed" if scheduled == gang.tally.total(COMPLETED) else "Running"
    return "Inqueue" if gang.phase == "Inqueue" else "Pending"
