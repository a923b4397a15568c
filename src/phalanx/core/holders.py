"""Who runs where, in columns: kept up to date with every event, so that sums over all running tasks need no loop over them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phalanx.model.shape import Shape
from phalanx.model.status import EVICTABLE
from phalanx.model.task import Task, TaskKey
from phalanx.placement import Counts

FIRST_ROWS = 64


@dataclass(frozen=True, slots=True)
class HolderTable:
    """Every task of a gang that could be evicted by its status: codes of its node, its gang and its shape, and when it started."""

    nodes: Counts
    gangs: Counts
    shapes: Counts
    started: NDArray[np.float64]
    """0 when nobody says."""
    code_by_node: Mapping[str, int]
    code_by_gang: Mapping[str, int]
    shape_by_code: Sequence[Shape]


def numbers_of(codes: Mapping[str, int], numbers: Mapping[str, int]) -> Counts:
    """Return an array that turns codes into other numbers, -1 where a name has none."""
    found = np.full(max(codes.values(), default=-1) + 1, -1, dtype=np.int64)
    for name, code in codes.items():
        found[code] = numbers.get(name, -1)
    return found


class Holders:
    """One row for each task, reused when it has gone."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._row_by_task: dict[TaskKey, int] = {}
        self._free = list(range(FIRST_ROWS))
        self._columns = np.full((3, FIRST_ROWS), -1, dtype=np.int64)
        self._started = np.zeros(FIRST_ROWS)
        self._nodes, self._gangs = _Codes(), _Codes()
        self._code_by_shape: dict[int, int] = {}
        self._shapes: list[Shape] = []

    def put(self, task: Task) -> None:
        """Enter a task, if it counts."""
        if task.gang is None or task.status not in EVICTABLE or not task.is_preemptable:
            return
        row = self._next_row()
        self._row_by_task[task.key] = row
        self._columns[:, row] = self._nodes.take(task.node), self._gangs.take(task.gang), self._shape(task.shape)
        self._started[row] = task.started

    def drop(self, task: Task) -> None:
        """Take a task out, if it is in."""
        row = self._row_by_task.pop(task.key, None)
        if row is None or task.gang is None:
            return
        self._columns[:, row] = -1
        self._nodes.leave(task.node)
        self._gangs.leave(task.gang)
        self._free.append(row)

    def table(self) -> HolderTable:
        """Return the table as it is now."""
        rows = np.flatnonzero(self._columns[0] >= 0)
        nodes, gangs, shapes = self._columns[:, rows]
        return HolderTable(
            nodes, gangs, shapes, self._started[rows], dict(self._nodes.codes), dict(self._gangs.codes), self._shapes
        )

    def _next_row(self) -> int:
        if not self._free:
            rows = len(self._started)
            self._free = list(range(rows, 2 * rows))
            self._columns = np.hstack([self._columns, np.full((3, rows), -1, dtype=np.int64)])
            self._started = np.concatenate([self._started, np.zeros(rows)])
        return self._free.pop()

    def _shape(self, shape: Shape) -> int:
        code = self._code_by_shape.setdefault(id(shape), len(self._shapes))
        if code == len(self._shapes):
            self._shapes.append(shape)
        return code


class _Codes:
    """Small numbers for names that somebody uses; a number that nobody uses any more is given out again."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._free: list[int] = []

    def take(self, name: str) -> int:
        if name not in self.codes:
            self.codes[name] = self._free.pop() if self._free else len(self.codes)
            self._users[name] = 0
        self._users[name] += 1
        return self.codes[name]

    def leave(self, name: str) -> None:
        self._users[name] -= 1
        if not self._users[name]:
            del self._users[name]
            self._free.append(self.codes.pop(name))
