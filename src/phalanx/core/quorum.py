"""What of a gang depends on its members: its minima, where they hold only until it has started, and what it reports of them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from phalanx.model.gang import Counts, Gang, Quorum
from phalanx.model.status import READY, Status
from phalanx.model.task import Task

WAS_WHOLE = ("Running", "Completed")


def as_members_say(gang: Gang, tasks: Iterable[Task]) -> Gang:
    """Return the gang with the minima that hold for these members; most gangs stay as they are."""
    has_started = gang.quorum is Quorum.ONCE and _was_whole(gang) and any(task.status in READY for task in tasks)
    return replace(gang, min_member=0, role_minima={}) if has_started else gang


def _was_whole(gang: Gang) -> bool:
    """Tell whether the gang has started before; where no object keeps that, a member with a place is proof enough."""
    return gang.phase in WAS_WHOLE or not gang.has_object


def counts_by_role(tasks: Iterable[Task], roles: Mapping[str, object]) -> dict[str, Counts]:
    """Count the members that run, succeeded and failed, for each of these roles; "" stands for all members."""
    found = list(tasks)
    return {role: counts_of(task for task in found if not role or task.role == role) for role in roles}


def counts_of(tasks: Iterable[Task]) -> Counts:
    """Count the members that run, succeeded and failed."""
    statuses = [task.status for task in tasks]
    return statuses.count(Status.RUNNING), statuses.count(Status.SUCCEEDED), statuses.count(Status.FAILED)
