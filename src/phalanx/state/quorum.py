"""What of a gang depends on its members: its minima, where they hold only until it has started, and what it reports of them.

Each pod is bound with the minima of that moment in an annotation (`MINIMA`). The group object knows only what is needed now, and
whoever owns it may change that at any time; without the annotation a gang that grew cannot be told from one that lost members. It
is on the pods and not on the group, because the Binding itself carries it: it costs no request, and cannot be lost between two.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from phalanx.model.gang import Counts, Gang, Quorum, SubGroup
from phalanx.model.task import Task
from phalanx.model.task_status import HOLDING, READY, Status

WAS_WHOLE = ("Running", "Completed")
MINIMA = "phalanx.dev/minima"
"""Annotation of a bound pod: what its gang needed at that moment. The group object says only what is needed now."""
GANG = "gang"
"""The part that is the gang itself."""


def as_members_say(gang: Gang, members: Iterable[tuple[Task, int]]) -> Gang:
    """Return the gang with the minima that hold for these members, whatever their nodes.

    Two sorts of gangs change. One of `Quorum.ONCE` needs nobody once it was whole, as long as one of those that were is left. One
    of pods alone needs no more members than its controller wants once it has started: pods keep the description that they were
    created with, so that whoever takes some away cannot say that fewer are needed.
    """
    if gang.quorum is not Quorum.ONCE:
        return gang if gang.has_object else _as_wanted(gang, [task for task, _ in members])
    tasks = [task for task, _ in members]
    has_started = any(task.status in READY for task in tasks) and _was_whole(gang, tasks)
    return replace(gang, min_member=0, role_minima={}) if has_started else gang


def _as_wanted(gang: Gang, tasks: Sequence[Task]) -> Gang:
    wanted = [task for task in tasks if not task.is_leaving]
    has_started = any(task.status in READY for task in wanted)
    if not has_started or not any(task.has_controller for task in tasks):
        return gang
    there = Counter(task.role for task in wanted)
    minima = {role: min(minimum, there[role]) for role, minimum in gang.role_minima.items()}
    if len(wanted) >= gang.min_member and minima == gang.role_minima:
        return gang
    return replace(gang, min_member=min(gang.min_member, len(wanted)), role_minima=minima)


def _was_whole(gang: Gang, tasks: Sequence[Task]) -> bool:
    """Tell whether the gang has started before; where no object keeps that, a member with a place is proof unless others lack one.

    A leader that died while it bound the gang, or a bind that was refused, leaves members with a place in a gang that never was.
    """
    return gang.phase in WAS_WHOLE or (not gang.has_object and not was_never_whole(gang, tasks))


def was_never_whole(gang: Gang, tasks: Sequence[Task]) -> bool:
    """Tell whether a gang cannot have been whole since its members that hold a place were bound; when in doubt it was.

    Where every member is needed, one that was lost has been made anew: if all were there before the first was bound, none was.
    """
    bound = [task.scheduled for task in tasks if task.status in HOLDING and task.status is not Status.BINDING]
    if not bound or not all(bound) or len(tasks) != gang.min_member:
        return False
    return any(task.status is Status.PENDING for task in tasks) and all(task.created <= min(bound) for task in tasks)


def counts_by_role(tasks: Iterable[Task], roles: Mapping[str, object]) -> dict[str, Counts]:
    """Count the members that run, succeeded and failed, for each of these roles; "" stands for all members."""
    found = list(tasks)
    return {role: counts_of(task for task in found if not role or task.role == role) for role in roles}


def counts_of(tasks: Iterable[Task]) -> Counts:
    """Count the members that run, succeeded and failed."""
    statuses = [task.status for task in tasks]
    return statuses.count(Status.RUNNING), statuses.count(Status.SUCCEEDED), statuses.count(Status.FAILED)


# --- minima, part by part ------------------------------------------------------------------------------------------------


def role_part(role: str) -> str:
    """Name the part of a gang that is a role."""
    return f"role {role}"


def subgroup_part(policy: SubGroup) -> str:
    """Name the part of a gang that is any sub-group of a policy."""
    return f"sub-group {policy.name}"


def subgroups_part(policy: SubGroup) -> str:
    """Name the part of a gang that is the number of sub-groups of a policy."""
    return f"sub-groups {policy.name}"


def minima_text(gang: Gang) -> str:
    """Return the text of the annotation that says what a gang needs now; empty for one that needs nothing but a member."""
    minima = {GANG: gang.min_member}
    if gang.roles_count:
        minima |= {role_part(role): minimum for role, minimum in gang.role_minima.items()}
    for policy in gang.subgroups:
        minima |= {subgroup_part(policy): policy.min_member, subgroups_part(policy): policy.min_subgroups}
    return msgspec.json.encode(minima).decode() if len(minima) > 1 or gang.min_member > 1 else ""


def minima_of(annotations: Mapping[str, str]) -> dict[str, int] | None:
    """Return what a bound pod says that its gang needed; None where it says nothing, or nothing that can be read."""
    text = annotations.get(MINIMA)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, int])
    except msgspec.MsgspecError:
        return None


def are_same_but_for_minima(before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> bool:
    """Tell whether two tables of annotations differ in nothing, or only in what binding a pod writes on it."""
    return before == after or {**(before or {}), MINIMA: ""} == {**(after or {}), MINIMA: ""}
