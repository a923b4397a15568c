"""How a plain pod group stands after a session. Its Workload and the conditions on it are Kueue's: nothing is written there."""

from phalanx.dialects import pod_gangs_status as made_status
from phalanx.dialects.pod_gangs_status import is_over, writes
from phalanx.dialects.volcano_status import GroupStatus, PodCondition
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState

__all__ = ["group_status", "pod_condition", "settled_phase", "writes"]


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session."""
    return made_status.group_status(outcome, names, settled_phase(outcome.state))


def settled_phase(gang: GangState) -> str:
    """Return how the group stands."""
    if is_over(gang):
        return "Finished"
    return "Running" if gang.tally.ready and gang.is_ready else "Pending"


def pod_condition(task: TaskState, names: list[str]) -> PodCondition:
    """Say what became of a pod that is not bound."""
    return made_status.pod_condition(task, names, f"pod group {task.gang.gang.name}")
