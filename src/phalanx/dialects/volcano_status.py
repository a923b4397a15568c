"""The status of Volcano's PodGroups and their pods after a session: phase, conditions and messages as Volcano writes them."""

from collections import Counter

from phalanx.dialects.status import (
    GroupStatus,
    GroupWrite,
    PodScheduledCondition,
    condition_document,
    error_text,
    first_blocked,
    placeable,
    stale_condition,
)
from phalanx.model.gang import STALE, Condition, Gang
from phalanx.model.kinds import GROUP_BY_DIALECT
from phalanx.model.task_status import COMPLETED, SCHEDULED, Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState

NOT_READY, READY = "pod group is not ready", "pod group is ready"
GROUP = GROUP_BY_DIALECT["volcano"]
COUNTED = {"running": Status.RUNNING, "succeeded": Status.SUCCEEDED, "failed": Status.FAILED}
READY_REASON = "tasks in gang are ready to be scheduled"


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session; `names` are the node names by number."""
    fresh = _gang_condition(outcome.state, says_why=outcome.says_why) if outcome.is_guarded else None
    new = (*([fresh] if fresh else ()), *stale_condition(outcome.state))
    kept = [old for old in outcome.state.gang.conditions if old.type not in {STALE, *(condition.type for condition in new)}]
    gang = outcome.state
    return GroupStatus(_phase(gang, fresh), (*kept, *new), {gang.gang.key: _counted(gang)})


def _counted(gang: GangState) -> dict[str, int]:
    return {word: gang.tally.counts[status] for word, status in COUNTED.items()}


def current_phase(gang: GangState) -> str:
    """Return the phase of a group that no session touches: it stays."""
    return gang.gang.phase


def writes(gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
    """Return the status of the PodGroup."""
    conditions = [condition_document(item) for item in status.conditions]
    written = {"phase": status.phase, "conditions": conditions, **status.documents.get(gang.key, {})}
    return (GroupWrite(GROUP, gang.namespace, gang.name, written),)


def _gang_condition(gang: GangState, *, says_why: bool) -> Condition | None:
    if not gang.tasks:
        return None
    if gang.is_ready:
        return Condition("Scheduled", "True", READY_REASON)
    is_waiting = gang.tally.counts[Status.PENDING] or gang.tally.counts[Status.PIPELINED]
    if _scheduled(gang) >= gang.gang.min_member and not is_waiting:
        return None
    return Condition("Unschedulable", "True", "NotEnoughResources", _unschedulable(gang) if says_why else "")


def _unschedulable(gang: GangState) -> str:
    missing = gang.gang.min_member - placeable(gang)
    return f"{missing}/{len(gang.tasks)} tasks in gang unschedulable: {fit_error(gang)}"


def fit_error(gang: GangState) -> str:
    """Say how far the gang is: counts by status, reasons of the waiting tasks, and the first real cause."""
    counts = Counter({status.word: count for status, count in zip(Status, gang.tally.counts, strict=True) if count})
    counts["minAvailable"] = gang.gang.min_member
    text = f"{READY if gang.is_ready else NOT_READY}, {_histogram(counts)}"
    reasons = Counter([_reason(task) for task in gang.tasks if task.status is Status.PENDING])
    if reasons:
        text += f"; {Status.PENDING.word}: {_histogram(reasons)}"
    blocked = first_blocked(gang.tasks)
    cause = gang.error or (f"{blocked.task.name}: {error_text(blocked)}" if blocked else "")
    return f"{text}. Origin reason is {cause}" if cause else text


def _histogram(counts: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {word}" for word, count in counts.items()))


def pod_condition(task: TaskState, names: list[str]) -> PodScheduledCondition:
    """Say what became of a task that is not bound: it fits and waits for the gang, it is pipelined, or it has no node."""
    status, node = (task.status, task.node) if task.attempt is None else (task.attempt, task.attempt_node)
    if status not in (Status.ALLOCATED, Status.PIPELINED):
        return PodScheduledCondition(_reason(task), error_text(task))
    where = f"Pod {task.task.key} can possibly be assigned to {names[node]}"
    if status is Status.ALLOCATED:
        return PodScheduledCondition(_reason(task), f"{where}, once minAvailable is satisfied")
    message = f"{where}, once resource is released and minAvailable is satisfied"
    return PodScheduledCondition(_reason(task), message, names[node])


def _reason(task: TaskState) -> str:
    """Return the reason of the condition alone, without the sentence: a gang counts those of all its pods."""
    status = task.status if task.attempt is None else task.attempt
    return "Schedulable" if status is Status.ALLOCATED else "Unschedulable"


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
