"""The status of Koordinator's PodGroups and their pods after a session; each PodGroup of a gang group has a status of its own.

PreScheduling means that a PodGroup has its pods and others of its gang group do not; Scheduled, that enough of them are bound.
"""

from phalanx.dialects.coscheduling import PHASES
from phalanx.dialects.coscheduling_status import (
    MemberCounts,
    conditions,
    counts_document,
    is_admitted,
    member_counts,
    occupied_by,
    pod_condition,
    waiting_phase,
    writes,
)
from phalanx.dialects.gang_groups import LEAST_FIRST
from phalanx.dialects.status import GroupStatus
from phalanx.model.gang import Gang
from phalanx.model.kinds import Document
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState

__all__ = ["current_phase", "group_status", "pod_condition", "writes"]


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session: of the gang, and of every group in it."""
    gang = outcome.state
    pieces = gang.declared.pieces or (gang.declared,)
    documents: dict[str, Document] = {piece.key: _document(gang, piece) for piece in pieces}
    least = min((PHASES[str(document["phase"])] for document in documents.values()), key=LEAST_FIRST.index)
    return GroupStatus(least, conditions(outcome), documents)


def current_phase(gang: GangState) -> str:
    """Return the phase of a gang that no session touches, in its own words: that of the group that has come least far."""
    pieces = gang.declared.pieces or (gang.declared,)
    phases = [str(_document(gang, piece)["phase"]) for piece in pieces]
    return min(phases, key=lambda phase: LEAST_FIRST.index(PHASES[phase]))


def _document(gang: GangState, piece: Gang) -> Document:
    tasks = members_of(gang, piece)
    counts = member_counts(tasks, piece.min_member)
    return {"phase": _phase(gang, counts), "scheduled": counts.bound, **counts_document(counts), **occupied_by(tasks)}


def members_of(gang: GangState, piece: Gang) -> list[TaskState]:
    """Return the members of one group of a gang."""
    return [task for task in gang.tasks if not gang.declared.pieces or task.task.role == piece.key]


def _phase(gang: GangState, counts: MemberCounts) -> str:
    if counts.end or counts.is_running:
        return counts.end or "Running"
    if counts.bound >= max(counts.minimum, 1):
        return "Scheduled"
    if _goes_on(gang) and counts.bound:
        return "Running" if counts.at_work else "Scheduled"
    if not counts.pods or counts.could_start < counts.minimum:
        return "Pending"
    return waiting_phase(gang) if gang.roles_are_valid() and is_admitted(gang) else "PreScheduling"


def _goes_on(gang: GangState) -> bool:
    """Tell whether the gang was whole once, so that members now start one by one (match policy once-satisfied).

    The session then works with a smaller minimum than the PodGroup declares.
    """
    return gang.gang.min_member < gang.declared.min_member
