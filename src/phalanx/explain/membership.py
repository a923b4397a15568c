"""Whether a gang has what it needs: the same question for every dialect, each with its own minima."""

from phalanx.kai.podsets import pod_sets
from phalanx.model.status import COMPLETED, READY
from phalanx.state.gang_state import GangState


def is_finished(gang: GangState) -> bool:
    """Tell whether every member has ended."""
    return bool(gang.tasks) and gang.tally.total(COMPLETED) == len(gang.tasks)


def is_admitted(gang: GangState) -> bool:
    """Tell whether the session admits the gang, upon which its pods are made; only Volcano's groups say that they were."""
    return gang.gang.dialect == "volcano" and gang.phase == "Inqueue" != gang.gang.phase


def has_minimum(gang: GangState) -> bool:
    """Tell whether the gang has started: somebody has a place, and every minimum is met."""
    if gang.gang.dialect == "kai":
        return bool(gang.tally.ready) and all(leaf.count(READY) >= leaf.minimum for leaf in pod_sets(gang))
    return bool(gang.tally.ready) and gang.is_ready and gang.roles_are_ready() and gang.subgroups_are_ready()


def is_new(gang: GangState) -> bool:
    """Tell whether the gang had less than its minimum when the session opened."""
    if gang.gang.dialect == "kai":
        return any(sum(task.task.status in READY for task in leaf.tasks) < leaf.minimum for leaf in pod_sets(gang))
    return sum(task.task.status in READY for task in gang.tasks) < gang.gang.min_member


def minimum_of(gang: GangState) -> int:
    """Return how many members the gang needs; of a KAI group with sub-groups only the leaves count."""
    if gang.gang.dialect == "kai" and gang.gang.subgroups:
        return sum(leaf.minimum for leaf in pod_sets(gang))
    return gang.gang.min_member
