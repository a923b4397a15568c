"""What one more task costs on each node: who would have to go, and how bad that is."""

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
"""Below every real cost: the node has to be looked at before it is chosen."""


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """What it takes to place one more task on a node."""

    units: tuple[VictimUnit, ...]

    def breaks_a_gang(self) -> bool:
        """Tell whether a whole gang has to go."""
        return any(unit.is_whole for unit in self.units)

    def cost(self) -> Cost:
        """No gang broken first; then the least important victims, fewest tasks and gangs, who gives first, least work lost."""
        broken, tasks = sum(unit.is_whole for unit in self.units), sum(len(unit.tasks) for unit in self.units)
        highest = max((unit.gang.gang.priority for unit in self.units), default=NOTHING[1])
        last = max((unit.turn for unit in self.units), default=0)
        return int(broken > 0), highest, tasks, broken, last, sum(unit.lost for unit in self.units)


class NodeVictimFinder:
    """Finds the cheapest way to make one more task of a dry_run fit on a node."""

    def __init__(self, session: Session, units: VictimUnits, dry_run: DryRun, task: TaskState) -> None:
        """Serve a task, and all that are like it."""
        self._session, self._units, self._dry_run, self._task = session, units, dry_run, task

    def offer(self, node: int) -> NodeVictims | None:
        """Return what has to go from the node; None when that is not enough or not allowed."""
        room = self._session.ledger.future[:, node]
        if self._covers(room):
            return NodeVictims(())
        best: NodeVictims | None = None
        for line in self._units.lines(node, self._task):
            chosen = self._choose_from(line, node)
            if chosen and (best is None or NodeVictims(chosen).cost() < best.cost()):
                best = NodeVictims(chosen)
            if best is not None and not best.breaks_a_gang():
                break
        return best

    def _choose_from(self, line: list[VictimUnit], node: int) -> tuple[VictimUnit, ...] | None:
        chosen = self._choose(line, node, asks_each=False)
        if chosen is None or self._units.may_go_together(self._task, chosen):
            return chosen
        return self._choose(line, node, asks_each=True)

    def _choose(self, line: list[VictimUnit], node: int, *, asks_each: bool) -> tuple[VictimUnit, ...] | None:
        """Take units in their order until the task fits; a whole gang takes the place of what it could spare."""
        chosen: list[VictimUnit] = []
        for unit in line:
            more = [other for other in chosen if other.gang is not unit.gang or not unit.is_whole]
            more.append(unit)
            if asks_each and not self._units.may_go_together(self._task, more):
                continue
            chosen = more
            if self._covers(self._room(chosen, node)):
                return self._needed(chosen, node)
        return None

    def _needed(self, units: list[VictimUnit], node: int) -> tuple[VictimUnit, ...]:
        """Drop units that later ones made needless, the most important first."""
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
    """The nodes by what a task of one class costs there.

    A listed cost is never above the real one: it is looked up again before it is believed, and a node that may have become
    cheaper is listed as unknown.
    """

    def __init__(self, nodes: Mask, least: Mapping[int, Cost]) -> None:
        """Know at first what each node costs at least; what has no such cost has no room."""
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

    def keep(self, *also: tuple[Cost, int]) -> None:
        """Remember the list as it is, and what was just taken off it, unless it was remembered before."""
        if self._kept is None:
            self._kept = [*self._heap, *also]

    def settle(self, touched: set[int], *, goes_back: bool) -> None:
        """End a trial: go back to what was remembered if victims were put back, and list touched nodes as unknown."""
        if goes_back and self._kept is not None:
            self._heap = self._kept
            heapify(self._heap)
        self._kept = None
        for node in touched:
            self.push(UNKNOWN, node)


class NodeCostTable:
    """The cost lists of all classes of tasks and of preemptors, kept from gang to gang.

    So gangs that are alike do not ask all nodes again, each one only the next cheapest; and where one found no room, its like
    does not try before something changed.
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

    def settle(self, touched: set[int], *, goes_back: bool) -> None:
        """End a trial in every list."""
        for costs in self._lists.values():
            costs.settle(touched, goes_back=goes_back)

    def is_hopeless(self, key: Hashable, version: int) -> bool:
        """Tell whether the same was tried in the same state of the books."""
        return self._hopeless.get(key) == version

    def give_up(self, key: Hashable, version: int) -> None:
        """Remember that there is no room in this state of the books."""
        self._hopeless[key] = version
