"""Gangs as KAI sees them: leaves of a tree of sub-groups, each with a minimum; what an attempt and an eviction take."""

from collections.abc import Iterable
from dataclasses import dataclass

from phalanx.model.gang import SubGroup
from phalanx.model.task_status import Status
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState

ACTIVE = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING, Status.BOUND, Status.RUNNING)
"""Has a place or is pipelined onto one."""
USING = (*ACTIVE, Status.RELEASING)
"""Has a place, also if it is leaving it."""
ALIVE = (*ACTIVE, Status.PENDING)
NON_PREEMPTIBLE_PRIORITY = 100
"""Jobs of this priority or more are not preempted unless they say that they may be."""


@dataclass(slots=True)
class PodSet:
    """A leaf of the sub-group tree with its tasks."""

    name: str
    minimum: int
    tasks: list[TaskState]
    policy: SubGroup | None = None

    def count(self, statuses: Iterable[Status]) -> int:
        """Count its tasks in any of these statuses."""
        wanted = tuple(statuses)
        return sum(task.status in wanted for task in self.tasks)

    @property
    def active(self) -> int:
        """How many have a place or are pipelined onto one."""
        return self.count(ACTIVE)

    @property
    def is_satisfied(self) -> bool:
        """Tell whether its minimum is met, counting pipelined tasks."""
        return self.active >= self.minimum


def pod_sets(gang: GangState) -> list[PodSet]:
    """Return the leaves of a gang by name; a gang without sub-groups is one leaf."""
    policies = gang.gang.subgroups
    if not policies:
        return [PodSet("default", max(gang.gang.min_member, 1), gang.tasks)]
    parents = {policy.parent for policy in policies}
    leaves = sorted((policy for policy in policies if policy.name not in parents), key=lambda policy: policy.name)
    members = {subgroup.policy.name: subgroup.tasks for subgroup in gang.subgroups.values() if subgroup.policy is not None}
    return [PodSet(leaf.name, max(leaf.min_member, 1), members.get(leaf.name, []), leaf) for leaf in leaves]


def can_be_whole(gang: GangState) -> bool:
    """Tell whether every leaf has enough tasks that live and are not gated."""
    return all(_ungated(leaf) >= leaf.minimum for leaf in pod_sets(gang))


def _ungated(leaf: PodSet) -> int:
    return sum(task.status in ALIVE and not (task.status is Status.PENDING and task.task.is_gated) for task in leaf.tasks)


def is_whole(gang: GangState) -> bool:
    """Tell whether every leaf has its minimum, counting pipelined tasks."""
    return all(leaf.is_satisfied for leaf in pod_sets(gang))


def is_elastic(gang: GangState) -> bool:
    """Tell whether some leaf has more tasks than its minimum."""
    return any(len(leaf.tasks) > leaf.minimum for leaf in pod_sets(gang))


def leaves_in_order(leaves: list[PodSet]) -> list[PodSet]:
    """Order leaves: unsatisfied ones first; satisfied ones by how far they are over their minimum; then by name."""
    return sorted(leaves, key=lambda leaf: (leaf.is_satisfied, leaf.active / leaf.minimum if leaf.is_satisfied else 0.0, leaf.name))


def next_tasks(session: Session, gang: GangState, *, counts_evicted: bool = False) -> list[TaskState]:
    """Return the tasks of the next attempt: what every unsatisfied leaf is short of, or one more task of a whole gang.

    `counts_evicted` takes tasks that this session evicts as waiting ones, as a search for victims does.
    """
    # Beyond the minimum one task at a time: so extra tasks compete with other jobs for each place.
    leaves = leaves_in_order(pod_sets(gang))
    short = [leaf for leaf in leaves if not leaf.is_satisfied]
    if short:
        return [task for leaf in short for task in _waiting(session, leaf, counts_evicted)[: leaf.minimum - leaf.active]]
    return next(([waiting[0]] for leaf in leaves if (waiting := _waiting(session, leaf, counts_evicted))), [])


def _waiting(session: Session, leaf: PodSet, counts_evicted: bool) -> list[TaskState]:
    return session.sorted_tasks(task for task in leaf.tasks if _waits(task) or (counts_evicted and is_evicted(task)))


def _waits(task: TaskState) -> bool:
    return task.status is Status.PENDING and not task.task.is_gated


def is_evicted(task: TaskState) -> bool:
    """Tell whether this session asks a task to leave; one that was leaving before is not meant."""
    return task.status is Status.RELEASING and task.task.status is not Status.RELEASING


def is_preemptible(gang: GangState) -> bool:
    """Tell whether a job may be evicted: as it says, else by its priority."""
    said = gang.gang.is_preemptable
    return gang.gang.priority < NON_PREEMPTIBLE_PRIORITY if said is None else said
