"""What one more task costs on each node: who would have to go, and how bad that is.

A cost is a tuple, compared from the left (`Cost`): a gang broken is worse than anything that is not, then the priority of the
most important victim decides, then the work that is lost, then how many go. The real cost of a node takes many questions to
plugins, so it is found only for nodes in front of the list (`NodeCosts`), and lists are kept from gang to gang (`NodeCostTable`):
a storm of reclaims by 4,000 equal gangs asks for the next cheapest nodes, not 4,000 times for all of them.

All of it rests on one invariant: a listed cost is never above the real one.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from phalanx.actions.dry_run import DryRun
from phalanx.actions.eviction_bounds import NOTHING, Cost
from phalanx.actions.victim_units import VictimUnit, VictimUnits
from phalanx.placement import Amounts, Mask
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState

UNKNOWN: Cost = (-1, 0, 0, 0, 0, 0)
"""Below every real cost, so it is right for any node: the node is asked for its cost before it is chosen."""


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """What it takes to place one more task on a node."""

    units: tuple[VictimUnit, ...]

    def breaks_a_gang(self) -> bool:
        """Tell whether a whole gang has to go."""
        return any(unit.is_whole for unit in self.units)

    def cost(self) -> Cost:
        """Return what counts against the node, from the left: a broken gang, the priority of the most important victim, the work
        that is lost, how many tasks go, how many gangs are broken, and the queue that gives last.
        """
        broken, tasks = sum(unit.is_whole for unit in self.units), sum(len(unit.tasks) for unit in self.units)
        highest = max((unit.gang.gang.priority for unit in self.units), default=NOTHING[1])
        last = max((unit.turn for unit in self.units), default=0)
        return int(broken > 0), highest, sum(unit.lost for unit in self.units), tasks, broken, last


class NodeVictimFinder:
    """Finds the cheapest victims that make one more task fit on a node."""

    def __init__(self, session: Session, units: VictimUnits, dry_run: DryRun, task: TaskState) -> None:
        """Look for room for this task, or for one of its class: their answers are the same."""
        self._session, self._units, self._dry_run, self._task = session, units, dry_run, task

    def offer(self, node: int) -> NodeVictims | None:
        """Return what has to go from the node, nothing if it has room; None when all who may go are not enough."""
        room = self._session.ledger.future[:, node]
        if self._covers(room):
            return NodeVictims(())
        best: NodeVictims | None = None
        for line in self._units.orders_on(node, self._task):
            chosen = self._choose_from(line, node)
            if chosen and (best is None or NodeVictims(chosen).cost() < best.cost()):
                best = NodeVictims(chosen)
            # The second order of victims costs as much as the first, and cannot beat an offer of spare tasks in what counts most.
            if best is not None and not best.breaks_a_gang():
                break
        return best

    def _choose_from(self, line: list[VictimUnit], node: int) -> tuple[VictimUnit, ...] | None:
        """Choose units of a line as if all could go, and ask the plugins once at the end: usually they agree.

        Only when they do not, because of a disruption budget or what a queue deserves, each unit is asked for on top of the
        others.
        """
        chosen = self._choose(line, node, asks_each=False)
        if chosen is None or self._units.may_go_together(self._task, chosen):
            return chosen
        return self._choose(line, node, asks_each=True)

    def _choose(self, line: list[VictimUnit], node: int, *, asks_each: bool) -> tuple[VictimUnit, ...] | None:
        """Take units in their order until the task fits; a whole gang takes the place of what it could spare."""
        chosen: list[VictimUnit] = []
        for unit in line:
            # A whole gang contains the tasks that it could spare: they must not be counted twice.
            more = [other for other in chosen if other.gang is not unit.gang or not unit.is_whole]
            more.append(unit)
            if asks_each and not self._units.may_go_together(self._task, more):
                continue
            chosen = more
            if self._covers(self._room(chosen, node)):
                return self._needed(chosen, node)
        return None

    def _needed(self, units: list[VictimUnit], node: int) -> tuple[VictimUnit, ...]:
        """Drop units that later ones made needless, the most important first: a large victim can cover what small ones did."""
        kept = list(units)
        room = self._room(kept, node)
        for unit in reversed(units):
            smaller = room - self._units.amounts(unit, node)
            if self._covers(smaller):
                kept.remove(unit)
                room = smaller
        return tuple(kept)

    def _room(self, units: list[VictimUnit], node: int) -> Amounts:
        room: Amounts = self._session.ledger.future[:, node].copy()
        for unit in units:
            room += self._units.amounts(unit, node)
        return room

    def _covers(self, room: Amounts) -> bool:
        return all(room[row] >= amount for row, amount in self._dry_run.request.rows)


class NodeCosts:
    """The nodes by what a task of one class costs there, as a heap of lower bounds.

    Costs rise when room is taken: then the listed one is too low, which is found out when the node comes up and is asked. Costs
    fall when room is freed: whoever frees some must list the node as unknown. A node may be listed twice; the lower entry comes
    first and the other one is corrected when it comes up.
    """

    def __init__(self, nodes: Mask, least: Mapping[int, Cost]) -> None:
        """List nodes with the least that each can cost (`EvictionBounds.least_costs`); others cannot have room at all."""
        self._heap: list[tuple[Cost, int]] = [(least[node], node) for node in np.flatnonzero(nodes).tolist() if node in least]
        heapify(self._heap)
        self._kept: list[tuple[Cost, int]] | None = None

    def __bool__(self) -> bool:
        """Tell whether a node is left."""
        return bool(self._heap)

    def pop(self) -> tuple[Cost, int]:
        """Take the cheapest node off the list."""
        return heappop(self._heap)

    def push(self, cost: Cost, node: int) -> None:
        """List a node."""
        heappush(self._heap, (cost, node))

    def remember(self, *also: tuple[Cost, int]) -> None:
        """Remember the list as it was before this search evicted anybody, with the entry that was just taken off it."""
        if self._kept is None:
            self._kept = [*self._heap, *also]

    def end_trial(self, touched: set[int], *, restores: bool) -> None:
        """End a search: go back to what was remembered if victims were put back, and list touched nodes as unknown.

        Costs that were found with victims evicted are no lower bounds once these are back: a gang that had nothing left to
        spare has something again. Forgetting the list instead would be right too, but then the next gang asks all nodes.
        """
        if restores and self._kept is not None:
            self._heap = self._kept
            heapify(self._heap)
        self._kept = None
        for node in touched:
            self.push(UNKNOWN, node)


class NodeCostTable:
    """The cost lists of all classes of tasks and of preemptors, kept for one run of an action.

    Gangs that are alike share a list: each asks only the next cheapest nodes. Where one found no room, its like does not search
    before something has changed.
    """

    def __init__(self) -> None:
        """Start with no costs."""
        self._lists: dict[Hashable, NodeCosts] = {}
        self._hopeless: dict[Hashable, int] = {}

    def costs(self, key: Hashable, make: Callable[[], NodeCosts]) -> NodeCosts:
        """Return the cost list of a class, made when it is asked for first."""
        if key not in self._lists:
            self._lists[key] = make()
        return self._lists[key]

    def end_trial(self, touched: set[int], *, restores: bool) -> None:
        """End a search in every list: nodes that it touched may cost less to other classes too."""
        for costs in self._lists.values():
            costs.end_trial(touched, restores=restores)

    def is_hopeless(self, key: Hashable, version: int) -> bool:
        """Tell whether the same search failed in the same state of the session.

        A version names a state: a search that is undone goes back to the version before it, so a failure is remembered across all
        the searches that fail after it.
        """
        return self._hopeless.get(key) == version

    def mark_hopeless(self, key: Hashable, version: int) -> None:
        """Remember that the search fails in this state of the session."""
        self._hopeless[key] = version
