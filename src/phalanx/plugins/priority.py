"""Higher priority first: tasks, sub-groups and gangs."""

from collections.abc import Sequence

from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.spared import not_lower
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.verdict import YES, Verdict


class PriorityPlugin:
    """Orders by priority, and calls a gang starving while any of its tasks waits."""

    name = "priority"
    protects = "it is not less important"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, policy.arguments).done()

    def task_order(self, session: Session, task: TaskState) -> int:
        """Higher task priority first."""
        return -task.task.priority

    def gang_order(self, session: Session, gang: GangState) -> int:
        """Higher gang priority first."""
        return -gang.gang.priority

    def subgroup_order(self, session: Session, subgroup: SubGroupState) -> int:
        """The sub-group with the most important task first."""
        return -max((task.task.priority for task in subgroup.tasks), default=0)

    def preemptable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name victims that are less important: of another gang of lower priority, or lower tasks of the same gang."""
        return [task for task in candidates if _is_lower(task, preemptor)]

    def evictable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str) -> list[TaskState]:
        """Name victims for gangpreempt as for preempt; to reclaim or to heal a gang, all candidates."""
        return [task for task in candidates if purpose != "preempt" or _is_lower(task, preemptor)]

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Compare the two priorities."""
        is_mate = victim.gang is preemptor.gang
        its, mine = (each.task.priority if is_mate else each.gang.gang.priority for each in (victim, preemptor))
        return not_lower(self.name, its, mine)

    def gang_starving(self, session: Session, gang: GangState) -> Verdict:
        """Agree while some task is neither allocated nor pipelined."""
        placed = gang.tally.ready + gang.tally.pipelined
        return YES if placed < len(gang.tasks) else Verdict.refuse(self.name, "NotStarving", placed=placed)


def _is_lower(task: TaskState, preemptor: TaskState) -> bool:
    if task.gang is preemptor.gang:
        return task.task.priority < preemptor.task.priority
    return task.gang.gang.priority < preemptor.gang.gang.priority
