"""Victims in units: a task that its gang can spare, or a whole gang; never a part that would leave a gang broken.

A part that breaks its gang is the worst victim of all: the rest of the gang holds its room and does nothing with it. Whoever
chooses victims task by task cannot avoid it, because which task is one too many depends on the others; so units are all that is
offered.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from phalanx.actions.dry_run import Running, candidates_on, why_spared
from phalanx.actions.gang_places import dominant_share
from phalanx.model.shape import Shape
from phalanx.model.task_status import EVICTABLE, READY, Status
from phalanx.placement import Amounts
from phalanx.session.session import Session
from phalanx.session.spared import Spared
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.lost_work import last_checkpoint, lost_by

Importance = tuple[bool, int, int, int, int]
_JUST_PLACED = (Status.ALLOCATED, Status.BINDING, Status.PIPELINED)


@dataclass(frozen=True, slots=True, eq=False)
class VictimUnit:
    """Tasks that go together: one that its gang can spare, or all of a gang."""

    tasks: tuple[TaskState, ...]
    is_whole: bool
    turn: int = 0
    """The place of its queue among those that give."""
    lost: int = 0
    """The work that is done again (`state/lost_work.py`)."""

    @property
    def gang(self) -> GangState:
        """The gang that gives."""
        return self.tasks[0].gang

    def members(self) -> frozenset[int]:
        """Return the identities of its tasks: units are made anew each time a node is asked, their tasks are not."""
        return frozenset(map(id, self.tasks))

    def importance(self) -> Importance:
        """Order units: spare tasks before whole gangs, then by the priority of the gang, by work lost, by size, by the queue."""
        return self.is_whole, self.gang.gang.priority, self.lost, len(self.tasks), self.turn


class VictimUnits:
    """Finds the units that may be evicted for one gang; `purpose` is preempt or reclaim."""

    def __init__(self, session: Session, gang: GangState, purpose: str) -> None:
        """Prepare for the gang that needs room."""
        self._session, self._gang, self._purpose = session, gang, purpose
        self._checkpoints: dict[str, float] = {}
        self._wholes: dict[tuple[str, Shape], tuple[int, VictimUnit | None]] = {}
        self.givers = tuple(session.givers(session.queues[gang.gang.queue])) if purpose == "reclaim" else ()
        """The queues that give, in their order when the search began.

        The order by what queues hold at each moment moves with every eviction, and with it the cost of every node: lists of costs
        could not be kept. A reclaim storm on 500 nodes took minutes that way, and 4 seconds with the order fixed.
        """
        self._turns = {name: number for number, name in enumerate(self.givers)}

    def on_node(self, node: int, preemptor: TaskState) -> list[VictimUnit]:
        """Return what may go from a node, the least important first: what gangs can spare, then whole gangs."""
        return next(self.orders_on(node, preemptor))

    def orders_on(self, node: int, preemptor: TaskState) -> Iterator[list[VictimUnit]]:
        """Yield what `on_node` returns, and once more with large tasks first if a gang can spare either of two tasks but not both.

        Without the second order a gang that can spare one task offers its least important one, even if that is too small and
        another one would do: then a whole gang would go.
        """
        candidates = candidates_on(self._session, node, preemptor, self._why_spared, is_trial=True)
        line = sorted(self._allowed(preemptor, candidates), key=self._importance)
        spare = spare_of(line)
        spared = set(map(id, spare))
        gangs = {task.gang.key: task.gang for task in line if id(task) not in spared}
        whole = [unit for gang in gangs.values() if (unit := self._whole(preemptor, gang))]
        whole.sort(key=lambda unit: (*unit.importance(), unit.gang.key))
        yield [self._single(task) for task in spare] + whole
        if any(task.gang.key in gangs for task in spare):
            line.sort(key=lambda task: (task.gang.gang.priority, -dominant_share(self._session, task.task.shape)))
            yield [self._single(task) for task in spare_of(line)] + whole

    def _single(self, task: TaskState) -> VictimUnit:
        return self.unit((task,), is_whole=False)

    def unit(self, tasks: tuple[TaskState, ...], *, is_whole: bool) -> VictimUnit:
        """Return tasks of one gang as a unit."""
        checkpoint = self._checkpoint(tasks[0].gang)
        lost = sum(lost_by(task.task, checkpoint, self._session.now) for task in tasks)
        return VictimUnit(tasks, is_whole, self._turn(tasks[0]), lost)

    def _checkpoint(self, gang: GangState) -> float:
        if gang.key not in self._checkpoints:
            first = next(iter(self._session.snapshot.members_of(gang.gang.key).values()), None)
            self._checkpoints[gang.key] = last_checkpoint(gang.gang, first)
        return self._checkpoints[gang.key]

    def _turn(self, task: TaskState) -> int:
        return self._turns.get(task.gang.gang.queue, len(self._turns))

    def _importance(self, task: TaskState) -> tuple[int, int, int, float, str]:
        """Order victims: lower gang priority, lower task priority, whose queue gives first, started last, then by key."""
        return task.gang.gang.priority, task.task.priority, self._turn(task), -task.task.started, task.task.key

    def _allowed(self, preemptor: TaskState, candidates: list[TaskState]) -> list[TaskState]:
        """Return the tasks that may go one by one; together they may be too many, which is asked later (`may_go_together`)."""
        together = self._session.evictable(preemptor, candidates, self._purpose) if candidates else []
        if len(together) == len(candidates):
            return candidates
        known = set(map(id, together))
        return [task for task in candidates if id(task) in known or self._session.evictable(preemptor, [task], self._purpose)]

    def may_go_together(self, preemptor: TaskState, units: Sequence[VictimUnit]) -> bool:
        """Tell whether the plugins let all units go at once: what one may take, the next may have to leave."""
        if len(units) < 2:
            return True
        tasks = [task for unit in units for task in unit.tasks]
        return len(self._session.evictable(preemptor, tasks, self._purpose)) == len(tasks)

    def amounts(self, unit: VictimUnit, node: int) -> Amounts:
        """Return what a node gains when the unit goes."""
        if len(unit.tasks) == 1 and unit.tasks[0].node == node:
            return self._session.request_of(unit.tasks[0].task.shape).amounts
        total = np.zeros(len(self._session.snapshot.space), dtype=np.int64)
        for task in unit.tasks:
            if task.node == node:
                total += self._session.request_of(task.task.shape).amounts
        return total

    def _may_go(self, task: TaskState) -> bool:
        return not self._why_spared(task)

    def _why_spared(self, task: Running) -> Spared | None:
        return why_spared(self._session, task, self._gang, self._purpose)

    def _whole(self, preemptor: TaskState, gang: GangState) -> VictimUnit | None:
        """Return all of a gang as a unit, None if it may not go; asked once in each state of the session, for all its nodes."""
        key = (gang.key, preemptor.task.shape)
        if self._wholes.get(key, (-1, None))[0] != self._session.version:
            self._wholes[key] = (self._session.version, self._find_whole(preemptor, gang))
        return self._wholes[key][1]

    def _find_whole(self, preemptor: TaskState, gang: GangState) -> VictimUnit | None:
        """Return all of a gang as one unit, unless one of its tasks is protected or was given a place in this session."""
        # Its members of this session cannot be evicted: they do not run yet. Evicting the others would leave a part of it.
        if any(gang.tally.counts[status] for status in _JUST_PLACED):
            return None
        tasks = [task for task in gang.tasks if task.status in EVICTABLE]
        if not all(self._may_go(task) for task in tasks):
            return None
        if len(self._session.evictable(preemptor, tasks, self._purpose)) < len(tasks):
            return None
        return self.unit(tuple(tasks), is_whole=True)


def spare_of(tasks: Iterable[TaskState]) -> list[TaskState]:
    """Return those tasks that their gangs can lose and stay whole, as many as each can; all of a gang that is broken already.

    Gangs that only go as a whole spare nobody.
    """
    taken: Counter[tuple[str, str]] = Counter()
    wholes: dict[str, bool] = {}
    spare = []
    for task in tasks:
        if task.gang.key not in wholes:
            wholes[task.gang.key] = is_whole(task.gang)
        marks = (task.gang.key, ""), (task.gang.key, f"role {task.task.role}"), (task.gang.key, f"part {task.subgroup.id}")
        if task.gang.gang.goes_whole:
            continue
        # A broken gang does nothing with what it holds, so all of it can go; how it broke does not matter here.
        if not wholes[task.gang.key] or _can_spare(task, *(taken[mark] for mark in marks)):
            taken.update(marks)
            spare.append(task)
    return spare


def is_whole(gang: GangState) -> bool:
    """Tell whether every minimum of the gang is met, with members that this session pipelined."""
    return gang.is_pipelined and gang.roles_are_pipelined() and gang.subgroups_are_pipelined()


def _can_spare(task: TaskState, taken: int, taken_of_role: int, taken_of_part: int) -> bool:
    gang, tally = task.gang, task.gang.tally
    if tally.ready + tally.pipelined + tally.pending_best_effort - taken <= gang.gang.min_member:
        return False
    minimum = gang.gang.role_minima.get(task.task.role, 0) if gang.gang.roles_count else 0
    if minimum:
        role = gang.role_tallies[task.task.role]
        if role.total(READY) + role.pipelined + role.pending_best_effort - taken_of_role <= minimum:
            return False
    part = task.subgroup
    return not gang.has_subgroups or part.tally.ready + part.tally.pipelined - taken_of_part > part.min_member
