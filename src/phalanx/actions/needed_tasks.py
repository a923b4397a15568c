"""Which of its waiting tasks make a gang whole."""

from phalanx.model.task_status import READY
from phalanx.state.gang_state import GangState, SubGroupState, TaskState


def missing_roles(gang: GangState) -> dict[str, int]:
    """Return how many tasks each role lacks; pipelined ones count as present."""
    minima = gang.gang.role_minima if gang.gang.roles_count else {}
    tallies = {role: gang.role_tallies[role] for role in minima}
    return {
        role: max(minima[role] - tally.total(READY) - tally.pipelined - tally.pending_best_effort, 0)
        for role, tally in tallies.items()
    }


def _could_be_whole(subgroup: SubGroupState, waiting: list[TaskState]) -> bool:
    return sum(task.subgroup is subgroup for task in waiting) >= subgroup.shortfall() - subgroup.tally.pipelined


def tasks_needed(gang: GangState, waiting: list[TaskState]) -> list[TaskState]:
    """Return the waiting tasks that make the gang whole: those that roles need, then others; of sub-groups all tasks."""
    if gang.has_subgroups:
        return [task for task in waiting if _could_be_whole(task.subgroup, waiting)]
    chosen: list[TaskState] = []
    for role, missing in missing_roles(gang).items():
        chosen += [task for task in waiting if task.task.role == role][:missing]
    missing = gang.gang.min_member - gang.tally.ready - gang.tally.pipelined - gang.tally.pending_best_effort - len(chosen)
    taken = set(chosen)
    others = [task for task in waiting if task not in taken][: max(missing, 0)]
    return chosen + others if chosen or others else waiting[:1]  # whole already: it starves for one task more
