"""Gangs that run with too few members: which part is short, since when, and who would have to go for a fresh start.

A gang has started when some member held a place before this session. Members that succeeded count as present, so a gang that is
finishing is not short; neither is one whose missing members are pipelined. The gang's own minimum, those of its roles and the
number of sub-groups it needs are vital: without them the whole gang does nothing. A sub-group beyond that number is short for
itself alone.

A gang that is short is not always stale. Owners raise minima, add pods and take some away while a gang runs; what was whole works
on, and only what is missing waits. Stale is a gang that lost members against its owner's will. So a part is measured by the least
of
- what the group needs now;
- what it needed when its youngest member was bound, which that member says itself (`quorum.MINIMA`);
- how many members there are, where a controller makes them: it makes another one for each that it lost and still wants. Where
  no member says what was needed, because another scheduler bound them all, only members that failed or leave count as lost,
  unless the group says itself that it is stale. When in doubt, what runs is left running: evicting a gang that works destroys
  work for nothing, while one that is stale and left alone is seen by its owner. Comparing with what the group needs now, and
  nothing else, killed gangs whose operator or owner raised the minimum or added pods.

Since when, the group tells by its condition `Stale`, which the action `heal` has written on it; of a gang of pods alone sessions
remember it (`Snapshot.short_since`). Before that its pods tell: a
member is lost when it failed or when its deletion was asked for. Pods that are gone tell nothing, so a loss is never dated
before the newest member that waits, which may have been made in place of one of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from phalanx.model.gang import STALE, Gang, SubGroup
from phalanx.model.task import Task
from phalanx.model.task_status import EVICTABLE, HOLDING, READY, Status
from phalanx.state.gang_state import GangState, SubGroupState, Tally, TaskState
from phalanx.state.quorum import GANG, role_part, subgroup_part, subgroups_part
from phalanx.state.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Lack:
    """A part of a gang that has less than it needs."""

    part: str
    """``role chief`` or ``sub-group workers``; empty for the gang itself."""
    key: str
    """What the part is called among the minima that a pod was bound with."""
    tasks: Sequence[TaskState]
    have: int
    minimum: int
    counts_tasks: bool = True
    """Otherwise sub-groups are counted."""
    is_vital: bool = True

    def since(self, gang: Gang, now: float, seen: float = 0.0) -> float:
        """Return when the part became short, never too early; `now` when that is unknown.

        `seen` is when an earlier session saw that the gang is stale, for one that has no object which says it.
        """
        # It could do without the members lost earlier: with the newest losses, as many as are missing now, it became short.
        stamp, losses = stale_since(gang) or seen, sorted(_losses(self.tasks), reverse=True)
        missing = self.minimum - self.have
        known = losses[missing - 1] if self.counts_tasks and len(losses) >= missing else 0.0
        known = known if known <= now else 0.0  # by a clock that is ahead: then it counts from when it was first seen
        if stamp:
            return min(max(stamp, known), now)
        newest = max((task.task.created for task in self.tasks if task.task.status is Status.PENDING), default=0.0)
        return min(max(known, newest), now) if known else now

    def count(self, test: Callable[[TaskState], bool]) -> int:
        """Count the members that pass a test; where sub-groups are counted, those with such a member."""
        found = [task for task in self.tasks if test(task)]
        return len(found) if self.counts_tasks else len({task.subgroup.id for task in found})


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


def is_stale(gang: GangState) -> bool:
    """Tell whether a gang has started and lost members that it needs."""
    return bool(stale_parts(gang))


def stale_parts(gang: GangState) -> list[Lack]:
    """Return the parts of a gang that lost members they need, each with what it is measured by."""
    narrowed = [replace(lack, minimum=min((lack.minimum, *_bounds(gang, lack)))) for lack in lacks(gang)]
    return [lack for lack in narrowed if lack.have < lack.minimum]


def _bounds(gang: GangState, lack: Lack) -> Iterator[int]:
    """Yield upper bounds on what a part can be measured by; with none of them the minimum of the group counts."""
    holding = [state.task for state in gang.tasks if state.task.status in HOLDING]
    # The youngest member was bound with the newest minima that this gang ever ran with; older ones may say less.
    youngest = max(holding, key=lambda task: (task.minima is not None, task.created, task.key), default=None)
    if youngest is not None and youngest.minima is not None:
        yield youngest.minima.get(lack.key, 0)
    elif not stale_since(gang.gang):
        newest = max((task.created for task in holding), default=0.0)
        yield lack.have + lack.count(lambda state: _is_lost(state.task, newest))
    if any(state.task.has_controller for state in lack.tasks):
        yield lack.count(_is_wanted)


def _is_lost(task: Task, newest: float) -> bool:
    """Tell whether a member failed or leaves, no controller decided that, and none who runs was made after it."""
    if task.is_leaving:
        return not task.has_controller
    return task.status is Status.FAILED and (not task.finished or task.finished >= newest)


def _is_wanted(state: TaskState) -> bool:
    """Tell whether the controller of a member wants it: it takes others away, or makes one for each that leaves."""
    return not state.task.is_leaving


def is_short(gang: GangState) -> bool:
    """Tell whether a gang has started and some part of it has less than it needs."""
    return has_started(gang) and next(_lacks(gang), None) is not None


def has_started(gang: GangState) -> bool:
    """Tell whether some member holds a place that it had before this session; nothing runs on places that are only kept."""
    return gang.tally.total(HOLDING) > 0 and any(task.status in HOLDING and task.task.status in HOLDING for task in gang.tasks)


def lacks(gang: GangState) -> list[Lack]:
    """Return the parts of a gang that has started that are short; nothing for any other gang."""
    return list(_lacks(gang)) if has_started(gang) else []


def _lacks(gang: GangState) -> Iterator[Lack]:
    have = _present(gang.tally)
    if have < gang.gang.min_member:
        yield Lack("", GANG, gang.tasks, have, gang.gang.min_member)
    for role, minimum in gang.gang.role_minima.items() if gang.gang.roles_count else ():
        have = _present(gang.role_tallies[role])
        if have < minimum:
            part = role_part(role)
            yield Lack(part, part, [task for task in gang.tasks if task.task.role == role], have, minimum)
    needed = gang.missing_policies(lambda part: part.is_pipelined)
    for policy in gang.gang.subgroups:
        yield from _lacks_of(gang, policy, policy.min_subgroups if policy in needed else 0)


def _lacks_of(gang: GangState, policy: SubGroup, needed: int) -> Iterator[Lack]:
    """Yield the sub-groups of one policy that are short, where so many of them are needed.

    If others could make up for some of them, or if they are not there at all, nobody can tell which loss was one too many: then the
    number of sub-groups is what is short.
    """
    # Sub-groups come into being with their first pod: one of which nothing is left is not in the list, only the number is short.
    parts = [part for part in gang.subgroups.values() if part.policy is policy]
    short = [part for part in parts if not part.is_pipelined]
    missing = needed - (len(parts) - len(short))
    if missing <= 0:
        short = [part for part in short if part.tally.total(HOLDING)]
    if missing <= 0 or missing == len(short):
        for part in short:
            have = _present(part.tally)
            yield Lack(_title(part), subgroup_part(policy), part.tasks, have, part.min_member, is_vital=missing > 0)
    else:
        tasks = [task for part in parts for task in part.tasks]
        title = subgroups_part(policy)
        yield Lack(title, title, tasks, len(parts) - len(short), needed, counts_tasks=False)


def _title(part: SubGroupState) -> str:
    """Name a sub-group as its group object does, with the label values that tell it from its siblings."""
    return f"sub-group {part.id.removeprefix(part.gang.key).strip('/').removesuffix('-')}"


def _present(tally: Tally) -> int:
    return tally.total(READY) + tally.pipelined + tally.pending_best_effort


def leftovers(gang: GangState, short: Sequence[Lack]) -> list[TaskState]:
    """Return who goes when these parts have been short for too long: only the parts of a gang that is whole without them, else all.

    Members that were whole among themselves before the others were bound stay: when a leader dies while it adds pods to a gang that
    works, only what it added goes.
    """
    gone = {id(task) for lack in short for task in lack.tasks if task.status in EVICTABLE}
    if any(lack.is_vital for lack in short) or not _stays_whole(gang, gone):
        spared = _whole_before(gang) if all(lack.key == GANG for lack in short) else set()
        return [task for task in gang.tasks if task.status in EVICTABLE and id(task) not in spared]
    return [task for task in gang.tasks if id(task) in gone]


def _whole_before(gang: GangState) -> set[int]:
    """Return the ids of the largest set of members that has all it needed when the last of them was bound; empty when unknown.

    Members that were bound with a smaller minimum started earlier. If there are as many of them as the largest such minimum, they
    were a whole gang before it grew.
    """
    needed = {id(state): (state.task.minima or {}).get(GANG, inf) for state in gang.tasks if state.status in HOLDING}
    for most in sorted({need for need in needed.values() if need < inf}, reverse=True):
        found = {member for member, need in needed.items() if need <= most}
        if len(found) >= most:
            return found
    return set()


def evictable_members(gang: GangState) -> list[TaskState]:
    """Return the members that have a node and do not leave it yet."""
    return [task for task in gang.tasks if task.status in EVICTABLE]


def is_whole_without(gang: GangState, gone: Sequence[TaskState]) -> bool:
    """Tell whether what stays of a gang that runs has all that the gang needs, in all its parts."""
    keys = {state.task.key for state in gone}
    staying = ((state.task, state.node) for state in gang.tasks if state.task.key not in keys and not state.is_evicted)
    rest = GangState(gang.declared, staying, counts_unplaced=gang.counts_unplaced)
    return has_started(rest) and not lacks(rest)


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
