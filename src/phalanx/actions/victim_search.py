"""Make room for a whole gang with as few evictions as possible.

Nothing is evicted unless every task that the gang needs then has a place, free room counted in. Victims go in units
(`victim_units.py`). First the cheapest node is chosen for task after task (`node_costs.py`), then what the queue has no quota for
is taken from the queue. After that every unit is put back that turns out not to be needed: what is left is needed, each single one.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import combinations, islice

from phalanx.actions.dry_run import DryRun
from phalanx.actions.eviction_bounds import EvictionBounds
from phalanx.actions.gang_places import Places, is_alone
from phalanx.actions.node_costs import UNKNOWN, NodeCosts, NodeCostTable, NodeVictimFinder
from phalanx.actions.victim_units import Importance, VictimUnit, VictimUnits, is_whole, spare_of
from phalanx.model.queue import ROOT, Queue
from phalanx.placement import Mask
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import YES, Verdict

MOST_UNITS = 24
"""With which a plan is begun anew when going from node to node finds no way."""

MOST_PARTS = 6
"""Of a gang of which every part is tried as victims."""


@dataclass(frozen=True, slots=True)
class RoomRequest:
    """For whom room is made, and in which way; `purpose` is preempt or reclaim."""

    gang: GangState
    queue: Queue
    purpose: str
    action: str


class VictimSearch:
    """Plans evictions for one gang and carries them out."""

    def __init__(self, session: Session, room_request: RoomRequest, cost_table: NodeCostTable, bounds: EvictionBounds) -> None:
        """Serve the gang of the room_request."""
        self._session, self._room_request, self._cost_table, self._bounds = session, room_request, cost_table, bounds
        self._gang, self._queue = room_request.gang, room_request.queue
        self._units = VictimUnits(session, room_request.gang, room_request.purpose)
        self._held: dict[VictimUnit, Statement] = {}
        self._touched: set[int] = set()
        self._was_put_back = False

    def make(self, domain: Mask, waiting: list[TaskState]) -> bool:
        """Place the tasks in the domain, evicting what has to go; tell whether it was done."""
        if not domain.any():
            return False
        places = Places(self._session, self._queue, domain, waiting)
        key = self._key(places)
        if key is not None and self._cost_table.is_hopeless(key, self._session.version):
            return False
        is_done = self._may_take_all(places) and (places.fit() or self._plan(domain, places) or self._plan_anew(places))
        if is_done:
            self._spare_the_rest(places)
            is_done = self._carry_out(places)
        elif key is not None:
            self._cost_table.give_up(key, self._session.version)
        self._release(list(self._held))
        self._cost_table.settle(self._touched, goes_back=self._was_put_back)
        return is_done

    def _key(self, places: Places) -> Hashable:
        """Return what gangs have in common that have the same chances; None when that cannot be said."""
        return None if places.key is None else (self._queue.name, self._gang.gang.priority, places.key)

    def _may_take_all(self, places: Places) -> bool:
        """Tell whether the queue may take from others for all tasks together; inside a queue it always may."""
        if not all(self._session.prefilter(run[0]).ok for run in places.runs):
            return False
        if self._room_request.purpose == "preempt":
            return True
        with self._session.trial() as trial:
            return all(self._take_somewhere(run, trial) for run in places.runs)

    def _take_somewhere(self, run: list[TaskState], trial: Statement) -> bool:
        """Count equal tasks against the queue, wherever they may be placed later; if it may take for the last, then for all."""
        trial.pipeline(run[:-1], [0] * (len(run) - 1))
        verdict = self._session.queue_preemptive(self._queue, run[-1])
        trial.pipeline(run[-1:], [0])
        return verdict.ok or run[-1].task.is_best_effort  # for which no share of a queue is counted

    # --- choosing victims ------------------------------------------------------------------------------------------

    def _plan(self, domain: Mask, places: Places) -> bool:
        """Choose victims node by node with all tasks placed for a trial; the victims stay evicted, the places are given back."""
        with self._session.trial() as trial:
            is_planned = all(self._plan_run(domain, tasks, trial) for tasks in places.runs)
        if is_planned and self._make_quota(places):
            return True
        self._release(list(self._held))
        return False

    def _plan_run(self, domain: Mask, tasks: list[TaskState], trial: Statement) -> bool:
        """Find the cheapest place for each task of a run of identical ones."""
        dry_run = DryRun(self._session, tasks[0])
        maker = NodeVictimFinder(self._session, self._units, dry_run, tasks[0])
        costs = self._costs(tasks[0], domain & dry_run.candidates)
        for task in tasks:
            node = self._next_place(costs, maker, dry_run)
            if node is None:
                return False
            trial.pipeline([task], [node])
            self._touched.add(node)
            costs.push(UNKNOWN, node)
        return True

    def _costs(self, task: TaskState, nodes: Mask) -> NodeCosts:
        """Return the cost list of the task's class; tasks that other pods matter to have one of their own."""

        def make() -> NodeCosts:
            request = self._session.request_of(task.task.shape)
            return NodeCosts(nodes, self._bounds.least_costs(self._gang, request, self._room_request.purpose))

        if not is_alone(self._session, task):
            return make()
        key = (
            self._session.class_of(task.task.shape), self._queue.name, self._units.givers, self._gang.gang.priority,
            self._bounds.victims_of(self._gang, self._room_request.purpose), nodes.tobytes(),
        )  # fmt: skip
        costs = self._cost_table.costs(key, make)
        if self._held:
            costs.keep()
        return costs

    def _next_place(self, costs: NodeCosts, maker: NodeVictimFinder, dry_run: DryRun) -> int | None:
        """Take the cheapest node whose cost is still right, and evict there."""
        while costs:
            cost, node = costs.pop()
            offer = maker.offer(node)
            if offer is None:
                continue
            if offer.cost() > cost:
                costs.push(offer.cost(), node)
                continue
            costs.keep((cost, node))
            for unit in offer.units:
                self._evict(unit)
            if dry_run.passes(node):
                for place in {victim.node for unit in offer.units for victim in unit.gang.tasks} - {node, -1}:
                    costs.push(UNKNOWN, place)
                return node
            self._release(list(offer.units))
        return None

    def _plan_anew(self, places: Places) -> bool:
        """Begin with each unit once and go on with the least important, if there are only a few; tell whether that led to room.

        The way from node to node can fail where another would not: tasks differ, or a queue gives no more after a bad start.
        A whole gang is met on each of its nodes, and tried once.
        """
        units = list(islice(self._all_units(places.tasks), MOST_UNITS + 1))
        return len(units) <= MOST_UNITS and any(self._begin_with(unit, places) for unit in dict.fromkeys(units))

    def _all_units(self, tasks: list[TaskState]) -> Iterator[VictimUnit]:
        nodes = range(len(self._session.snapshot.nodes))
        return (unit for node in nodes for line in self._units.lines(node, tasks[0]) for unit in line)

    def _begin_with(self, first: VictimUnit, places: Places) -> bool:
        self._evict(first)
        for unit in self._cheapest_first(places.tasks):
            if places.fit():
                return True
            self._evict(unit)
        if places.fit():
            return True
        self._release(list(self._held))
        return False

    def _cheapest_first(self, tasks: list[TaskState]) -> Iterator[VictimUnit]:
        """Yield units, the least important of all nodes first, each after the one before is gone."""
        heap: list[tuple[Importance, int]] = [
            ((False, -(1 << 62), 0, 0, 0), node) for node in range(len(self._session.snapshot.nodes))
        ]
        while heap:
            importance, node = heappop(heap)
            unit = min(self._units.on(node, tasks[0]), key=VictimUnit.importance, default=None)
            if unit is None:
                continue
            if unit.importance() > importance:
                heappush(heap, (unit.importance(), node))
                continue
            yield unit
            heappush(heap, (unit.importance() if unit in self._held else (True, 1 << 62, 0, 0, 0), node))

    def _make_quota(self, places: Places) -> bool:
        """Evict from the queue, or from queues beside it, until the quota has room for the tasks."""
        units: Iterator[VictimUnit] | None = None
        while not (verdict := self._quota(places)).ok:
            units = units or self._cheapest_first(places.tasks)
            unit = next((unit for unit in units if self._gives(unit, verdict)), None)
            if unit is None:
                return False
            self._evict(unit)
        return True

    def _quota(self, places: Places) -> Verdict:
        """Return what refuses one of the tasks when all are counted against the queue."""
        with self._session.trial() as trial:
            for run in places.runs:
                if self._session.queue_room(self._queue, run[0].task.shape).tasks >= len(run):
                    trial.pipeline(run, [0] * len(run))
                    continue
                for task in run:
                    room = self._session.queue_room(self._queue, task.task.shape)
                    if room.tasks <= 0:
                        return room.verdict
                    trial.pipeline([task], [0])
        return YES

    def _gives(self, unit: VictimUnit, verdict: Verdict) -> bool:
        """Tell whether a unit gives what the queue that refused is short of."""
        short_queue, resource = verdict.numbers.get("queue"), verdict.numbers.get("resource")
        if short_queue is not None and str(short_queue) not in self._line(unit.gang.gang.queue):
            return False
        return resource is None or any(task.task.shape.request.get(str(resource), 0) for task in unit.tasks)

    def _line(self, name: str) -> list[str]:
        """Return a queue and those above it."""
        found = [name]
        while (queue := self._session.queues.get(found[-1])) is not None and found[-1] != ROOT and len(found) < 100:
            found.append(queue.parent or ROOT)
        return found

    # --- taking and giving back ------------------------------------------------------------------------------------

    def _evict(self, unit: VictimUnit) -> None:
        statement = self._session.trial()
        self._touched.update(task.node for task in unit.gang.tasks if task.node >= 0)
        for task in unit.tasks:
            statement.evict(task, action=self._room_request.action, preemptor=self._gang.key, reason=self._reason(unit))
        self._held[unit] = statement

    def _release(self, units: list[VictimUnit]) -> None:
        for unit in reversed(units):
            self._held.pop(unit).discard()
            self._was_put_back = True

    def _spare_the_rest(self, places: Places) -> None:
        """Put back every unit that is not needed, the most important first."""
        self._join_wholes()
        for unit in sorted(self._held, key=VictimUnit.importance, reverse=True):
            self._release([unit])
            if not places.fit():
                self._evict(unit)
                if unit.is_whole:
                    self._spare_a_part(unit, places)

    def _join_wholes(self) -> None:
        """Make one unit of a gang that goes as a whole and of what it spared before."""
        for gang in [unit.gang for unit in self._held if unit.is_whole]:
            units = [unit for unit in self._held if unit.gang is gang]
            if len(units) > 1:
                self._release(units)
                self._evict(self._units.unit(tuple(task for unit in units for task in unit.tasks), is_whole=True))

    def _spare_a_part(self, whole: VictimUnit, places: Places) -> None:
        """Put back so much of a gang that it stays whole, if the rest is enough."""
        self._release([whole])
        parts = [self._units.unit((task,), is_whole=False) for task in whole.tasks]
        is_spared = self._keep_what_is_needed(parts, places) or self._keep_a_few(parts, places) if spare_of(whole.tasks) else False
        if not is_spared:
            self._evict(whole)

    def _keep_what_is_needed(self, parts: list[VictimUnit], places: Places) -> bool:
        """Evict the parts and put back one after the other; tell whether the gang then stays whole."""
        for part in parts:
            self._evict(part)
        for part in parts:
            self._release([part])
            if not places.fit():
                self._evict(part)
        if is_whole(parts[0].gang):
            return True
        self._release([part for part in parts if part in self._held])
        return False

    def _keep_a_few(self, parts: list[VictimUnit], places: Places) -> bool:
        """Try every choice of parts of a small gang, few first."""
        if len(parts) > MOST_PARTS:
            return False
        for chosen in (choice for size in range(1, len(parts)) for choice in combinations(parts, size)):
            for part in chosen:
                self._evict(part)
            if is_whole(parts[0].gang) and places.fit():
                return True
            self._release(list(chosen))
        return False

    def _carry_out(self, places: Places) -> bool:
        """Evict the chosen units and promise the places, if the gang is then whole; without victims it may start at once."""
        if not self._held and self._start(places):
            return True
        statement = self._session.trial()
        if not places.take(statement) or not self._gang.is_pipelined or not self._session.gang_pipelined(self._gang):
            statement.discard()
            return False
        for held in self._held.values():
            held.commit()
        statement.commit()
        self._held = {}
        return True

    def _start(self, places: Places) -> bool:
        with self._session.trial() as statement:
            if not places.take(statement, starts_now=True) or not self._session.gang_ready(self._gang).ok:
                return False
            statement.commit()
            return True

    def _reason(self, unit: VictimUnit) -> str:
        """Say by which rule, what becomes of the victim's gang, and why this victim: `_spare_the_rest` put back all others."""
        what = "its whole gang goes" if unit.is_whole else "its gang can spare it"
        why = f"{what}, and without its room {self._gang.key} cannot start"
        if self._room_request.purpose == "preempt":
            mine, its = self._gang.gang.priority, unit.gang.gang.priority
            return f"preempted by gang {self._gang.key} (priority {mine} over {its}): {why}"
        queues = f"queue {unit.gang.gang.queue} has more than it deserves, queue {self._queue.name} less"
        return f"reclaimed for gang {self._gang.key} ({queues}): {why}"
