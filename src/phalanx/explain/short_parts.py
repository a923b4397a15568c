"""The roles and sub-groups of a gang that have too few members, with a place or at all."""

from collections.abc import Iterator

from phalanx.model.task_status import READY, Status
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import FitError


def short_parts(gang: GangState, *also: Status) -> Iterator[str]:
    """Name the roles and sub-groups that have too few members with a place; `also` counts members in these statuses too.

    Where some roles failed, the others are left out: they may not have been tried any more.
    """
    short = {role: counts for role, counts in placed_by_role(gang, *also).items() if counts[0] < counts[1]}
    failed = {task.task.role for task in gang.tasks if isinstance(task.error, FitError)}
    for role, (have, needed) in short.items():
        if role in failed or not failed.intersection(short):
            yield f"{role or 'no role'}: {have} of {needed}"
    for policy in gang.missing_policies(lambda part: _count(part.tasks, *also) >= (1 if also else part.min_member)):
        parts = [part for part in gang.subgroups.values() if part.policy is policy]
        whole = sum(_count(part.tasks, *also) >= (1 if also else part.min_member) for part in parts)
        if whole < policy.min_subgroups:
            yield f"{policy.name}: {whole} of {policy.min_subgroups} sub-groups"


def missing_pods(gang: GangState) -> str:
    """Say which roles and sub-groups have too few pods; empty when none has."""
    parts = ", ".join(short_parts(gang, Status.PENDING))
    return f"too few pods ({parts})" if parts else ""


def placed_by_role(gang: GangState, *also: Status) -> dict[str, tuple[int, int]]:
    """Return for each role with a minimum how many members count, and how many are needed."""
    if not gang.gang.roles_count:
        return {}
    return {
        role: (_count([task for task in gang.tasks if task.task.role == role], *also), needed)
        for role, needed in gang.gang.role_minima.items()
    }


def _count(tasks: list[TaskState], *also: Status) -> int:
    """Count the members that have a place or nearly had one."""
    return sum(task.status in (*READY, *also) or task.is_kept or task.had_place for task in tasks)
