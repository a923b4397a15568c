"""What a session means for Koordinator's PodGroups and their pods; each group of a bundle has a status of its own.

PreScheduling means that a group has its pods and others of its bundle do not; Scheduled, that enough of them are bound.
"""

from phalanx.dialects.coscheduling import PHASES
from phalanx.dialects.coscheduling_status import (
    Standing,
    conditions,
    counted,
    is_admitted,
    occupied_by,
    pod_condition,
    settled_phase,
    standing_of,
    writes,
)
from phalanx.dialects.gang_groups import LEAST_FIRST
from phalanx.dialects.volcano_status import GroupStatus
from phalanx.model.gang import Gang
from phalanx.model.kinds import Document
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState

__all__ = ["group_status", "pod_condition", "settled_phase", "writes"]


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session: of the gang, and of every group in it."""
    gang = outcome.state
    pieces = gang.declared.pieces or (gang.declared,)
    documents: dict[str, Document] = {piece.key: _document(gang, piece) for piece in pieces}
    least = min((PHASES[str(document["phase"])] for document in documents.values()), key=LEAST_FIRST.index)
    return GroupStatus(least, conditions(outcome), documents)


def _document(gang: GangState, piece: Gang) -> Document:
    tasks = members_of(gang, piece)
    standing = standing_of(tasks, piece.min_member)
    return {"phase": _word(gang, standing), "scheduled": standing.bound, **counted(standing), **occupied_by(tasks)}


def members_of(gang: GangState, piece: Gang) -> list[TaskState]:
    """Return the members of one group of a gang."""
    return [task for task in gang.tasks if not gang.declared.pieces or task.task.role == piece.key]


def _word(gang: GangState, standing: Standing) -> str:
    if standing.end or standing.is_running:
        return standing.end or "Running"
    if standing.bound >= max(standing.minimum, 1):
        return "Scheduled"
    if _goes_on(gang) and standing.bound:
        return "Running" if standing.at_work else "Scheduled"
    if not standing.pods or standing.could_start < standing.minimum:
        return "Pending"
    return "Scheduling" if gang.roles_are_valid() and is_admitted(gang) else "PreScheduling"


def _goes_on(gang: GangState) -> bool:
    """Tell whether the gang was whole once, and members now start one by one."""
    return gang.gang.min_member < gang.declared.min_member
