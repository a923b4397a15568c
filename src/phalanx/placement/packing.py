"""Packing tasks of several classes onto nodes together, exactly.

Filling nodes greedily can fail although there is a way: large tasks take the nodes that only small ones could have shared.
Trying all assignments of tasks to nodes is hopeless beyond a handful. But tasks of one class are alike, so it only matters how
many of each are placed, and dynamic programming over nodes does it:

    table[i, j, ...] = the most tasks of the last class that have a place on the nodes so far,
                       together with i tasks of the first class, j of the second, ...

The most is enough to know, because whoever can place some tasks can place fewer. A node is added by trying every pattern of what
it can take. If there is a way it is found; the goal is reached when the entry for all tasks of the other classes is at least the
number of tasks of the last. Then the tables are read backwards to see what each node took.

The table has a cell for every combination of counts of all classes but the last, and each pattern of each node is one array
operation over it. So work grows with the product of these counts; it is counted, and bounded by a budget. The caller makes the
class with most tasks the last one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from phalanx.placement import Amounts, Counts

UNREACHABLE = -1
OVERHEAD = 500
"""What one array operation costs beside its cells, in cells: small tables must not look free."""

Pattern = tuple[int, ...]
Table = NDArray[np.int32]


@dataclass(slots=True)
class Budget:
    """How many cells may still be worked on; what is left after one packing is there for the next."""

    cells: int

    def spend(self, cells: int) -> bool:
        """Take from what is left; tell whether it was enough."""
        self.cells -= cells + OVERHEAD
        return self.cells >= 0


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be packed: how many tasks of each class, what one of them asks for, and how many a node would take at most."""

    counts: list[int]
    requests: list[Amounts]
    caps: list[Counts]


def pack(room: Amounts, load: Load, budget: Budget) -> list[Counts] | None:
    """Return for each class how many tasks go to each node; None if there is no way, or none was found within the budget."""
    # Each class alone must fit: a sum per class, before any table is made.
    if any(np.minimum(cap, count).sum() < count for cap, count in zip(load.caps, load.counts, strict=True)):
        return None
    return _Packing(room, load, budget).run()


@dataclass(slots=True)
class _Packing:
    room: Amounts
    load: Load
    budget: Budget
    tables: list[Table] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)

    def run(self) -> list[Counts] | None:
        goal = tuple(self.load.counts[:-1])
        table = np.full([count + 1 for count in goal], UNREACHABLE, dtype=np.int32)
        table[(0,) * len(goal)] = 0
        self.tables.append(table)
        for node in self._order():
            if table[goal] >= self.load.counts[-1]:
                break
            added = self._with_node(table, node)
            if added is None:
                return None
            table = added
            self.tables.append(table)
            self.nodes.append(node)
        return self._read_back(goal) if table[goal] >= self.load.counts[-1] else None

    def _order(self) -> list[int]:
        """Return the nodes that take any task, those that take most first: the goal is reached with few nodes, and few tables."""
        most = sum(np.minimum(cap, count) for cap, count in zip(self.load.caps, self.load.counts, strict=True))
        assert isinstance(most, np.ndarray)
        order = np.argsort(-most, kind="stable")
        return [int(node) for node in order if most[node] > 0]

    def _with_node(self, table: Table, node: int) -> Table | None:
        """Return the table with one more node; None when the budget is spent.

        All cells are moved at once: a pattern shifts the whole table by what it takes, and the larger number wins in each cell.
        """
        best = table.copy()
        for pattern, last in self._patterns(node):
            if not self.budget.spend(table.size):
                return None
            before = table[tuple(slice(None, size - part) for size, part in zip(table.shape, pattern, strict=True))]
            after = best[tuple(slice(part, None) for part in pattern)]
            np.maximum(after, np.where(before == UNREACHABLE, UNREACHABLE, before + last), out=after)
        return best

    def _patterns(self, node: int) -> Iterator[tuple[Pattern, int]]:
        """Yield what a node can take: counts of all classes but the last, and the most of the last class beside them."""
        most = [min(int(cap[node]), count) for cap, count in zip(self.load.caps, self.load.counts, strict=True)]
        for pattern in product(*(range(part + 1) for part in most[:-1])):
            taken = np.zeros_like(self.room[:, node])
            for part, request in zip(pattern, self.load.requests[:-1], strict=True):
                taken += part * request
            left = self.room[:, node] - taken
            if ((left >= 0) | (taken == 0)).all():
                yield pattern, min(most[-1], _copies(left, self.load.requests[-1]))
            elif not self.budget.spend(0):
                return

    def _read_back(self, goal: Pattern) -> list[Counts]:
        """Return what every node took, by going back from the goal through the tables."""
        found = [np.zeros(self.room.shape[1], dtype=np.int64) for _ in self.load.counts]
        missing = [*goal, self.load.counts[-1]]
        for before, node in zip(reversed(self.tables[:-1]), reversed(self.nodes), strict=True):
            for part, column in zip(self._taken_by(before, node, missing), found, strict=True):
                column[node] = part
            missing = [want - int(column[node]) for want, column in zip(missing, found, strict=True)]
        return found

    def _taken_by(self, before: Table, node: int, missing: list[int]) -> Pattern:
        """Return a pattern of the node with which the table before it reaches what is missing."""
        for pattern, last in self._patterns(node):
            rest = tuple(want - part for want, part in zip(missing, pattern, strict=False))
            if min(rest, default=0) >= 0 and before[rest] != UNREACHABLE and before[rest] + last >= missing[-1]:
                return *pattern, min(last, missing[-1])
        raise AssertionError("a table was reached from the one before it")


def _copies(room: Amounts, request: Amounts) -> int:
    asked = request > 0
    return max(int((room[asked] // request[asked]).min()), 0) if asked.any() else int(np.iinfo(np.int32).max)
