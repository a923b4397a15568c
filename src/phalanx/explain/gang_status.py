"""What becomes of a gang in a session: one word for tables and exit codes, and the counts behind it.

Every dialect is asked the same questions, but not every one counts the same members: see `dialects/traits.py`.
"""

from enum import StrEnum

from phalanx.dialects.status import is_finished
from phalanx.dialects.traits import traits_of
from phalanx.kai.podsets import PodSet, meets, pod_sets, suffice
from phalanx.model.task_status import HOLDING, READY, Status
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import Verdict

EVICTED, PIPELINED = "Evicted", "Pipelined"


class GangStatus(StrEnum):
    """What becomes of a gang."""

    STARTS = "Starts"
    """It gets its minimum in this session; by Volcano's rule members without requests count before they have a node."""
    GROWS = "Grows"
    """It had its minimum before and gets more."""
    PIPELINED = PIPELINED
    """It gets its minimum once others have left."""
    WAITS = "Waits"
    EMPTY = "Empty"
    """It has no pods: they are still to come, or its owner is suspended or has taken them away."""
    EVICTED = EVICTED
    """Tasks of it have to go, and the rest is less than its minimum."""
    BOUND = "Bound"
    """It had its minimum before, but none of its pods runs yet."""
    RUNS = "Runs"
    COMPLETED = "Completed"

    @property
    def has_minimum(self) -> bool:
        """Tell whether the gang has what it needs, or needs nothing any more."""
        return self not in (GangStatus.PIPELINED, GangStatus.WAITS, GangStatus.EMPTY, GangStatus.EVICTED)


GangWithStatus = tuple[GangState, GangStatus]
"""A gang after a session, and what became of it."""


def gang_status(gang: GangState) -> GangStatus:
    """Return what becomes of a gang."""
    if is_finished(gang):
        return GangStatus.COMPLETED
    if is_empty(gang):
        return GangStatus.EMPTY
    if has_minimum(gang):
        gets_more = any(task.status is Status.BINDING and task.task.status is Status.PENDING for task in gang.tasks)
        if not gets_more:
            return GangStatus.BOUND if gang.tally.total(HOLDING) and not gang.tally.counts[Status.RUNNING] else GangStatus.RUNS
        return GangStatus.STARTS if is_new(gang) else GangStatus.GROWS
    if gang.tally.pipelined:
        return GangStatus.PIPELINED
    return GangStatus.EVICTED if any(task.is_evicted for task in gang.tasks) else GangStatus.WAITS


def admission_refusals(gang: GangState) -> list[Verdict]:
    """Return why a gang without pods was not admitted; that it has none is no reason."""
    if gang.phase not in ("", "Pending"):
        return []
    return [verdict for verdict in gang.verdicts if verdict.reason not in ("NotEnoughTasks", "NotEnoughPodsOfTask")]


# --- members and minima --------------------------------------------------------------------------------------------------


def is_empty(gang: GangState) -> bool:
    """Tell whether a gang has no pods, and does not wait to be admitted before its controller makes them."""
    return not gang.tasks and not (traits_of(gang.gang).has_inqueue_phase and gang.phase in ("", "Pending"))


def is_taken_away(gang: GangState) -> bool:
    """Tell whether nobody waits and a controller deletes members: its owner is suspended, scaled down or deleted."""
    tasks = [state.task for state in gang.tasks]
    waits = any(task.status is Status.PENDING and not task.is_leaving for task in tasks)
    return not waits and any(task.is_leaving and task.has_controller for task in tasks)


def is_admitted(gang: GangState) -> bool:
    """Tell whether this session admits the gang, upon which its controller makes its pods."""
    return traits_of(gang.gang).has_inqueue_phase and gang.phase == "Inqueue" != gang.gang.phase


def has_minimum(gang: GangState) -> bool:
    """Tell whether the gang has started: somebody has a place, and every minimum is met."""
    if traits_of(gang.gang).counts_pod_sets:
        return bool(gang.tally.ready) and meets(gang, READY)
    return bool(gang.tally.ready) and gang.is_ready and gang.roles_are_ready() and gang.subgroups_are_ready()


def is_new(gang: GangState) -> bool:
    """Tell whether the gang had less than its minimum when the session opened."""
    if traits_of(gang.gang).counts_pod_sets:
        return not suffice(gang, (leaf for leaf in pod_sets(gang) if _ready_before(leaf) >= leaf.minimum))
    return sum(task.task.status in READY for task in gang.tasks) < gang.gang.min_member


def _ready_before(leaf: PodSet) -> int:
    return sum(task.task.status in READY for task in leaf.tasks)


def is_blocked(task: TaskState) -> bool:
    """Tell whether a task waits for a place that no attempt gave it, and no gate holds it back."""
    return task.status is Status.PENDING and not task.task.is_gated and not task.had_place


def minimum_of(gang: GangState) -> int:
    """Return how many members start together at the least, as the group says; one that has started may need fewer."""
    return gang.declared.min_member
