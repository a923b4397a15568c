"""What dialects share in which pods alone make a gang: there is no object to write on, so each pod says how the gang stands."""

from phalanx.dialects import volcano_status
from phalanx.dialects.volcano_status import GroupStatus, GroupWrite, PodCondition, first_blocked, placeable, stale_condition
from phalanx.model.gang import STALE, Condition, Gang
from phalanx.model.status import COMPLETED, HOLDING, Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState

UNSCHEDULABLE = "Unschedulable"


def group_status(outcome: Outcome, names: list[str], phase: str) -> GroupStatus:
    """Return the status after the session under a phase of the dialect's own."""
    gang = outcome.state
    kept = [item for item in gang.gang.conditions if item.type != STALE]
    return GroupStatus(phase, (*kept, *_waits(gang, names), *stale_condition(gang)))


def writes(gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
    """Return nothing: there is no group object."""
    return ()


def _waits(gang: GangState, names: list[str]) -> tuple[Condition, ...]:
    blocked = first_blocked(gang.tasks)
    if gang.is_ready or not gang.tally.counts[Status.PENDING]:
        return ()
    cause = f": {blocked.task.name}: {volcano_status.pod_condition(blocked, names).message}" if blocked is not None else ""
    return (Condition(UNSCHEDULABLE, "True", "NotEnoughResources", f"{standing(gang)}{cause}"),)


def standing(gang: GangState) -> str:
    """Say how many of the pods that must start together find room, or that there are not enough of them."""
    minimum, there = gang.gang.min_member, gang.valid
    if there < minimum:
        return f"{there} of the {minimum} pods that start together are there"
    return f"{placeable(gang)} of the {minimum} pods that start together find room"


def pod_condition(task: TaskState, names: list[str], who: str) -> PodCondition:
    """Say what became of a pod that is not bound: it waits for the others, for a node that is being freed, or found none."""
    status, node = (task.status, task.node) if task.attempt is None else (task.attempt, task.attempt_node)
    if status in HOLDING:
        return PodCondition(UNSCHEDULABLE, f"there is room on {names[node]}; {who} starts as a whole, and {standing(task.gang)}")
    if status is Status.PIPELINED:
        text = f"it is promised {names[node]} as soon as leaving pods have freed it, together with the rest of {who}"
        return PodCondition(UNSCHEDULABLE, text, names[node])
    cause = volcano_status.pod_condition(task, names).message
    return PodCondition(UNSCHEDULABLE, cause or f"{who} starts as a whole, and {standing(task.gang)}")


def is_over(gang: GangState) -> bool:
    """Tell whether every pod has ended."""
    return bool(gang.tasks) and gang.tally.total(COMPLETED) == len(gang.tasks)
