"""Which pods are where, for filters and scores that look at other pods.

The index is an append-only list of entries (node, class of pod, +1 or -1); a class is a shape, split by whether the pod was
terminating when the session opened. A count over all pods that match something is kept as a vector per node and brought up to
date by reading only the entries that came since. It is built when first asked for: most sessions never do.

Most selectors name the value of a label, and a gang's name only its own pods. A new count, and the terms of other pods about a
task, are looked up by such a value: with a look at every class for every other one, 1,000 gangs would mean a million looks.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from phalanx.model.selectors import LabelSelector
from phalanx.model.shape import AffinityTerm, Shape
from phalanx.model.task_status import Status
from phalanx.placement import Counts, Mask
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind

Named = tuple[tuple[str, str], ...]
"""Labels, one of which a pod must have to be selected."""


def named_labels(selector: LabelSelector) -> Named | None:
    """Return labels of which every selected pod has one; None when the selector names no values."""
    for requirement in selector.requirements:
        if requirement.operator == "In":
            return tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))
    return None


@dataclass(frozen=True, slots=True)
class OwnedTerm:
    """A term of pods that are on nodes."""

    number: int
    """The place of its class in the order in which they came."""
    owner: Shape
    term: AffinityTerm
    weight: int = 0
    """Below zero if the term repels."""


class TermIndex:
    """Terms of pods that are on nodes, by the labels that they select."""

    def __init__(self) -> None:
        """Start without terms."""
        self._by_label: dict[tuple[str, str], list[OwnedTerm]] = {}
        self._others: list[OwnedTerm] = []

    def add(self, owned: OwnedTerm) -> None:
        """Enter a term; numbers never fall."""
        if owned.term.selector is None:
            return
        named = named_labels(owned.term.selector)
        if named is None:
            self._others.append(owned)
        for label in named or ():
            self._by_label.setdefault(label, []).append(owned)

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no term at all."""
        return not self._by_label and not self._others

    def add_repelling(self, number: int, shape: Shape) -> None:
        """Enter the required anti-affinity of a class."""
        for term in shape.anti_affinity.required:
            self.add(OwnedTerm(number, shape, term))

    def add_wishes(self, number: int, shape: Shape) -> None:
        """Enter the preferred terms of a class."""
        for term in shape.affinity.preferred:
            self.add(OwnedTerm(number, shape, term, term.weight))
        for term in shape.anti_affinity.preferred:
            self.add(OwnedTerm(number, shape, term, -term.weight))

    def since(self, first: int, shape: Shape) -> Iterator[OwnedTerm]:
        """Yield the terms of classes from this number on that may be about a task."""
        for terms in (self._others, *(self._by_label.get(label, ()) for label in shape.labels.items())):
            for owned in reversed(terms):
                if owned.number < first:
                    break
                yield owned


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
        self._places: list[dict[int, int]] = []
        self._numbers_by_label: dict[tuple[str, str], list[int]] = {}
        self._entries: list[tuple[int, int, int]] = []
        self._counters: dict[Hashable, _Counter] = {}
        self.affine: dict[Shape, dict[int, int]] = {}
        """Shapes with affinity terms, with their number of pods per node."""
        self.repelling, self.wishing = TermIndex(), TermIndex()
        """Required anti-affinity, and preferred terms of both kinds, of those shapes; numbered in their order."""
        numbers = session.snapshot.nodes.number_by_name
        for name, tasks in session.snapshot.on_node.items():
            node = numbers.get(name)
            if node is not None:
                for task in tasks.values():
                    self._enter(task.shape, task.status is Status.RELEASING, {node: 1})
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

    def _enter(self, shape: Shape, is_terminating: bool, changes: Mapping[int, int]) -> None:
        """Count pods of a class that come or go, by node."""
        number = self._class_numbers.get((shape, is_terminating))
        if number is None:
            number = self._new_class(shape, is_terminating)
        for counts in (self._places[number], self.affine[shape]) if shape.has_affinity else (self._places[number],):
            for node, change in changes.items():
                counts[node] = counts.get(node, 0) + change
        self._entries += [(node, number, change) for node, change in changes.items()]

    def _new_class(self, shape: Shape, is_terminating: bool) -> int:
        number = self._class_numbers[shape, is_terminating] = len(self._classes)
        self._classes.append((shape, is_terminating))
        self._places.append({})
        for label in shape.labels.items():
            self._numbers_by_label.setdefault(label, []).append(number)
        if shape.has_affinity and shape not in self.affine:
            self.repelling.add_repelling(len(self.affine), shape)
            self.wishing.add_wishes(len(self.affine), shape)
            self.affine[shape] = {}
        return number

    def changed(self, operation: Operation, undone: bool) -> None:
        """Follow an operation: allocated and pipelined pods are there at once, evicted ones gone at once."""
        sign = -1 if (operation.kind is OperationKind.EVICT) != undone else 1
        # An undone eviction cancels the entry of the eviction itself, so both are of the class that was not terminating.
        self._enter(operation.shape, False, {node: sign * count for node, count in Counter(operation.nodes).items()})

    def count(
        self, key: Hashable, matches: Callable[[Shape, bool], bool], selector: LabelSelector | None = None
    ) -> Counts:  # fmt: skip
        """Return per node the pods that match; `matches` is asked once per class and told whether it was terminating.

        If there is a selector that every matching pod meets, it saves asking about most others.
        """
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = _Counter(self._nodes, matches)
            self._count_classes(counter, None if selector is None else named_labels(selector))
        elif counter.seen < len(self._entries):
            self._count_entries(counter)
        return counter.vector

    def _count_classes(self, counter: _Counter, named: Named | None) -> None:
        """Begin a count: add up where the matching classes are now."""
        counter.seen = len(self._entries)
        if named is None:
            numbers: list[int] = list(range(len(self._classes)))
        else:
            numbers = [number for label in named for number in self._numbers_by_label.get(label, ())]
        for number in numbers:
            counter.verdicts[number] = counter.matches(*self._classes[number])
            if counter.verdicts[number] and (places := self._places[number]):
                counter.vector[list(places)] += np.fromiter(places.values(), dtype=np.int64, count=len(places))

    def _count_entries(self, counter: _Counter) -> None:
        verdicts = counter.verdicts
        hits: list[tuple[int, int]] = []
        for node, number, change in self._entries[counter.seen :]:
            if number not in verdicts:
                verdicts[number] = counter.matches(*self._classes[number])
            if verdicts[number]:
                hits.append((node, change))
        counter.seen = len(self._entries)
        if hits:
            where, changes = np.array(hits, dtype=np.int64).T
            np.add.at(counter.vector, where, changes)
