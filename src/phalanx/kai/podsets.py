"""Gangs as KAI sees them: leaves of a tree of sub-groups, each with a minimum; what an attempt and an eviction take."""

from collections.abc import Callable, Collection, Iterable, Mapping
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
DEFAULT_LEAF = "default"
"""The leaf of a gang without sub-groups."""
NON_PREEMPTIBLE_PRIORITY = 100
"""Jobs of this priority or more are not preempted unless they say that they may be."""


@dataclass(slots=True, eq=False)
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
    def excess(self) -> float:
        """How many times its minimum it has; 0 for one that has too few."""
        return self.active / max(self.minimum, 1) if self.is_satisfied else 0.0

    @property
    def is_satisfied(self) -> bool:
        """Tell whether its minimum is met, counting pipelined tasks."""
        return self.active >= self.minimum


def pod_sets(gang: GangState) -> list[PodSet]:
    """Return the leaves of a gang by name; a gang without sub-groups is one leaf."""
    if gang.tree is None:
        return [PodSet(DEFAULT_LEAF, max(gang.gang.min_member, 1), gang.tasks)]
    members: dict[str, list[TaskState]] = {}
    for subgroup in gang.subgroups.values():
        if subgroup.policy is not None:
            members.setdefault(subgroup.policy.name, []).extend(subgroup.tasks)
    leaves = sorted(gang.tree.leaves(), key=lambda policy: policy.name)
    return [PodSet(leaf.name, _minimum(leaf), members.get(leaf.name, []), leaf) for leaf in leaves]


def _minimum(leaf: SubGroup) -> int:
    return leaf.min_member if leaf.match_keys is None else max(leaf.min_member, 1)


def suffice(gang: GangState, leaves: Iterable[PodSet]) -> bool:
    """Tell whether these leaves are enough, if each has its minimum: as many as every parent needs."""
    names = {leaf.name for leaf in leaves}
    return bool(names) if gang.tree is None else gang.tree.is_met(lambda policy: policy.name in names)


def meets(gang: GangState, statuses: Iterable[Status]) -> bool:
    """Tell whether enough leaves have their minimum in tasks of these statuses."""
    wanted = tuple(statuses)
    return suffice(gang, (leaf for leaf in pod_sets(gang) if leaf.count(wanted) >= leaf.minimum))


def can_be_whole(gang: GangState) -> bool:
    """Tell whether enough leaves have enough tasks that live and are not gated."""
    return suffice(gang, filter(can_be_met, pod_sets(gang)))


def can_be_met(leaf: PodSet) -> bool:
    """Tell whether a leaf has enough tasks that live and are not gated."""
    held_back = sum(task.status is Status.PENDING and task.task.is_gated for task in leaf.tasks)
    return leaf.count(ALIVE) - held_back >= leaf.minimum


def is_whole(gang: GangState) -> bool:
    """Tell whether enough leaves have their minimum, counting pipelined tasks."""
    return meets(gang, ACTIVE)


def is_elastic(gang: GangState) -> bool:
    """Tell whether some leaf has more tasks than its minimum, or there are more leaves than are needed."""
    leaves = pod_sets(gang)
    return any(len(leaf.tasks) > leaf.minimum for leaf in leaves) or bool(spare_leaves(gang, leaves))


def spare_leaves(gang: GangState, leaves: Iterable[PodSet]) -> set[str]:
    """Name the leaves that could go next if these have their minimum: those of one sub-group that nobody needs."""
    names = {leaf.name for leaf in leaves}
    found = [] if gang.tree is None else gang.tree.spare(lambda policy: policy.name in names, _by_name)
    return {policy.name for policy in found}


def _by_name(policy: SubGroup) -> str:
    return policy.name


def size_class(gang: GangState, count: Callable[[PodSet], int]) -> int:
    """Return 0 for a job below its minimum, 1 exactly at it, 2 above, by how many tasks of a leaf count."""
    counts = [(leaf, count(leaf)) for leaf in pod_sets(gang)]
    full = [leaf for leaf, number in counts if number >= leaf.minimum]
    if not suffice(gang, full):
        return 0
    is_exact = all(number in (0, leaf.minimum) for leaf, number in counts)
    return 1 if is_exact and not spare_leaves(gang, full) else 2


def leaves_in_order(leaves: list[PodSet]) -> list[PodSet]:
    """Order leaves: unsatisfied ones first; satisfied ones by how far they are over their minimum; then by name."""
    return sorted(leaves, key=lambda leaf: (leaf.is_satisfied, leaf.excess, leaf.name))


def next_tasks(
    session: Session, gang: GangState, *, counts_evicted: bool = False, without: Collection[str] = ()
) -> list[TaskState]:
    """Return the tasks of the next attempt: what a gang is short of, or of a whole gang one sub-group or one task more.

    `counts_evicted` takes tasks that this session evicts as waiting ones, as a search for victims does. Leaves in `without` are
    left out, if the gang can do without them.
    """
    # A job is asked for them by each action and whenever its queue is compared with others, mostly without a change in between.
    question = (next_tasks, counts_evicted, frozenset(without))
    return list(session.remembered(gang, question, lambda: _next_tasks(session, gang, counts_evicted, without)))


def _next_tasks(session: Session, gang: GangState, counts_evicted: bool, without: Collection[str]) -> tuple[TaskState, ...]:
    # Beyond the minimum one task at a time: so extra tasks compete with other jobs for each place.
    leaves = leaves_in_order(pod_sets(gang))
    waiting = {leaf.name: _waiting(session, leaf, counts_evicted) if leaf.name not in without else [] for leaf in leaves}
    short = _next_leaves(gang, leaves, {name: len(tasks) for name, tasks in waiting.items()})
    if any(leaf.name in without for leaf in short):
        return ()
    if short:
        return tuple(task for leaf in short for task in waiting[leaf.name][: leaf.minimum - leaf.active])
    return next(((tasks[0],) for leaf in leaves if leaf.is_satisfied and (tasks := waiting[leaf.name])), ())


def _next_leaves(gang: GangState, leaves: list[PodSet], waiting: Mapping[str, int]) -> list[PodSet]:
    """Return the leaves that the next attempt fills: those that the gang still needs, else the next ones."""
    unmet = {leaf.name for leaf in leaves if not leaf.is_satisfied}
    if gang.tree is None or not unmet:
        return [leaf for leaf in leaves if leaf.name in unmet]
    could = {leaf.name for leaf in leaves if leaf.active + waiting[leaf.name] >= leaf.minimum}
    tests = (lambda policy: policy.name not in unmet), (lambda policy: policy.name in could)
    wanted = {policy.name for policy in gang.tree.missing(*tests, _by_name) or gang.tree.extra(*tests, _by_name)}
    return [leaf for leaf in leaves if leaf.name in wanted]


def _waiting(session: Session, leaf: PodSet, counts_evicted: bool) -> list[TaskState]:
    return session.sorted_tasks(task for task in leaf.tasks if _waits(task) or (counts_evicted and task.is_evicted))


def _waits(task: TaskState) -> bool:
    return task.status is Status.PENDING and not task.task.is_gated


def leaf_name(task: TaskState) -> str:
    """Name the leaf that a task is in."""
    return task.subgroup.policy.name if task.subgroup.policy is not None else DEFAULT_LEAF


def is_preemptible(gang: GangState) -> bool:
    """Tell whether a job may be evicted: as it says, else by its priority."""
    said = gang.gang.is_preemptable
    return gang.gang.priority < NON_PREEMPTIBLE_PRIORITY if said is None else said
