"""Make room for a whole gang with as few evictions as possible.

Nothing is evicted unless every task that the gang needs then has a place, free room counted in. Victims go in units: a task that
its gang can spare, or a whole gang; never a part that would leave a gang broken. First the cheapest node is chosen for task after
task, then every unit is put back that turns out not to be needed: what is left is needed, each single one of it.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from phalanx.actions.eviction import Siege, is_victim
from phalanx.core.session import Session
from phalanx.core.statement import Statement
from phalanx.core.states import GangState, TaskState
from phalanx.model.queue import Queue
from phalanx.model.status import EVICTABLE, READY
from phalanx.placement import Amounts, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Tasks that go together: one that its gang can spare, or all of a gang."""

    tasks: tuple[TaskState, ...]
    is_whole: bool

    @property
    def gang(self) -> GangState:
        """The gang that gives."""
        return self.tasks[0].gang


@dataclass(frozen=True, slots=True)
class Offer:
    """What it takes to place one more task on a node."""

    units: tuple[Unit, ...]

    def cost(self) -> tuple[int, int, int]:
        """Fewest gangs broken first, then the least important victims, then the fewest tasks."""
        broken = sum(unit.is_whole for unit in self.units)
        highest = max((unit.gang.gang.priority for unit in self.units), default=-(1 << 62))
        return broken, highest, sum(len(unit.tasks) for unit in self.units)


Cost = tuple[int, int, int]
UNKNOWN: Cost = (-1, 0, 0)
"""Below every real cost: the node has to be looked at before it is chosen."""


class PriceBoard:
    """What one more task costs on each node, by class of tasks and of preemptors, kept from gang to gang.

    A listed cost is never above the real one: it is looked up again before it is believed, and a node that may have become
    cheaper is listed as unknown. So gangs that are alike do not ask all nodes again, each one only the next cheapest.
    """

    def __init__(self) -> None:
        """Start with no prices."""
        self._heaps: dict[Hashable, list[tuple[Cost, int]]] = {}

    def heap(self, key: Hashable, nodes: Mask) -> list[tuple[Cost, int]]:
        """Return the price list of a class, all nodes unknown at first."""
        if key not in self._heaps:
            self._heaps[key] = [(UNKNOWN, node) for node in np.flatnonzero(nodes).tolist()]
        return self._heaps[key]

    def forget(self, nodes: set[int]) -> None:
        """List nodes as unknown in every class: something happened there."""
        for heap in self._heaps.values():
            for node in nodes:
                heappush(heap, (UNKNOWN, node))


class RoomMaker:
    """Plans evictions for one gang and carries them out."""

    def __init__(self, session: Session, gang: GangState, queue: Queue, purpose: str, action: str, board: PriceBoard) -> None:
        """Serve the gang; `purpose` is preempt or reclaim."""
        self._session, self._gang, self._queue = session, gang, queue
        self._purpose, self._action, self._board = purpose, action, board
        self._held: dict[Unit, Statement] = {}
        self._touched: set[int] = set()

    def make(self, domain: Mask, waiting: list[TaskState]) -> bool:
        """Place the tasks in the domain, evicting what has to go; tell whether it was done."""
        is_done = self._plan(domain, waiting)
        if is_done:
            self._spare_the_rest(domain, waiting)
            is_done = self._carry_out(domain, waiting)
        self._release(list(self._held))
        self._board.forget(self._touched)
        return is_done

    def _plan(self, domain: Mask, waiting: list[TaskState]) -> bool:
        """Choose victims node by node with all tasks placed for a trial; the victims stay evicted, the places are given back."""
        with self._session.statement() as places:
            by_shape: dict[int, list[TaskState]] = {}
            for task in waiting:
                by_shape.setdefault(id(task.task.shape), []).append(task)
            return all(self._plan_run(domain, tasks, places) for tasks in sorted(by_shape.values(), key=self._size, reverse=True))

    def _size(self, tasks: list[TaskState]) -> int:
        return int(self._session.request_of(tasks[0].task.shape).amounts.sum())

    def _plan_run(self, domain: Mask, tasks: list[TaskState], places: Statement) -> bool:
        """Find the cheapest place for each task of a run of identical ones."""
        if not self._session.prefilter(tasks[0]).ok or not self._make_quota(domain, tasks):
            return False
        siege = Siege(self._session, tasks[0])
        heap = self._prices(siege, tasks[0], domain)
        for task in tasks:
            node = self._next_place(heap, siege, task, domain)
            if node is None or not self._may_take(task):
                return False
            places.pipeline([task], [node])
            self._touched.add(node)
            heappush(heap, (UNKNOWN, node))
        return True

    def _prices(self, siege: Siege, task: TaskState, domain: Mask) -> list[tuple[Cost, int]]:
        """Return the price list of the task's class; tasks that other pods matter to have one of their own."""
        shape = task.task.shape
        if not self._session.is_local(shape):
            return [(UNKNOWN, node) for node in np.flatnonzero(domain & siege.candidates).tolist()]
        key = (self._session.class_of(shape), self._queue.name, self._gang.gang.priority, self._purpose, domain.tobytes())
        return self._board.heap(key, domain & siege.candidates)

    def _may_take(self, task: TaskState) -> bool:
        return self._purpose == "preempt" or self._session.queue_preemptive(self._queue, task).ok

    def _next_place(self, heap: list[tuple[Cost, int]], siege: Siege, task: TaskState, domain: Mask) -> int | None:
        """Take the cheapest node whose price is still right, and evict there."""
        while heap:
            cost, node = heappop(heap)
            offer = self._offer(siege, task, node) if siege.candidates[node] and domain[node] else None
            if offer is None:
                continue
            if offer.cost() > cost:
                heappush(heap, (offer.cost(), node))
                continue
            for unit in offer.units:
                self._evict(unit)
            if siege.passes(node):
                for place in {victim.node for unit in offer.units if unit.is_whole for victim in unit.tasks} - {node}:
                    heappush(heap, (UNKNOWN, place))
                return node
            self._release(list(offer.units))
        return None

    def _offer(self, siege: Siege, task: TaskState, node: int) -> Offer | None:
        """Return the cheapest way to make one more task fit on the node; None when there is none."""
        room = self._session.ledger.future[:, node].copy()
        if _covers(room, siege):
            return Offer(())
        units: list[Unit] = []
        for unit in self._units_on(task, node):
            units.append(unit)
            room += self._amounts(unit, node)
            if _covers(room, siege):
                return Offer(self._needed(units, room, siege, node))
        return None

    def _needed(self, units: list[Unit], room: Amounts, siege: Siege, node: int) -> tuple[Unit, ...]:
        """Drop units that later ones made needless, the most important first."""
        kept = list(units)
        for unit in reversed(units):
            smaller = room - self._amounts(unit, node)
            if _covers(smaller, siege):
                kept.remove(unit)
                room = smaller
        return tuple(kept)

    def _amounts(self, unit: Unit, node: int) -> Amounts:
        total = np.zeros(len(self._session.snapshot.space), dtype=np.int64)
        for task in unit.tasks:
            if task.node == node:
                total += self._session.request_of(task.task.shape).amounts
        return total

    def _units_on(self, preemptor: TaskState, node: int) -> list[Unit]:
        """Return what may go from a node, the least important first: what gangs can spare, then whole gangs."""
        candidates = [task for task in self._session.running_on(node) if is_victim(self._session, task, self._gang, self._purpose)]
        allowed = self._session.evictable(preemptor, candidates, self._purpose) if candidates else []
        line = sorted(allowed, key=_importance)
        spare, rest = _split_spare(line)
        gangs = {task.gang.key: task.gang for task in rest}
        whole = [unit for gang in gangs.values() if (unit := self._whole(preemptor, gang, spare))]
        return [Unit((task,), False) for task in spare] + sorted(
            whole, key=lambda unit: (unit.gang.gang.priority, len(unit.tasks), unit.gang.key)
        )

    def _whole(self, preemptor: TaskState, gang: GangState, spare: list[TaskState]) -> Unit | None:
        """Return all of a gang as one unit, unless one of its tasks is protected; spare tasks offered before are left out."""
        tasks = [task for task in gang.tasks if task.status in EVICTABLE]
        if not all(is_victim(self._session, task, self._gang, self._purpose) for task in tasks):
            return None
        if len(self._session.evictable(preemptor, tasks, self._purpose)) < len(tasks):
            return None
        rest = tuple(task for task in tasks if task not in spare)
        return Unit(rest, True) if rest else None

    def _make_quota(self, domain: Mask, tasks: list[TaskState]) -> bool:
        """Evict from the own queue until its quota has room for the tasks."""
        shape = tasks[0].task.shape
        if self._purpose == "reclaim":
            return True
        nodes = iter(np.flatnonzero(domain).tolist())
        while self._session.queue_room(self._queue, shape).tasks < len(tasks):
            unit = next((unit for node in nodes for unit in self._units_on(tasks[0], node)), None)
            if unit is None:
                return False
            self._evict(unit)
        return True

    def _evict(self, unit: Unit) -> None:
        statement = self._session.statement()
        self._touched.update(task.node for task in unit.tasks)
        for task in unit.tasks:
            statement.evict(task, action=self._action, preemptor=self._gang.key, reason=self._reason(unit))
        self._held[unit] = statement

    def _release(self, units: list[Unit]) -> None:
        for unit in reversed(units):
            self._held.pop(unit).discard()

    def _spare_the_rest(self, domain: Mask, waiting: list[TaskState]) -> None:
        """Put back every unit that is not needed, the most important first."""
        for unit in sorted(self._held, key=lambda unit: (unit.is_whole, unit.gang.gang.priority, len(unit.tasks)), reverse=True):
            self._release([unit])
            if not self._all_fit(domain, waiting):
                self._evict(unit)

    def _all_fit(self, domain: Mask, waiting: list[TaskState]) -> bool:
        """Tell whether the tasks have a place in the domain and in the quota now."""
        shape = waiting[0].task.shape
        if self._session.is_local(shape) and all(task.task.shape is shape for task in waiting):
            if self._session.queue_room(self._queue, shape).tasks < len(waiting):
                return False
            return self._session.outlook(shape).room_in(domain) >= len(waiting)
        with self._session.statement() as trial:
            return self._place(domain, waiting, trial)

    def _place(self, domain: Mask, waiting: list[TaskState], statement: Statement) -> bool:
        """Promise each task the best node of the domain; tell whether all got one."""
        for task in waiting:
            if self._session.queue_room(self._queue, task.task.shape).tasks <= 0:
                return False
            outlook = self._session.outlook(task.task.shape)
            mask = outlook.feasible & domain
            node = outlook.best(mask, extra=self._session.task_scores(task)) if mask.any() else None
            if node is None:
                return False
            statement.pipeline([task], [node])
        return True

    def _carry_out(self, domain: Mask, waiting: list[TaskState]) -> bool:
        """Evict the chosen units and promise the places, if the gang is then whole."""
        statement = self._session.statement()
        if (
            not self._place(domain, waiting, statement)
            or not self._gang.is_pipelined
            or not self._session.gang_pipelined(self._gang)
        ):
            statement.discard()
            return False
        for held in self._held.values():
            held.commit()
        statement.commit()
        self._held = {}
        return True

    def _reason(self, unit: Unit) -> str:
        what = "its whole gang goes" if unit.is_whole else "its gang keeps its minimum"
        if self._purpose == "preempt":
            mine, its = self._gang.gang.priority, unit.gang.gang.priority
            return f"preempted by gang {self._gang.key} (priority {mine} over {its}); {what}; every task of the gang gets a place"
        queues = f"queue {unit.gang.gang.queue} has more than it deserves, queue {self._queue.name} less"
        return f"reclaimed for gang {self._gang.key}: {queues}; {what}; every task of the gang gets a place"


def _covers(room: Amounts, siege: Siege) -> bool:
    return all(room[row] >= amount for row, amount in siege.request.rows)


def _importance(task: TaskState) -> tuple[int, int, float, str]:
    """Order victims: lower gang priority, lower task priority, started last, then by key."""
    return task.gang.gang.priority, task.task.priority, -task.task.started, task.task.key


def _split_spare(tasks: list[TaskState]) -> tuple[list[TaskState], list[TaskState]]:
    """Split tasks into those that their gangs can lose, as many as each can, and the rest."""
    taken: dict[str, int] = {}
    spare, rest = [], []
    for task in tasks:
        role = f"{task.gang.key} {task.task.role}"
        if _can_spare(task, taken.get(task.gang.key, 0), taken.get(role, 0)):
            taken[task.gang.key], taken[role] = taken.get(task.gang.key, 0) + 1, taken.get(role, 0) + 1
            spare.append(task)
        else:
            rest.append(task)
    return spare, rest


def _can_spare(task: TaskState, taken: int, taken_of_role: int) -> bool:
    """Tell whether a gang stays whole without the task; a gang that is broken already can lose any."""
    gang = task.gang
    if gang.tally.ready < gang.gang.min_member:
        return True
    if gang.tally.ready - taken <= gang.gang.min_member:
        return False
    minimum = gang.gang.role_minima.get(task.task.role, 0) if gang.gang.roles_count else 0
    if minimum and gang.role_tallies[task.task.role].total(READY) - taken_of_role <= minimum:
        return False
    return not gang.has_subgroups or task.subgroup.tally.ready - taken > task.subgroup.min_member
