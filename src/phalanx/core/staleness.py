"""Gangs that run with too few members: which part is short, since when, and who would have to go for a fresh start.

A gang has started when some member holds a place. Members that succeeded count as present, so a gang that is finishing is not
short; neither is one that was promised what it lacks. The gang's own minimum, those of its roles and the number of sub-groups it
needs are vital: without them the whole gang does nothing. A sub-group beyond that number is short for itself alone.

Since when, the group tells by its condition `Stale`, which the action `heal` has written on it. Before that its pods tell: a
member is lost when it failed or when its deletion was asked for. Pods that are gone tell nothing, so a loss is never dated
before the newest member that waits, which may have been made in place of one of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from phalanx.core.states import GangState, SubGroupState, Tally, TaskState
from phalanx.core.verdict import Verdict
from phalanx.model.gang import STALE, Gang, SubGroup
from phalanx.model.status import EVICTABLE, HOLDING, READY, Status


@dataclass(frozen=True, slots=True)
class Lack:
    """A part of a gang that has less than it needs."""

    part: str
    """``role chief`` or ``sub-group workers``; empty for the gang itself."""
    tasks: Sequence[TaskState]
    have: int
    minimum: int
    counts_tasks: bool = True
    """Otherwise sub-groups are counted."""
    is_vital: bool = True

    def since(self, gang: Gang, now: float) -> float:
        """Return when the part became short, as far as anybody knows: never too early, and now if nobody knows."""
        stamp, losses = stale_since(gang), sorted(_losses(self.tasks), reverse=True)
        missing = self.minimum - self.have
        known = losses[missing - 1] if self.counts_tasks and len(losses) >= missing else 0.0
        if stamp:
            return min(max(stamp, known), now)
        newest = max((task.task.created for task in self.tasks if task.task.status is Status.PENDING), default=0.0)
        return min(max(known, newest), now) if known else now


def stale_since(gang: Gang) -> float:
    """Return since when the group object says that the gang is stale; 0 when it does not."""
    return next((condition.since for condition in gang.conditions if (condition.type, condition.status) == (STALE, "True")), 0.0)


def stale_verdict(gang: GangState) -> Verdict | None:
    """Return what the session says about a stale gang; None when it is not one."""
    return next((verdict for verdict in gang.verdicts if verdict.reason == STALE), None)


def _losses(tasks: Iterable[TaskState]) -> Iterator[float]:
    for task in tasks:
        lost = {Status.FAILED: task.task.finished, Status.RELEASING: task.task.leaving_since}.get(task.task.status, 0.0)
        if lost:
            yield lost


def is_short(gang: GangState) -> bool:
    """Tell whether a gang has started and some part of it has less than it needs."""
    return has_started(gang) and next(_lacks(gang), None) is not None


def has_started(gang: GangState) -> bool:
    """Tell whether some member holds a place."""
    return gang.tally.total(HOLDING) > 0


def lacks(gang: GangState) -> list[Lack]:
    """Return the parts of a gang that has started that are short; nothing for any other gang."""
    return list(_lacks(gang)) if has_started(gang) else []


def _lacks(gang: GangState) -> Iterator[Lack]:
    have = _present(gang.tally)
    if have < gang.gang.min_member:
        yield Lack("", gang.tasks, have, gang.gang.min_member)
    for role, minimum in gang.gang.role_minima.items() if gang.gang.roles_count else ():
        have = _present(gang.role_tallies[role])
        if have < minimum:
            yield Lack(f"role {role}", [task for task in gang.tasks if task.task.role == role], have, minimum)
    for policy in gang.gang.subgroups:
        yield from _lacks_of(gang, policy)


def _lacks_of(gang: GangState, policy: SubGroup) -> Iterator[Lack]:
    """Yield the sub-groups of one policy that are short.

    If others could make up for some of them, or if they are not there at all, nobody can tell which loss was one too many: then the
    number of sub-groups is what is short.
    """
    parts = [part for part in gang.subgroups.values() if part.policy is policy]
    short = [part for part in parts if not part.is_pipelined]
    missing = policy.min_subgroups - (len(parts) - len(short))
    if missing <= 0:
        short = [part for part in short if part.tally.total(HOLDING)]
    if missing <= 0 or missing == len(short):
        for part in short:
            yield Lack(_title(part), part.tasks, _present(part.tally), part.min_member, is_vital=missing > 0)
    else:
        tasks = [task for part in parts for task in part.tasks]
        yield Lack(f"sub-groups {policy.name}", tasks, len(parts) - len(short), policy.min_subgroups, counts_tasks=False)


def _title(part: SubGroupState) -> str:
    """Name a sub-group as its group object does, with the label values that tell it from its siblings."""
    return f"sub-group {part.id.removeprefix(part.gang.key).strip('/').removesuffix('-')}"


def _present(tally: Tally) -> int:
    return tally.total(READY) + tally.waiting + tally.pending_best_effort


def leftovers(gang: GangState, short: Sequence[Lack]) -> list[TaskState]:
    """Return who goes when these parts have been short for too long: of whole gangs only the parts, of others everybody."""
    gone = {id(task) for lack in short for task in lack.tasks if task.status in EVICTABLE}
    if any(lack.is_vital for lack in short) or not _stays_whole(gang, gone):
        return [task for task in gang.tasks if task.status in EVICTABLE]
    return [task for task in gang.tasks if id(task) in gone]


def _stays_whole(gang: GangState, gone: set[int]) -> bool:
    """Tell whether what a gang has beyond its minimum, and beyond those of its roles, covers what goes."""
    leaving = [task for task in gang.tasks if id(task) in gone]
    if _present(gang.tally) - len(leaving) < gang.gang.min_member:
        return False
    minima = gang.gang.role_minima if gang.gang.roles_count else {}
    return all(
        _present(gang.role_tallies[role]) - sum(task.task.role == role for task in leaving) >= minimum
        for role, minimum in minima.items()
    )
