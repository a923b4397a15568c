"""The status of Kubernetes' own PodGroups after a session: one condition, which stays True once the gang is bound.

kube-scheduler 1.36 writes it before the first bind, and leaves it True if the binds fail. Here it is written when enough members
have a node. It never becomes False again: 1.37 calls it PodGroupInitiallyScheduled and says so. A gang that waits again
shows it on its pods, and one that runs below its minimum by the condition Stale.
"""

from math import ceil

from phalanx.dialects import volcano_status
from phalanx.dialects.native import SCHEDULED
from phalanx.dialects.status import (
    GroupStatus,
    GroupWrite,
    PodScheduledCondition,
    condition_document,
    is_finished,
    stale_condition,
)
from phalanx.model.gang import STALE, Condition, Gang
from phalanx.model.kinds import GROUP_BY_DIALECT
from phalanx.model.task_status import Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState

GROUP = GROUP_BY_DIALECT["native"]
ON_A_NODE = (Status.BOUND, Status.RUNNING, Status.SUCCEEDED)
DONE, NOT_YET = "Scheduled", "Unschedulable"


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session; the message of why the gang waits is left empty for `explain` to fill in."""
    gang = outcome.state
    fresh = _condition(outcome)
    new = (*([fresh] if fresh else ()), *stale_condition(gang))
    replaced = {STALE, *([DONE, NOT_YET] if fresh else ())}
    kept = [old for old in gang.gang.conditions if old.type not in replaced]
    return GroupStatus(current_phase(gang), (*kept, *new))


def _condition(outcome: Outcome) -> Condition | None:
    """Return the condition if it changes or says something new; None while binds are under way, and once it is True."""
    gang = outcome.state
    if any(old.type == DONE for old in gang.gang.conditions):
        return None
    kind = DONE if _is_bound(gang) else NOT_YET
    if kind == NOT_YET and (not gang.tasks or _is_starting(gang)):
        return None
    since = next((old.since for old in gang.gang.conditions if old.type == kind), 0.0)
    return Condition(kind, "True", kind, "", since or float(ceil(outcome.now)))


def _is_bound(gang: GangState) -> bool:
    """Tell whether enough members had a node before the session."""
    return sum(task.task.status in ON_A_NODE for task in gang.tasks) >= gang.gang.min_member


def _is_starting(gang: GangState) -> bool:
    return gang.is_ready and any(task.status is Status.BINDING for task in gang.tasks)


def current_phase(gang: GangState) -> str:
    """Return the phase; the object has no field for it."""
    if is_finished(gang):
        return "Completed"
    if gang.tally.ready and gang.is_ready:
        return "Running"
    return "Unknown" if gang.tally.counts[Status.RUNNING] else "Pending"


def pod_condition(task: TaskState, names: list[str]) -> PodScheduledCondition:
    """Return the condition of a pod that is not bound; Kubernetes knows only one reason."""
    found = volcano_status.pod_condition(task, names)
    return PodScheduledCondition(NOT_YET, found.message, found.nominated_node)


def writes(gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
    """Return the conditions as the version of the object names them."""
    conditions = [condition_document(_outside(item, gang.version)) for item in status.conditions]
    return (GroupWrite(GROUP, gang.namespace, gang.name, {"conditions": conditions}),)


def _outside(item: Condition, version: str) -> Condition:
    if item.type not in (DONE, NOT_YET):
        return item
    return Condition(SCHEDULED[version], "True" if item.type == DONE else "False", item.reason, item.message, item.since)
