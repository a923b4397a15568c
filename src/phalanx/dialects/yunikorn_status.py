"""How an application stands after a session, in YuniKorn's words: the state of the application, and what its pods wait for."""

from phalanx.dialects import pod_gangs_status as made_status
from phalanx.dialects.pod_gangs_status import is_over, writes
from phalanx.dialects.volcano_status import GroupStatus, PodCondition
from phalanx.dialects.yunikorn import GANG_DEGRADED
from phalanx.model.status import Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState

__all__ = ["group_status", "pod_condition", "settled_phase", "writes"]


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session."""
    return made_status.group_status(outcome, names, settled_phase(outcome.state))


def settled_phase(gang: GangState) -> str:
    """Return the state of the application: Resuming is one that gave up being a gang and has not started."""
    if is_over(gang):
        return "Failed" if gang.tally.counts[Status.FAILED] else "Completed"
    if gang.tally.ready and gang.is_ready and gang.roles_are_ready():
        return "Running"
    return "Resuming" if _is_degraded(gang) else "Accepted"


def pod_condition(task: TaskState, names: list[str]) -> PodCondition:
    """Say what became of a pod that is not bound."""
    gang = task.gang
    found = made_status.pod_condition(task, names, f"application {gang.gang.name}")
    if not _is_degraded(gang):
        return found
    said = next(item.message for item in gang.gang.conditions if item.type == GANG_DEGRADED)
    return PodCondition(found.reason, f"{found.message}; {said}", found.nominated_node)


def _is_degraded(gang: GangState) -> bool:
    return any(item.type == GANG_DEGRADED for item in gang.gang.conditions)
