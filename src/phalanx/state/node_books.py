"""What running tasks hold on each node: the arrays of a snapshot, kept up to date between snapshots."""

from collections.abc import Mapping

import numpy as np

from phalanx.model.node import Node
from phalanx.model.resources import Resources, ResourceSpace
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.placement import Amounts, Counts
from phalanx.state.node_table import NodeTable
from phalanx.state.snapshot import EMPTY


class NodeBooks:
    """What running tasks hold on each node, as arrays in the order of the node table.

    A task changes its own column. A change of nodes moves columns: before the next snapshot those of nodes that were there are
    carried over, and only those of new nodes are counted. A new resource name adds a row, and everything is counted again.
    """

    def __init__(self) -> None:
        """Start without nodes."""
        self.space = ResourceSpace()
        self.table = NodeTable((), self.space)
        self._has_rows = self._has_columns = False
        self._names: set[str] = set()
        self._clear()

    def _clear(self) -> None:
        shape = (len(self.space), len(self.table))
        self.used, self.releasing = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        self.scored, self.pods = np.zeros((2, shape[1]), dtype=np.int64), np.zeros(shape[1], dtype=np.int64)

    def forget_layout(self) -> None:
        """Nodes have changed: lay the columns out anew before the next snapshot."""
        self._has_columns = False

    def enter(self, task: Task, count: int) -> None:
        """Add a task to the books of its node, or remove it with -1."""
        number = self.table.number_by_name.get(task.node) if self._has_rows else None
        if number is not None:
            self._count(task, count, number)

    def _count(self, task: Task, count: int, number: int) -> None:
        rows = self.space.row_by_name
        for name, amount in task.shape.request.items():
            self.used[rows[name], number] += amount * count
            if task.status is Status.RELEASING:
                self.releasing[rows[name], number] += amount * count
        self.scored[0, number] += task.shape.booked_request[0] * count
        self.scored[1, number] += task.shape.booked_request[1] * count
        self.pods[number] += count

    def add_rows_for(self, *resources: Resources) -> None:
        """Make sure that every name in these has a row from the next snapshot on; rows are never given up."""
        for names in resources:
            if not self._names.issuperset(names):
                self._names.update(names)
                self._has_rows = False

    def lay_out(self, nodes: Mapping[str, Node], on_node: Mapping[str, Mapping[TaskKey, Task]]) -> None:
        """Bring the arrays in line with the nodes and the resource names in use, if they are not."""
        if self._has_rows and self._has_columns:
            return
        before, old = self.table, (self.used, self.releasing, self.scored, self.pods) if self._has_rows else None
        self.space = ResourceSpace.of(self._names)
        self.table = NodeTable(tuple(nodes.values()), self.space)
        self._clear()
        self._has_rows = self._has_columns = True
        known = set[str]() if old is None else self._carry_over(before, old)
        for name in on_node if not known else nodes.keys() - known:
            for task in on_node.get(name, EMPTY).values():
                self.enter(task, 1)

    def _carry_over(self, before: NodeTable, old: tuple[Amounts, Amounts, Amounts, Counts]) -> set[str]:
        """Take the columns of nodes that were there before; return their names."""
        names = [name for name in self.table.names if name in before.number_by_name]
        source = [before.number_by_name[name] for name in names]
        target = [self.table.number_by_name[name] for name in names]
        for book, former in zip((self.used, self.releasing, self.scored, self.pods), old, strict=True):
            book[..., target] = former[..., source]
        return set(names)
