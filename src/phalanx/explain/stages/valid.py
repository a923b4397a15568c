"""Are its members there? Pods against the minimum, role by role and sub-group by sub-group, and who should have made the rest."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from phalanx.dialects.group_references import REFERENCE_FIELDS
from phalanx.dialects.status import is_finished
from phalanx.dialects.traits import traits_of
from phalanx.explain.gang_status import admission_refusals, has_minimum, is_empty, minimum_of
from phalanx.explain.held_back import other_schedulers
from phalanx.explain.no_effect import NO_EFFECT, members_without_effect
from phalanx.explain.reading import Owner, Reading
from phalanx.explain.reason_code import GATED, NO_PODS, OTHER_SCHEDULER
from phalanx.explain.reason_text import as_counted, counted, gates_text, no_pods
from phalanx.explain.tree import Line, Stage, StageResult
from phalanx.explain.why_kai import strays
from phalanx.kai.podsets import can_be_whole, pod_sets
from phalanx.model.kinds import split_key
from phalanx.model.listing import listed
from phalanx.model.task import Task
from phalanx.model.task_status import VALID, Status
from phalanx.session.isolation import SCHEDULER_FAULT
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import Number

TOO_FEW, GROUP_NOT_FOUND = "NotEnoughTasks", "GroupNotFound"
LEFT_OUT = ("Invalid", "SeveralSchedulers", SCHEDULER_FAULT, "NoShard", "BackedOff")
"""Verdicts of gangs that no session looks at until somebody mends an object."""
MOST_STRAYS = 5
MOST_PARTS = 8
LOST = {Status.FAILED: "failed", Status.RELEASING: "being deleted", Status.UNKNOWN: "in an unknown state"}
NUMBERED = re.compile(r"(.*-)(\d+)")


def valid(reading: Reading) -> StageResult:
    """Say which members are there and which are missing."""
    gang = reading.gang
    left_out = [
        Line(_sentence(verdict.reason, verdict.message), verdict.reason) for verdict in gang.verdicts if verdict.reason in LEFT_OUT
    ]
    if left_out:
        return StageResult(Stage.VALID, has_minimum(gang), (*left_out, *_members(reading)))
    if is_finished(gang):
        return StageResult(Stage.VALID, True, (Line("it has ended; nothing of it is left to start"),))
    if not gang.tasks:
        return _without_pods(reading)
    is_ok = has_minimum(gang) or _can_start(gang)
    return StageResult(Stage.VALID, is_ok, tuple(_members(reading)))


def _sentence(reason: str, message: str) -> str:
    return f"quarantined: {message}" if reason == "Invalid" else message


def _can_start(gang: GangState) -> bool:
    """Tell whether enough members are there that a session may place."""
    if traits_of(gang.gang).counts_pod_sets:
        return can_be_whole(gang)
    if any(verdict.reason == "NotEnoughFresh" for verdict in gang.verdicts):
        return False
    has_all_parts = gang.roles_are_valid() and gang.subgroups_are_valid()
    return (
        has_all_parts
        and len(_startable(gang.tasks)) >= gang.gang.min_member
        and all(have >= needed for _, have, needed in _roles(gang))
    )


def _startable(tasks: Sequence[TaskState]) -> list[TaskState]:
    return [task for task in tasks if task.status in VALID and not (task.status is Status.PENDING and task.task.is_gated)]


# --- no pods at all ------------------------------------------------------------------------------------------------------


def _without_pods(reading: Reading) -> StageResult:
    """A gang without pods may only have to be admitted before its owner makes them; then nothing is wrong here."""
    gang, owner = reading.gang, reading.owner
    elsewhere = (*_contested(reading), *_in_other_gangs(reading), *_near_misses(reading))
    if not is_empty(gang) and not elsewhere and not (owner and owner.is_suspended):
        who = owner.title if owner is not None else "its owner"
        text = f"no pods yet: {who} makes them once it is admitted" if admission_refusals(gang) else no_pods(minimum_of(gang))
        return StageResult(Stage.VALID, None, (Line(text, NO_PODS, {"needed": minimum_of(gang)}),))
    below = (*_made_by(reading), *elsewhere)
    return StageResult(Stage.VALID, False, (Line(no_pods(minimum_of(gang)), NO_PODS, {"needed": minimum_of(gang)}, below),))


# --- members -------------------------------------------------------------------------------------------------------------


def _members(reading: Reading) -> Iterator[Line]:
    """Yield what holds the gang up first, then all counts."""
    gang = reading.gang
    missing = max(gang.gang.min_member - gang.valid, 0)
    is_short = missing > 0 and not has_minimum(gang)
    held = list(_held_back(gang, reading.snapshot.surroundings.schedulers))
    searched = (*_made_by(reading), *_contested(reading), *_in_other_gangs(reading), *_near_misses(reading)) if is_short else ()
    below = (*_lost(gang), *searched)
    things = {"pods": len(gang.tasks), "there": gang.valid, "needed": minimum_of(gang), "missing": missing}
    count = Line(_count_text(gang, missing if is_short else 0), TOO_FEW if is_short else "", things, below)
    parts = [*_role_lines(gang), *_subgroup_lines(gang)]
    short = [line for line in parts if line.code]
    yield from [count, *short, *held] if is_short else [*short, *held, count]
    yield from [line for line in parts if not line.code][:MOST_PARTS]
    yield from (Line(text, NO_EFFECT) for text in members_without_effect(reading))
    if traits_of(gang.gang).counts_pod_sets:
        yield from (Line(text, "StrayPod") for text in list(strays(gang))[:MOST_STRAYS])


def _count_text(gang: GangState, missing: int) -> str:
    needed = minimum_of(gang)
    verb = "is" if gang.valid == 1 else "are"
    if missing:
        short = f"{missing} {'is' if missing == 1 else 'are'} missing"
        return f"{gang.valid} of the {counted(needed, 'pod')} it needs {verb} there, {short}{_names(_missing_names(gang, missing))}"
    return f"{counted(gang.valid, 'pod')} {verb} there, {needed or 'none'} {'is' if needed == 1 else 'are'} needed"


def _names(names: Sequence[str]) -> str:
    return f": {listed(names)}" if names else ""


def _missing_names(gang: GangState, missing: int) -> list[str]:
    """Return the names that the missing pods would have, where the others are numbered from 0.

    Those of roles and sub-groups have other names than their siblings, and those that were lost come back under their own.
    """
    if len(gang.gang.role_minima) > 1 or gang.gang.subgroups or any(task.task.status in LOST for task in gang.tasks):
        return []
    found = [NUMBERED.fullmatch(task.task.name) for task in gang.tasks]
    matches = [match for match in found if match is not None]
    prefixes = {match[1] for match in matches}
    if len(matches) != len(found) or len(prefixes) != 1:
        return []
    taken, prefix = {int(match[2]) for match in matches}, prefixes.pop()
    free = [f"{prefix}{number}" for number in range(len(taken) + missing) if number not in taken]
    return free if len(free) == missing else []


def _lost(gang: GangState) -> Iterator[Line]:
    for status, word in LOST.items():
        names = sorted((task.task.name for task in gang.tasks if task.task.status is status), key=as_counted)
        if names:
            verb = "" if status is Status.FAILED else " is" if len(names) == 1 else " are"
            yield Line(
                f"{counted(len(names), 'pod')}{verb} {word}{_names(names)}", "", {"count": len(names), "status": status.word}
            )


def _held_back(gang: GangState, ours: frozenset[str]) -> Iterator[Line]:
    """Name the members that another scheduler or a gate keeps from being placed."""
    waiting = [task for task in gang.tasks if task.status is Status.PENDING]
    foreign = [task for task in waiting if task.task.is_foreign]
    gated = [task for task in waiting if task.task.is_gated and not task.task.is_foreign]
    if foreign:
        who, schedulers = _who(foreign), ", ".join(sorted({task.task.scheduler_name for task in foreign}))
        text = f"{who} not ours: {other_schedulers([task.task for task in foreign], ours)}"
        yield Line(text, OTHER_SCHEDULER, {"count": len(foreign), "schedulerName": schedulers})
    if gated:
        gates = ", ".join(sorted({name for task in gated for name in task.task.gates}))
        yield Line(f"{_who(gated)} held back by {gates_text(gated)}", GATED, {"count": len(gated), "gates": gates})


def _who(tasks: Sequence[TaskState]) -> str:
    names = sorted((task.task.name for task in tasks), key=as_counted)
    return f"{counted(len(names), 'pod')} ({listed(names)}) {'is' if len(names) == 1 else 'are'}"


# --- roles and sub-groups ------------------------------------------------------------------------------------------------


def _roles(gang: GangState) -> list[tuple[str, int, int]]:
    """Return each role with a minimum, how many of its members a session may place, and how many it needs."""
    minima = gang.gang.role_minima if gang.gang.roles_count else {}
    return [
        (role, len(_startable([task for task in gang.tasks if task.task.role == role])), needed) for role, needed in minima.items()
    ]


def _role_lines(gang: GangState) -> Iterator[Line]:
    kind = "gang" if gang.gang.gang_group else "role"
    for role, have, needed in _roles(gang):
        yield _part_line(
            f"{kind} {role}" if role else "pods without a role", have, needed, is_short=have < needed and not has_minimum(gang)
        )


def _part_line(name: str, have: int, needed: int, *, is_short: bool) -> Line:
    text = f"{name}: {have} of the {counted(needed, 'pod')} it needs {'is' if have == 1 else 'are'} there"
    return Line(text, "NotEnoughPodsOfTask" if is_short else "", {"part": name, "there": have, "needed": needed})


def _subgroup_lines(gang: GangState) -> Iterator[Line]:
    if traits_of(gang.gang).counts_pod_sets:
        for leaf in pod_sets(gang) if gang.tree is not None else ():
            have = len(_startable(leaf.tasks))
            yield _part_line(f"sub-group {leaf.name}", have, leaf.minimum, is_short=have < leaf.minimum and not has_minimum(gang))
        return
    for policy in gang.gang.subgroups:
        there = sum(part.policy is policy and part.tally.total(VALID) > 0 for part in gang.subgroups.values())
        is_short = there < policy.min_subgroups and not has_minimum(gang)
        text = f"sub-groups {policy.name}: {there} of the {policy.min_subgroups} it needs {'is' if there == 1 else 'are'} there"
        things: dict[str, Number] = {"part": policy.name, "there": there, "needed": policy.min_subgroups}
        if policy.min_subgroups:
            yield Line(text, "NotEnoughPodsOfTask" if is_short else "", things)


# --- who should have made them -------------------------------------------------------------------------------------------


def _made_by(reading: Reading) -> Iterator[Line]:
    owner = reading.owner
    if owner is None:
        return
    made = sum(task.status in VALID for task in reading.gang.tasks)
    yield Line(
        _owner_text(owner, made),
        "OwnerSuspended" if owner.is_suspended else "",
        {"kind": owner.kind, "name": owner.name, "made": made},
    )


def _owner_text(owner: Owner, made: int) -> str:
    if owner.is_suspended:
        return f"{owner.title} is suspended and makes no pods; resume it"
    if not owner.is_known:
        return f"{owner.title} makes the pods; it is not in the input"
    if owner.wanted is None:
        return f"{owner.title} has made {counted(made, 'pod')}; look at its status and events"
    if owner.wanted <= made:
        return f"{owner.title} wants no more than {counted(owner.wanted, 'pod')}; let it want more, or lower the minimum"
    return f"{owner.title} has made {made} of {counted(owner.wanted, 'pod')}; look at its status and events"


def _near_misses(reading: Reading) -> Iterator[Line]:
    """Yield the groups that pods name and that do not exist, if this gang may be the one that is meant."""
    snapshot, (namespace, name) = reading.snapshot, split_key(reading.gang.gang.key.partition("@")[0])
    for key, count in waiting_without_group(snapshot).items():
        other_namespace, other = split_key(key)
        verb = "names" if count == 1 else "name"
        things: dict[str, Number] = {"count": count, "group": key}
        if other == name and other_namespace != namespace:
            text = f"{counted(count, 'pod')} in namespace {other_namespace} {verb} it; a gang has all its pods in its own namespace"
            yield Line(text, "OtherNamespace", things)
        elif other_namespace == namespace and get_close_matches(other, [name], cutoff=0.75):
            yield Line(
                f"{counted(count, 'pod')} {verb} the group {other!r}, which does not exist; {name!r} may be meant",
                "OtherGroup",
                things,
            )


def _contested(reading: Reading) -> Iterator[Line]:
    """Yield the pods that name this gang and another one, and are in neither."""
    for key, problem in reading.contested.items():
        if f"{reading.gang.gang.key} (" in problem:
            yield Line(f"pod {key}: {problem.removeprefix('metadata: ')}", "TwoGroups", {"pod": key})


def _in_other_gangs(reading: Reading) -> Iterator[Line]:
    """Yield the gangs that have pods which carry the name of this one too, or the names of those that it lacks."""
    gang, snapshot = reading.gang, reading.snapshot
    missing = set(_missing_names(gang, max(gang.gang.min_member - gang.valid, 0)))
    for key, members in snapshot.members.items():
        if key == gang.gang.key or not key.startswith(f"{gang.gang.namespace}/"):
            continue
        waiting = (task for task in members.values() if task.status is Status.PENDING)
        pods = sorted((task.name for task in waiting if task.name in missing or _mentions(task, gang.gang.name)), key=as_counted)
        if pods:
            verb = "is" if len(pods) == 1 else "are"
            text = f"{counted(len(pods), 'pod')} {verb} in gang {key} and not in this one{_names(pods)}"
            yield Line(text, "OtherGang", {"gang": str(key), "count": len(pods)})


def _mentions(task: Task, group: str) -> bool:
    return any(group in (task.annotations.get(field.key), task.labels.get(field.key)) for field in REFERENCE_FIELDS if field.key)


def nobody_describes(snapshot: Snapshot, gang: str, text: str) -> StageResult:
    """Say of a group that pods name and that does not exist which one may be meant."""
    namespace, name = split_key(gang)
    here = [split_key(key.partition("@")[0])[1] for key in snapshot.gangs if key.startswith(f"{namespace}/")]
    elsewhere = sorted(key for key in snapshot.gangs if key.endswith(f"/{name}"))
    close = get_close_matches(name, here, n=1, cutoff=0.75)
    below = [Line(f"there is a group {close[0]!r}; it may be meant", "OtherGroup", {"group": close[0]})] if close else []
    below += [
        Line(f"there is {key}, but a gang has all its pods in its own namespace", "OtherNamespace", {"group": key})
        for key in elsewhere
    ]
    return StageResult(Stage.VALID, False, (Line(text, GROUP_NOT_FOUND, {"group": gang}, tuple(below)),))


def waiting_without_group(snapshot: Snapshot) -> dict[str, int]:
    """Count the waiting pods of each group that nobody describes."""
    found = {}
    for key, members in snapshot.members.items():
        waiting = sum(task.status is Status.PENDING for task in members.values())
        if waiting and key not in snapshot.gangs:
            found[str(key)] = waiting
    return found
