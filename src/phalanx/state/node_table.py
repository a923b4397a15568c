"""All nodes as columns: names, labels, taints and what they offer.

Built when a node changes, shared by every snapshot until then.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from phalanx.model.node import Node
from phalanx.model.resources import PODS, Resources, ResourceSpace
from phalanx.model.shape import Taint
from phalanx.placement import Amounts, Mask, Vector
from phalanx.placement.ledger import Request


class LabelColumn:
    """The values of one label key: a code per node, -1 where the key is absent."""

    __slots__ = ("codes", "is_unique", "present", "values")

    def __init__(self, codes: NDArray[np.int64], values: list[str]) -> None:
        """Hold the codes and the value each code stands for."""
        self.codes, self.values = codes, values
        self.present: Mask = codes >= 0
        """The nodes that carry the key."""
        self.present.flags.writeable = False
        self.is_unique = len(values) == int(self.present.sum())
        """No two nodes share a value."""

    def where(self, test: Callable[[str | None], bool]) -> Mask:
        """Mark the nodes whose value passes the test, which is asked once per distinct value and once for None."""
        # Nodes without the key have the code -1, which reads the last answer: that for None.
        answers = np.array([*map(test, self.values), test(None)], dtype=np.bool_)
        return answers[self.codes]


class NodeTable:
    """The nodes in the order of their names, and their unchanging columns."""

    def __init__(self, nodes: Sequence[Node], space: ResourceSpace) -> None:
        """Lay the nodes out."""
        self.nodes = tuple(sorted(nodes, key=lambda node: node.name))
        self.names = [node.name for node in self.nodes]
        self.number_by_name = {name: number for number, name in enumerate(self.names)}
        self.allocatable = self._amounts(space, [node.allocatable for node in self.nodes])
        self.reported = self._amounts(space, [node.reported for node in self.nodes])
        self.max_pods = self.reported[space.row_by_name[PODS]]
        self.unschedulable: Mask = np.array([node.is_unschedulable for node in self.nodes], dtype=np.bool_)
        self.unready: Mask = np.array([not node.is_ready for node in self.nodes], dtype=np.bool_)
        self._columns: dict[str, LabelColumn] = {}
        self._taints: tuple[list[tuple[Taint, ...]], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def _amounts(self, space: ResourceSpace, resources: Sequence[Resources]) -> Amounts:
        amounts = np.zeros((len(space), len(resources)), dtype=np.int64)
        for number, offered in enumerate(resources):
            for name, amount in offered.items():
                amounts[space.row_by_name[name], number] = amount
        return amounts

    def label(self, key: str) -> LabelColumn:
        """Return the column of a label key."""
        if key not in self._columns:
            self._columns[key] = self._read_label(key)
        return self._columns[key]

    def _read_label(self, key: str) -> LabelColumn:
        codes = np.full(len(self.nodes), -1, dtype=np.int64)
        code_by_value: dict[str, int] = {}
        for number, node in enumerate(self.nodes):
            value = node.labels.get(key)
            if value is not None:
                codes[number] = code_by_value.setdefault(value, len(code_by_value))
        return LabelColumn(codes, list(code_by_value))

    def where_taints(self, test: Callable[[tuple[Taint, ...]], bool]) -> Mask:
        """Mark the nodes whose set of taints passes the test, which is asked once per distinct set."""
        sets, codes = self.taint_sets()
        return np.array([test(taints) for taints in sets] or [False], dtype=np.bool_)[codes]

    def count_taints(self, count: Callable[[tuple[Taint, ...]], int]) -> NDArray[np.int64]:
        """Return a number per node, asked once per distinct set of taints."""
        sets, codes = self.taint_sets()
        return np.array([count(taints) for taints in sets] or [0], dtype=np.int64)[codes]

    def taint_sets(self) -> tuple[list[tuple[Taint, ...]], NDArray[np.int64]]:
        """Return the distinct sets of taints, and which one each node has."""
        if self._taints is None:
            code_by_set: dict[tuple[Taint, ...], int] = {}
            codes = np.array([code_by_set.setdefault(node.taints, len(code_by_set)) for node in self.nodes], dtype=np.int64)
            self._taints = (list(code_by_set), codes)
        return self._taints


def request_of(resources: Resources, space: ResourceSpace, scored: tuple[int, int] = (0, 0)) -> Request:
    """Return a request as a row vector."""
    amounts = np.zeros(len(space), dtype=np.int64)
    for name, amount in resources.items():
        amounts[space.row_by_name[name]] = amount
    return Request(amounts, scored)


def vector_of(resources: Resources, space: ResourceSpace) -> Vector:
    """Return amounts as a row vector of floats."""
    amounts = np.zeros(len(space))
    for name, amount in resources.items():
        amounts[space.row_by_name[name]] = amount
    return amounts
