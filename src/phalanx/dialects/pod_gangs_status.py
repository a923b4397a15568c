"""The status of gangs that pods alone make: of our gates, of Kueue's plain pod groups, and of YuniKorn's applications.

There is no group object to write on, so each waiting pod says how far its gang is. Kueue's Workload and the conditions on it are
Kueue's, and nothing is written there.
"""

from math import ceil

from phalanx.dialects import native_status, volcano_status
from phalanx.dialects.native_status import NOT_YET
from phalanx.dialects.status import (
    GroupStatus,
    GroupWrite,
    PodScheduledCondition,
    first_blocked,
    is_finished,
    placeable,
    stale_condition,
)
from phalanx.dialects.yunikorn import GANG_DEGRADED
from phalanx.model.gang import STALE, Condition, Gang
from phalanx.model.task_status import HOLDING, Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState

UNSCHEDULABLE = "Unschedulable"


class GatesStatus:
    """The gangs of our own gates: conditions as Kubernetes' own groups have them, kept by nobody and shown to whoever asks."""

    def group_status(self, outcome: Outcome, names: list[str]) -> GroupStatus:
        """Return the status after the session; the message of why the gang waits is left empty for `explain` to fill in."""
        gang = outcome.state
        has_started = bool(gang.tally.ready) and gang.is_ready
        waits = () if has_started else (Condition(NOT_YET, "True", NOT_YET, since=float(ceil(outcome.now))),)
        return GroupStatus(self.current_phase(gang), (*waits, *stale_condition(gang)))

    def current_phase(self, gang: GangState) -> str:
        """Return the phase that a native group would have."""
        return native_status.current_phase(gang)

    def pod_condition(self, task: TaskState, names: list[str]) -> PodScheduledCondition:
        """Return the condition that a pod of a native group would have."""
        return native_status.pod_condition(task, names)

    def writes(self, gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
        """Return nothing: there is no group object."""
        return ()


class KueueStatus:
    """Kueue's plain pod groups."""

    def group_status(self, outcome: Outcome, names: list[str]) -> GroupStatus:
        """Return the status after the session."""
        return _group_status(outcome, names, self.current_phase(outcome.state))

    def current_phase(self, gang: GangState) -> str:
        """Return the phase that the Workload of the group would have."""
        if is_finished(gang):
            return "Finished"
        return "Running" if gang.tally.ready and gang.is_ready else "Pending"

    def pod_condition(self, task: TaskState, names: list[str]) -> PodScheduledCondition:
        """Return the condition of a pod that is not bound."""
        return _pod_condition(task, names, f"pod group {task.gang.gang.name}")

    def writes(self, gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
        """Return nothing: there is no group object."""
        return ()


class YuniKornStatus:
    """YuniKorn's applications: their states as YuniKorn calls them."""

    def group_status(self, outcome: Outcome, names: list[str]) -> GroupStatus:
        """Return the status after the session."""
        return _group_status(outcome, names, self.current_phase(outcome.state))

    def current_phase(self, gang: GangState) -> str:
        """Return the state of the application: Resuming is one that gave up being a gang and has not started."""
        if is_finished(gang):
            return "Failed" if gang.tally.counts[Status.FAILED] else "Completed"
        if gang.tally.ready and gang.is_ready and gang.roles_are_ready():
            return "Running"
        return "Resuming" if _degradation(gang) is not None else "Accepted"

    def pod_condition(self, task: TaskState, names: list[str]) -> PodScheduledCondition:
        """Return the condition of a pod that is not bound; it also says that the application gave up being a gang."""
        found, degradation = _pod_condition(task, names, f"application {task.gang.gang.name}"), _degradation(task.gang)
        if degradation is None:
            return found
        return PodScheduledCondition(found.reason, f"{found.message}; {degradation.message}", found.nominated_node)

    def writes(self, gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
        """Return nothing: there is no group object."""
        return ()


def _degradation(gang: GangState) -> Condition | None:
    return next((item for item in gang.gang.conditions if item.type == GANG_DEGRADED), None)


def _group_status(outcome: Outcome, names: list[str], phase: str) -> GroupStatus:
    gang = outcome.state
    kept = [item for item in gang.gang.conditions if item.type != STALE]
    return GroupStatus(phase, (*kept, *_waits(gang, names), *stale_condition(gang)))


def _waits(gang: GangState, names: list[str]) -> tuple[Condition, ...]:
    blocked = first_blocked(gang.tasks)
    if gang.is_ready or not gang.tally.counts[Status.PENDING]:
        return ()
    cause = f": {blocked.task.name}: {volcano_status.pod_condition(blocked, names).message}" if blocked is not None else ""
    return (Condition(UNSCHEDULABLE, "True", "NotEnoughResources", f"{_progress(gang)}{cause}"),)


def _progress(gang: GangState) -> str:
    """Say how many of the pods that must start together find room, or that there are not enough of them."""
    minimum, there = gang.gang.min_member, gang.valid
    if there < minimum:
        return f"{there} of the {minimum} pods that start together are there"
    return f"{placeable(gang)} of the {minimum} pods that start together find room"


def _pod_condition(task: TaskState, names: list[str], who: str) -> PodScheduledCondition:
    """Say what became of a pod that is not bound: it waits for the others, for a node that is being freed, or found none."""
    status, node = (task.status, task.node) if task.attempt is None else (task.attempt, task.attempt_node)
    if status in HOLDING:
        return PodScheduledCondition(UNSCHEDULABLE, f"there is room on {names[node]}; {_whole(task, who)}")
    if status is Status.PIPELINED:
        text = f"it is nominated for {names[node]} as soon as leaving pods have freed it, together with the rest of {who}"
        return PodScheduledCondition(UNSCHEDULABLE, text, names[node])
    cause = volcano_status.pod_condition(task, names).message
    return PodScheduledCondition(UNSCHEDULABLE, cause or _whole(task, who))


def _whole(task: TaskState, who: str) -> str:
    return f"{who} starts as a whole, and {_progress(task.gang)}"
