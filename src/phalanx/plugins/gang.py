"""All or nothing: a gang starts only when enough of its tasks have a node."""

from collections.abc import Sequence

from phalanx.model.task_status import READY, Status
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.verdict import PERMITTED, YES, Verdict, Vote


class GangPlugin:
    """Guards the minima of gangs, roles and sub-groups."""

    name = "gang"
    protects = "its gang would fall below its minimum"
    counts_members = True

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, policy.arguments).done()

    def open(self, session: Session) -> None:
        """Note that gangs are held to their minima; outcomes tell whether each is whole."""
        session.is_guarded = True

    def gang_valid(self, session: Session, gang: GangState) -> Verdict:
        """Refuse a gang that cannot become whole with the tasks it has."""
        if not gang.roles_are_valid():
            return self._refuse("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling")
        if not gang.subgroups_are_valid():
            return self._refuse("NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling")
        valid, minimum = gang.valid, gang.gang.min_member
        if valid < minimum:
            message = f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {minimum}"
            return Verdict.refuse(self.name, "NotEnoughTasks", message, valid=valid, needed=minimum)
        if gang.tally.counts[Status.PENDING] and not gang.starts_enough((Status.PENDING,)):
            return self._too_few_to_start(gang)
        return YES

    def _too_few_to_start(self, gang: GangState) -> Verdict:
        waiting, minimum = gang.tally.counts[Status.PENDING], gang.gang.min_member
        message = f"{waiting} of the {minimum} members that must start together are there; those that run do not count"
        return Verdict.refuse(self.name, "NotEnoughFresh", message, waiting=waiting, needed=minimum)

    def _refuse(self, reason: str, message: str) -> Verdict:
        return Verdict.refuse(self.name, reason, message)

    def gang_order(self, session: Session, gang: GangState) -> int:
        """Gangs that are not whole yet come first."""
        return int(gang.is_ready)

    def subgroup_order(self, session: Session, subgroup: SubGroupState) -> int:
        """Sub-groups that are not whole yet come first."""
        return int(subgroup.is_ready)

    def gang_ready(self, session: Session, gang: GangState) -> Verdict:
        """Agree when every minimum is met."""
        if gang.roles_are_ready() and gang.subgroups_are_ready() and gang.is_ready and gang.starts_enough(READY):
            return YES
        ready, minimum = gang.tally.ready, gang.gang.min_member
        message = f"{ready} of {minimum} tasks have a node"
        return Verdict.refuse(self.name, "NotEnoughTasks", message, ready=ready, needed=minimum)

    def subgroup_ready(self, session: Session, subgroup: SubGroupState) -> Verdict:
        """Agree when the sub-group's minimum is met."""
        return YES if subgroup.is_ready else Verdict.refuse(self.name, "NotEnoughTasks", needed=subgroup.min_member)

    def gang_pipelined(self, session: Session, gang: GangState) -> Vote:
        """Vote for a gang whose minima are met, pipelined members included."""
        parts_are_pipelined = gang.roles_are_pipelined() and gang.subgroups_are_pipelined()
        if parts_are_pipelined and gang.is_pipelined and gang.starts_enough((*READY, Status.PIPELINED)):
            return PERMITTED
        return Vote.reject(self.name, "NotEnoughTasks", needed=gang.gang.min_member)

    def subgroup_pipelined(self, session: Session, subgroup: SubGroupState) -> Vote:
        """Vote for a sub-group whose minimum is met, pipelined members included."""
        return PERMITTED if subgroup.is_pipelined else Vote.reject(self.name, "NotEnoughTasks", needed=subgroup.min_member)

    def preemptable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name as victims the tasks that gangs have beyond their minimum."""
        spare: dict[str, int] = {}
        victims = []
        for task in candidates:
            left = spare.setdefault(task.gang.key, _spare(task.gang))
            if left > 0:
                spare[task.gang.key] = left - 1
                victims.append(task)
        return victims

    reclaimable = preemptable

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Say how many members a gang needs of those that it has."""
        ready, minimum = victim.gang.tally.ready, victim.gang.gang.min_member
        text = f"would fall below its minimum of {minimum}: it has {ready}"
        return Verdict.refuse(self.name, "GangWouldBreak", text, ready=ready, minimum=minimum)

    def evictable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str) -> list[TaskState]:
        """Leave it to the gang-aware actions, which take spare tasks or whole gangs."""
        return list(candidates)

    def gang_starving(self, session: Session, gang: GangState) -> Verdict:
        """Agree while the minimum is not met, pipelined members included."""
        return YES if gang.is_starving else Verdict.refuse(self.name, "NotStarving", ready=gang.tally.ready)


def _spare(gang: GangState) -> int:
    """Return how many members a gang has beyond its minimum; none where it goes as a whole or not at all."""
    return 0 if gang.gang.goes_whole else gang.tally.ready - gang.gang.min_member
