"""Which pods are where, for filters and scores that look at other pods.

The index is an append-only list of entries (node, class of pod, +1 or -1); a class is a shape, split by whether the pod was
terminating when the session opened. A count over all pods that match something is kept as a vector per node and brought up to
date by reading only the entries that came since. It is built when first asked for: most sessions never do.
"""

from collections.abc import Callable, Hashable

import numpy as np

from phalanx.model.shape import Shape
from phalanx.model.task_status import Status
from phalanx.placement import Counts, Mask
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind


class _Counter:
    __slots__ = ("matches", "seen", "vector", "verdicts")

    def __init__(self, nodes: int, matches: Callable[[Shape, bool], bool]) -> None:
        self.vector = np.zeros(nodes, dtype=np.int64)
        self.matches, self.seen = matches, 0
        self.verdicts: dict[int, bool] = {}


class PodIndex:
    """Pods on nodes, as the filters and scores of Kubernetes see them during the session."""

    def __init__(self, session: Session) -> None:
        """Enter every pod that is on a node now."""
        self._nodes = len(session.snapshot.nodes)
        self._classes: list[tuple[Shape, bool]] = []
        self._class_numbers: dict[tuple[Shape, bool], int] = {}
        self._entries: list[tuple[int, int, int]] = []
        self._counters: dict[Hashable, _Counter] = {}
        self.affine: dict[Shape, dict[int, int]] = {}
        """Shapes with affinity terms, with their number of pods per node."""
        self.affine_in_order: list[tuple[Shape, dict[int, int]]] = []
        numbers = session.snapshot.nodes.number_by_name
        for name, tasks in session.snapshot.on_node.items():
            node = numbers.get(name)
            if node is not None:
                for task in tasks.values():
                    self._enter(task.shape, task.status is Status.RELEASING, node, 1)
        self.had_affinity: Mask = self._nodes_with(lambda shape: shape.has_affinity)
        """Nodes that had a pod with affinity terms when the session opened."""
        self.had_anti_affinity: Mask = self._nodes_with(lambda shape: bool(shape.anti_affinity.required))
        """Nodes that had a pod with required anti-affinity when the session opened."""

    def _nodes_with(self, test: Callable[[Shape], bool]) -> Mask:
        mask = np.zeros(self._nodes, dtype=np.bool_)
        for shape, counts in self.affine.items():
            if test(shape):
                mask[list(counts)] = True
        return mask

    def _enter(self, shape: Shape, is_terminating: bool, node: int, sign: int) -> None:
        key = (shape, is_terminating)
        if key not in self._class_numbers:
            self._class_numbers[key] = len(self._classes)
            self._classes.append((shape, is_terminating))
        self._entries.append((node, self._class_numbers[key], sign))
        if shape.has_affinity:
            if shape not in self.affine:
                self.affine[shape] = {}
                self.affine_in_order.append((shape, self.affine[shape]))
            counts = self.affine[shape]
            counts[node] = counts.get(node, 0) + sign

    def changed(self, operation: Operation, undone: bool) -> None:
        """Follow an operation: allocated and pipelined pods are there at once, evicted ones gone at once."""
        sign = -1 if (operation.kind is OperationKind.EVICT) != undone else 1
        for node in operation.nodes:
            # An undone eviction cancels the entry of the eviction itself, so both are of the class that was not terminating.
            self._enter(operation.shape, False, node, sign)

    def count(self, key: Hashable, matches: Callable[[Shape, bool], bool]) -> Counts:
        """Return per node the pods that match; `matches` is asked once per class and told whether it was terminating."""
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = _Counter(self._nodes, matches)
        verdicts = counter.verdicts
        hits: list[tuple[int, int]] = []
        for node, number, sign in self._entries[counter.seen :]:
            if number not in verdicts:
                verdicts[number] = counter.matches(*self._classes[number])
            if verdicts[number]:
                hits.append((node, sign))
        counter.seen = len(self._entries)
        if hits:
            where, signs = np.array(hits, dtype=np.int64).T
            np.add.at(counter.vector, where, signs)
        return counter.vector
