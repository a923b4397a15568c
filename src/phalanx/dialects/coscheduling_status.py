"""The status of Coscheduling's PodGroups and their pods after a session: phase, counts, owners and messages.

Members are counted as the API server shows them and not as the session decided, because a bind may still fail. Koordinator's
PodGroups share most of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from phalanx.dialects.coscheduling import PHASES, SCHEDULE_FAILED, STALE_SINCE
from phalanx.dialects.status import (
    GroupStatus,
    GroupWrite,
    PodScheduledCondition,
    first_blocked,
    is_finished,
    placeable,
    stale_condition,
)
from phalanx.model.gang import OVERDUE, STALE, Condition, Gang
from phalanx.model.kinds import GROUP_BY_DIALECT
from phalanx.model.moment import moment_text
from phalanx.model.task_status import ON_NODE, VALID, Status
from phalanx.model.work_annotations import OVERDUE_SINCE
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.quorum import counts_of
from phalanx.state.verdict import FitError


@dataclass(frozen=True, slots=True)
class MemberCounts:
    """How many members of a group were in which state when the session opened."""

    minimum: int
    pods: int
    could_start: int
    """Those that have not failed and are not leaving."""
    bound: int
    """Those that have a node, and those that succeeded."""
    running: int
    succeeded: int
    failed: int

    @property
    def at_work(self) -> int:
        """How many have started and not failed."""
        return self.running + self.succeeded

    @property
    def end(self) -> str:
        """The phase of a group that has ended or cannot go on; empty for all others."""
        if self.pods and self.succeeded + self.failed == self.pods:
            return "Finished" if self.succeeded >= max(self.minimum, 1) else "Failed"
        is_lost = self.failed and self.could_start < self.minimum <= self.could_start + self.failed
        return "Failed" if is_lost else ""

    @property
    def is_running(self) -> bool:
        """Tell whether the minimum has started."""
        return self.at_work >= max(self.minimum, 1)


def member_counts(tasks: Iterable[TaskState], minimum: int) -> MemberCounts:
    """Count members by what was observed, not by what the session decided."""
    members = [task.task for task in tasks]
    running, succeeded, failed = counts_of(members)
    return MemberCounts(
        minimum=minimum, pods=len(members), could_start=sum(task.status in VALID for task in members),
        bound=sum(task.status is Status.SUCCEEDED or (task.status in ON_NODE and bool(task.node)) for task in members),
        running=running, succeeded=succeeded, failed=failed,
    )  # fmt: skip


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session."""
    gang = outcome.state
    counts = member_counts(gang.tasks, gang.declared.min_member)
    phase = _phase(gang, counts)
    document = {"phase": phase, **counts_document(counts), **occupied_by(gang.tasks)}
    return GroupStatus(PHASES[phase], conditions(outcome), {gang.declared.key: document})


def _phase(gang: GangState, counts: MemberCounts) -> str:
    if counts.end or counts.is_running:
        return counts.end or "Running"
    has_pods = counts.pods and counts.could_start >= counts.minimum
    return waiting_phase(gang) if has_pods and is_admitted(gang) else "Pending"


def waiting_phase(gang: GangState) -> str:
    """Return the phase of a group that waits for nodes: whether its time was up once; only a start makes up for that."""
    is_over = gang.declared.has_timed_out or any(verdict.reason == "ScheduleTimeout" for verdict in gang.verdicts)
    return SCHEDULE_FAILED if is_over else "Scheduling"


def is_admitted(gang: GangState) -> bool:
    """Tell whether a session looks for places for the gang."""
    return gang.phase not in ("", "Pending")


def counts_document(counts: MemberCounts) -> dict[str, int]:
    """Return the counts of a status."""
    return {"running": counts.running, "succeeded": counts.succeeded, "failed": counts.failed}


def occupied_by(tasks: Sequence[TaskState]) -> dict[str, str]:
    """Return whose pods are in the group: the owners of the first pod that has any."""
    owners = next((task.task.owners for task in sorted(tasks, key=lambda task: task.task.key) if task.task.owners), "")
    return {"occupiedBy": owners} if owners else {}


def conditions(outcome: Outcome) -> tuple[Condition, ...]:
    """Return the conditions of the model; these groups have no field for them, so only `phalanx schedule` shows them."""
    gang = outcome.state
    if not outcome.is_guarded or not gang.tasks or is_finished(gang):
        return stale_condition(gang)
    if gang.is_ready and gang.roles_are_ready():
        return (Condition("Scheduled", "True", "GangIsWhole", f"{gang.tally.ready} members have a place"), *stale_condition(gang))
    return (Condition("Unschedulable", "True", "NotEnoughMembers", group_message(gang)), *stale_condition(gang))


def group_message(gang: GangState) -> str:
    """Say how much of a gang fits, and which pod does not."""
    blocked = None if gang.verdicts else first_blocked(gang.tasks)
    return how_far(gang) if blocked is None else f"{how_far(gang)}; {blocked.task.name}: {_text(blocked)}"


def how_far(gang: GangState) -> str:
    """Say how much of the gang fits, or why it was refused as a whole."""
    called = f"PodGroup {gang.gang.namespace}/{gang.gang.name}"
    verdict = next((verdict for verdict in gang.verdicts if verdict.message), None)
    if verdict is not None:
        return f"{called}: {verdict.message}"
    fitting = placeable(gang) + sum(task.is_kept for task in gang.tasks)
    return f"{called} needs room for {gang.gang.min_member} members at once and has it for {fitting}"


def _text(task: TaskState) -> str:
    """Say why a pod has no node, as kube-scheduler puts it."""
    if task.error is None:
        return task.refusal.message if task.refusal is not None else ""
    error = task.error
    if not isinstance(error, FitError):
        return error
    return f"{error.scope.prefix}0/{error.nodes} nodes are available: {error.reasons}".rstrip(".")


def current_phase(gang: GangState) -> str:
    """Return the phase of a group that no session touches, in its own words and not those of the model."""
    return _phase(gang, member_counts(gang.tasks, gang.declared.min_member))


def pod_condition(task: TaskState, names: list[str]) -> PodScheduledCondition:
    """Say what became of a pod that is not bound: its own obstacle, the room that it has or keeps, or what its group lacks."""
    status, node = (task.status, task.node) if task.attempt is None else (task.attempt, task.attempt_node)
    if status is Status.PIPELINED:
        room = "is kept for it" if task.is_kept else "is its own once others have left"
        return PodScheduledCondition("Unschedulable", f"room on {names[node]} {room}; {group_message(task.gang)}", names[node])
    if status is Status.ALLOCATED:
        return PodScheduledCondition("Schedulable", f"there is room on {names[node]}; {group_message(task.gang)}")
    own = _text(task)
    return PodScheduledCondition("Unschedulable", f"{own}; {how_far(task.gang)}" if own else group_message(task.gang))


def writes(gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
    """Return the status of every PodGroup that the gang is made of."""
    pieces = outcome.state.declared.pieces or (outcome.state.declared,)
    kind, stamps = GROUP_BY_DIALECT[gang.dialect], moments(gang, status)
    return tuple(
        GroupWrite(kind, piece.namespace, piece.name, status.documents[piece.key], {} if number else stamps)
        for number, piece in enumerate(pieces)
        if piece.has_object
    )


def moments(gang: Gang, status: GroupStatus) -> Mapping[str, str | None]:
    """Return the annotations with the times since when a gang is stale, or overdue, if they change."""
    found: dict[str, str | None] = {}
    for name, kind in ((STALE_SINCE, STALE), (OVERDUE_SINCE, OVERDUE)):
        since = next((item.since for item in status.conditions if item.type == kind), 0.0)
        found[name] = moment_text(ceil(since)) if since else None
    return {name: text for name, text in found.items() if gang.annotations.get(name) != text}
