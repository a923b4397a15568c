"""Make room for a whole gang with as few evictions as possible.

What holds when a search ends, whatever it tried on the way:

- Nobody is evicted unless every task that the gang needs then has a place, free room counted in.
- Victims go in units (`victim_units.py`): a task that its gang can spare, or a whole gang. No gang is left broken.
- No victim is needless: put any single unit back and the gang has no place. That is less than the smallest set of victims, which
  would take an exhaustive search; `tests/properties/test_evictions.py` compares with one on small clusters.
- A search that finds nothing leaves every book as it was.

The steps:

1. *Bounds* (`eviction_bounds.py`). A gang that would find no room even if everybody left who may leave is not searched for.
2. *Plan*, node by node: each task gets the node where it costs least (`node_costs.py`), and what has to go there is evicted on
   trial, so that the next task sees its room. Taking victims from one list for the whole cluster would be simpler, but frees room
   that is spread over many nodes and of no use to a task that needs much on one.
3. *Quota*: a queue at its limit has no quota for the tasks although nodes have room, so tasks of the full queue, or of queues
   below it, are evicted too.
4. *Another plan*, if the first one failed and victims are few: one beginning with each unit. Greedy steps can end in a dead end.
5. *Put back*: the plan served task after task and may have evicted for one what a later step made needless. Units are put back
   one by one, the most important first, and stay if all tasks still have places (`gang_places.py`) at once.
6. *Carry out*: places are taken again, with the victims that are left, and everything is committed together.

Evictions are tried as open statements, one for each unit, because units are put back in an order that is not the reverse of the
one in which they were evicted: a single statement can only be rolled back from its end.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import combinations, islice

import numpy as np

from phalanx.actions.dry_run import DryRun
from phalanx.actions.eviction_bounds import EvictionBounds
from phalanx.actions.eviction_worth import EvictionWorth
from phalanx.actions.gang_places import Places, is_independent
from phalanx.actions.node_costs import UNKNOWN, NodeCosts, NodeCostTable, NodeVictimFinder
from phalanx.actions.victim_units import Importance, VictimUnit, VictimUnits, is_whole, spare_of
from phalanx.model.queue import ROOT, Queue
from phalanx.placement import Mask
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import YES, Verdict

MOST_STARTING_UNITS = 24
"""Plans are begun with each unit only if there are no more than this: each of them costs as much as the first plan."""

MOST_TASKS_FOR_SUBSETS = 6
"""Every subset of a gang is tried as victims only up to this size: 62 subsets, twice as many for each task more."""


@dataclass(frozen=True, slots=True)
class RoomRequest:
    """For which gang room is made, and by which rule; `purpose` is preempt or reclaim, `action` the name that evictions carry."""

    gang: GangState
    queue: Queue
    purpose: str
    action: str


class VictimSearch:
    """Plans evictions for one gang and carries them out. One search, one object: it is not used again."""

    def __init__(
        self, session: Session, room_request: RoomRequest, cost_table: NodeCostTable, bounds: EvictionBounds,
        worth: EvictionWorth | None = None,
    ) -> None:  # fmt: skip
        """Prepare a search for the gang of the request; what the others bound is shared by all gangs of an action."""
        self._worth = worth
        self._session, self._room_request, self._cost_table, self._bounds = session, room_request, cost_table, bounds
        self._gang, self._queue = room_request.gang, room_request.queue
        self._units = VictimUnits(session, room_request.gang, room_request.purpose)
        self._evicted: dict[VictimUnit, Statement] = {}
        """The units that are evicted on trial, in the order in which they were."""
        self._touched: set[int] = set()
        """Nodes whose costs this search may have changed."""
        self._was_put_back = False

    def make_room(self, domain: Mask, waiting: list[TaskState]) -> bool:
        """Place the tasks in the domain and evict what has to go; tell whether both were decided. Otherwise nothing has changed."""
        if not domain.any():
            return False
        places = Places(self._session, self._queue, domain, waiting)
        key = self._key(places)
        if key is not None and self._cost_table.is_hopeless(key, self._session.version):
            return False
        # Free room is tried first: evictions by other gangs, or by a domain that was tried before, may have left enough.
        is_done = self._may_take_all(places) and (places.fit() or self._plan(domain, places) or self._plan_from_each_unit(places))
        if is_done:
            self._put_back_needless(places)
            is_done = self._is_worth(places) and self._carry_out(places)
        elif key is not None:
            self._cost_table.mark_hopeless(key, self._session.version)
        self._release(list(self._evicted))
        self._cost_table.end_trial(self._touched, restores=self._was_put_back)
        return is_done

    def _key(self, places: Places) -> Hashable:
        """Return what gangs have in common that find the same room and victims; None when other pods have a say in that."""
        return None if places.key is None else (self._queue.name, self._gang.gang.priority, places.key)

    def _may_take_all(self, places: Places) -> bool:
        """Tell whether the queue may take from others for all tasks together; inside a queue it always may."""
        if not all(self._session.prefilter(run[0]).ok for run in places.runs):
            return False
        if self._room_request.purpose == "preempt":
            return True
        with self._session.question() as trial:
            return all(self._may_take_for(run, trial) for run in places.runs)

    def _may_take_for(self, run: list[TaskState], trial: Statement) -> bool:
        """Tell whether the queue may take room for equal tasks, by asking for the last of them: if it may, it may for all.

        A queue counts its tasks and not where they are, so node 0 stands for any node.
        """
        trial.pipeline(run[:-1], [0] * (len(run) - 1))
        verdict = self._session.queue_preemptive(self._queue, run[-1:])
        trial.pipeline(run[-1:], [0])
        return verdict.ok or run[-1].task.is_best_effort  # for which no share of a queue is counted

    # --- choosing victims ------------------------------------------------------------------------------------------

    def _plan(self, domain: Mask, places: Places) -> bool:
        """Choose victims node by node; tell whether every task has a place then.

        The victims stay evicted on trial. The places are given back: putting units back may need to arrange tasks differently.
        """
        with self._session.trial() as trial:
            is_planned = all(self._plan_run(domain, tasks, trial) for tasks in places.runs)
        if is_planned and self._make_quota(places):
            return True
        self._release(list(self._evicted))
        return False

    def _plan_run(self, domain: Mask, tasks: list[TaskState], trial: Statement) -> bool:
        """Find the cheapest place for each of some identical tasks; tell whether all have one."""
        dry_run = DryRun(self._session, tasks[0])
        finder = NodeVictimFinder(self._session, self._units, dry_run, tasks[0])
        costs = self._costs(tasks[0], domain & dry_run.candidates)
        for task in tasks:
            node = self._next_place(costs, finder, dry_run)
            if node is None:
                return False
            trial.pipeline([task], [node])
            self._touched.add(node)
            # The node may take the next task too. It may even be cheaper: what a whole gang left beyond this task's need is free.
            costs.push(UNKNOWN, node)
        return True

    def _costs(self, task: TaskState, nodes: Mask) -> NodeCosts:
        """Return the cost list of the task's class, kept from gang to gang; a task that other pods matter to has one of its own."""

        def make() -> NodeCosts:
            request = self._session.request_of(task.task.shape)
            return NodeCosts(nodes, self._bounds.least_costs(self._gang, request, self._room_request.purpose))

        if not is_independent(self._session, task):
            return make()
        # Whoever shares a list must see the same victims in the same order: who may go, who gives first, and which nodes there are.
        key = (
            self._session.class_of(task.task.shape), self._queue.name, self._units.givers, self._gang.gang.priority,
            self._bounds.victims_of(self._gang, self._room_request.purpose), nodes.tobytes(),
        )  # fmt: skip
        costs = self._cost_table.costs(key, make)
        if self._evicted:  # for an earlier run of tasks: costs of this list are no longer those of an untouched session
            costs.remember()
        return costs

    def _next_place(self, costs: NodeCosts, finder: NodeVictimFinder, dry_run: DryRun) -> int | None:
        """Evict on the cheapest node and return it; None when no node is left.

        A listed cost is a lower bound. A node whose real cost is higher is listed again with that: so the first whose cost is
        confirmed is the cheapest of all, and of thousands of nodes only the few in front are ever asked.
        """
        while costs:
            cost, node = costs.pop()
            offer = finder.offer(node)
            if offer is None:
                continue
            if offer.cost() > cost:
                costs.push(offer.cost(), node)
                continue
            costs.remember((cost, node))
            for unit in offer.units:
                self._evict(unit)
            if dry_run.passes(node):
                # A whole gang that leaves frees room on its other nodes too: what they are listed with may be too high now.
                for place in {victim.node for unit in offer.units for victim in unit.gang.tasks} - {node, -1}:
                    costs.push(UNKNOWN, place)
                return node
            self._release(list(offer.units))
        return None

    def _plan_from_each_unit(self, places: Places) -> bool:
        """Begin a plan with each unit in turn, if there are only a few, and add the least important ones; tell whether one works.

        Going from node to node can fail where another choice would not: tasks differ, or a queue gives no more after a bad start.
        A whole gang is met on each of its nodes, and tried once.
        """
        units = list(islice(self._all_units(places.tasks), MOST_STARTING_UNITS + 1))
        return len(units) <= MOST_STARTING_UNITS and any(self._plan_starting_with(unit, places) for unit in dict.fromkeys(units))

    def _all_units(self, tasks: list[TaskState]) -> Iterator[VictimUnit]:
        nodes = range(len(self._session.snapshot.nodes))
        return (unit for node in nodes for line in self._units.orders_on(node, tasks[0]) for unit in line)

    def _plan_starting_with(self, first: VictimUnit, places: Places) -> bool:
        self._evict(first)
        for unit in self._cheapest_first(places.tasks):
            if places.fit():
                return True
            self._evict(unit)
        if places.fit():
            return True
        self._release(list(self._evicted))
        return False

    def _cheapest_first(self, tasks: list[TaskState]) -> Iterator[VictimUnit]:
        """Yield units, the least important of all nodes first; each is chosen with the ones before it evicted.

        A unit that the caller leaves in place is not yielded again, so that the walk comes to an end.
        """
        # A heap with lower bounds, as in `_next_place`: nodes begin below every importance and are asked when they come up.
        heap: list[tuple[Importance, int]] = [
            ((False, -(1 << 62), 0, 0, 0), node) for node in range(len(self._session.snapshot.nodes))
        ]
        declined: set[frozenset[int]] = set()
        while heap:
            importance, node = heappop(heap)
            units = (unit for unit in self._units.on_node(node, tasks[0]) if unit.members() not in declined)
            unit = min(units, key=VictimUnit.importance, default=None)
            if unit is None:
                continue
            if unit.importance() > importance:
                heappush(heap, (unit.importance(), node))
                continue
            yield unit
            if unit not in self._evicted:
                declined.add(unit.members())
            heappush(heap, (unit.importance(), node))

    def _make_quota(self, places: Places) -> bool:
        """Evict from the queue, or from queues beside it, until its quota covers the tasks; tell whether it does."""
        units: Iterator[VictimUnit] = iter(())
        known: object = None
        while not (verdict := self._quota_verdict(places)).ok:
            # Units that were of no use for one shortage may be for the next. As long as it is the same, the walk goes on: a new
            # one asks all nodes again.
            shortage = (verdict.numbers.get("queue"), verdict.numbers.get("resource"))
            if shortage != known:
                known, units = shortage, self._cheapest_first(places.tasks)
            unit = next((unit for unit in units if self._relieves(unit, verdict)), None)
            if unit is None:
                return False
            self._evict(unit)
        return True

    def _quota_verdict(self, places: Places) -> Verdict:
        """Return what refuses the first task that the quota does not cover when all are counted against the queue."""
        with self._session.question() as trial:
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

    def _relieves(self, unit: VictimUnit, verdict: Verdict) -> bool:
        """Tell whether evicting a unit helps the queue that refused: it is in that queue, and holds what is short."""
        short_queue, resource = verdict.numbers.get("queue"), verdict.numbers.get("resource")
        if short_queue is not None and str(short_queue) not in self._lineage(unit.gang.gang.queue):
            return False
        return resource is None or any(task.task.shape.request.get(str(resource), 0) for task in unit.tasks)

    def _lineage(self, name: str) -> list[str]:
        """Return a queue and those above it, lowest first. Objects may name parents in a circle, so the walk is bounded."""
        found = [name]
        while (queue := self._session.queues.get(found[-1])) is not None and found[-1] != ROOT and len(found) < 100:
            found.append(queue.parent or ROOT)
        return found

    # --- taking and giving back ------------------------------------------------------------------------------------

    def _evict(self, unit: VictimUnit) -> None:
        statement = self._session.trial()
        # Not only its own nodes: a gang that loses a task can spare one less on every node where it runs.
        self._touched.update(task.node for task in unit.gang.tasks if task.node >= 0)
        for task in unit.tasks:
            statement.evict(task, action=self._room_request.action, preemptor=self._gang.key, reason=self._reason(unit))
        self._evicted[unit] = statement

    def _release(self, units: list[VictimUnit]) -> None:
        for unit in reversed(units):
            self._evicted.pop(unit).discard()
            self._was_put_back = True

    def _put_back_needless(self, places: Places) -> None:
        """Put back every unit that is not needed, the most important first.

        One pass is enough: with fewer units evicted the tasks have less room, so what was needed once stays needed.
        """
        self._join_wholes()
        for unit in sorted(self._evicted, key=VictimUnit.importance, reverse=True):
            self._release([unit])
            if not places.fit():
                self._evict(unit)
                if unit.is_whole:
                    self._keep_a_part(unit, places)

    def _join_wholes(self) -> None:
        """Make one unit of a gang that goes as a whole and of the tasks it spared before, so that they are put back together."""
        for gang in [unit.gang for unit in self._evicted if unit.is_whole]:
            units = [unit for unit in self._evicted if unit.gang is gang]
            if len(units) > 1:
                self._release(units)
                self._evict(self._units.unit(tuple(task for unit in units for task in unit.tasks), is_whole=True))

    def _keep_a_part(self, whole: VictimUnit, places: Places) -> None:
        """Evict less than a whole gang if that is enough and leaves it whole; otherwise the whole gang stays evicted.

        What a gang can spare depends on which of its tasks go: two small ones of different roles, or a single large one.
        """
        self._release([whole])
        parts = [self._units.unit((task,), is_whole=False) for task in whole.tasks]
        is_spared = (
            self._evict_only_needed(parts, places) or self._try_small_subsets(parts, places) if spare_of(whole.tasks) else False
        )
        if not is_spared:
            self._evict(whole)

    def _evict_only_needed(self, parts: list[VictimUnit], places: Places) -> bool:
        """Evict all tasks of a gang and put back one after the other; tell whether those left let the gang stay whole."""
        for part in parts:
            self._evict(part)
        for part in parts:
            self._release([part])
            if not places.fit():
                self._evict(part)
        if is_whole(parts[0].gang):
            return True
        self._release([part for part in parts if part in self._evicted])
        return False

    def _try_small_subsets(self, parts: list[VictimUnit], places: Places) -> bool:
        """Try every subset of a small gang as victims, small subsets first; tell whether one works."""
        if len(parts) > MOST_TASKS_FOR_SUBSETS:
            return False
        for chosen in (choice for size in range(1, len(parts)) for choice in combinations(parts, size)):
            for part in chosen:
                self._evict(part)
            if is_whole(parts[0].gang) and places.fit():
                return True
            self._release(list(chosen))
        return False

    def _is_worth(self, places: Places) -> bool:
        """Tell whether what the victims lose is not more than what the gang gains."""
        if self._worth is None or not self._evicted:
            return True
        freed = np.zeros_like(self._session.ledger.future)
        for task in (task for unit in self._evicted for task in unit.tasks):
            freed[:, task.node] += self._session.request_of(task.task.shape).amounts
        return self._worth.permits(self._gang, places.tasks, sum(unit.lost for unit in self._evicted), freed)

    def _carry_out(self, places: Places) -> bool:
        """Commit the evictions and pipeline the tasks, if that makes the gang whole; without victims it may start at once."""
        if not self._evicted and self._start(places):
            return True
        # `fit` counts, or packs by sizes; only taking the places asks every filter. They can still refuse, and then nothing is
        # done.
        statement = self._session.trial()
        if not places.take(statement) or not self._gang.is_pipelined or not self._session.gang_pipelined(self._gang):
            statement.discard()
            return False
        for eviction in self._evicted.values():
            eviction.commit()
        statement.commit()
        self._evicted = {}
        return True

    def _start(self, places: Places) -> bool:
        with self._session.trial() as statement:
            if not places.take(statement, starts_now=True) or not self._session.gang_ready(self._gang).ok:
                return False
            statement.commit()
            return True

    def _reason(self, unit: VictimUnit) -> str:
        """Say by which rule, what becomes of the victim's gang, and why this victim: `_put_back_needless` put back all others."""
        what = "its whole gang goes" if unit.is_whole else "its gang can spare it"
        why = f"{what}, and without its room {self._gang.key} cannot start"
        if self._room_request.purpose == "preempt":
            mine, its = self._gang.gang.priority, unit.gang.gang.priority
            return f"preempted by gang {self._gang.key} (priority {mine} over {its}): {why}"
        queues = f"queue {unit.gang.gang.queue} has more than it deserves, queue {self._queue.name} less"
        return f"reclaimed for gang {self._gang.key} ({queues}): {why}"
