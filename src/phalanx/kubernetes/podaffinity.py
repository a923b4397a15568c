"""Pod affinity and anti-affinity: required terms as a filter, preferred terms as a score.

`affinityIndex: frozen-at-open` is how kube-scheduler's plugins behave inside Volcano: the lists of nodes that have pods with
(anti-)affinity are made when the session opens. A node that gets its first such pod later is not looked at for *their* terms.
Own terms of the incoming task are always checked everywhere.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from phalanx.kubernetes.podindex import PodIndex, TermIndex
from phalanx.model.selectors import Labels
from phalanx.model.shape import AffinityTerm, Shape
from phalanx.placement import NO_LIMIT, Counts, Index, Mask
from phalanx.placement.score import normalise_range
from phalanx.session.node_answers import Layer, Moved, Term
from phalanx.session.session import Session
from phalanx.state.node_table import LabelColumn

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


class AffinityBook:
    """Answers what pod affinity says about nodes, for one session."""

    def __init__(self, session: Session, *, is_frozen: bool = True) -> None:
        """Read the cluster through the pod index, which is made when it is first needed."""
        self._session, self._is_frozen = session, is_frozen
        self._table = session.snapshot.nodes
        self._namespaces = session.snapshot.surroundings.namespace_labels
        affine = [task.shape for task in session.snapshot.affine.values()]
        waiting = [task.task.shape for gang in session.gangs.values() for task in gang.tasks if task.task.shape.has_affinity]
        self._terms = TermIndex()
        for number, shape in enumerate(dict.fromkeys([*affine, *waiting])):
            self._terms.add_repelling(number, shape)
            self._terms.add_wishes(number, shape)
        self._concerned: dict[Shape, bool] = {}
        self._about: dict[tuple[Shape, bool], list[tuple[dict[int, int], str, int]]] = {}
        self._seen: dict[tuple[Shape, bool], int] = {}

    @property
    def _index(self) -> PodIndex:
        return self._session.book(PodIndex)

    def concerns(self, shape: Shape) -> bool:
        """Tell whether the shape has terms of its own or some other pod, running or waiting, has one about it."""
        if self._terms.is_empty:
            return shape.has_affinity and not shape.ignores_pods
        answer = self._concerned.get(shape)
        if answer is None:
            terms = self._terms.since(0, shape)
            about = (self._other_term_matches(each.owner, each.term, shape) for each in terms)
            answer = self._concerned[shape] = not shape.ignores_pods and (shape.has_affinity or any(about))
        return answer

    def layers(self, shape: Shape) -> list[Layer]:
        """Return the filter's answers for all nodes: own affinity, own anti-affinity, other pods' anti-affinity."""
        far = self._misses_affinity(shape, is_first=self._is_first(shape))
        near = self._hits_own_anti_affinity(shape) & ~far
        repelled = self._is_repelled(shape) & ~far & ~near
        answers = [
            Layer(far, AFFINITY, is_final=True, is_prepared=True, is_recounted=True),
            Layer(near, ANTI_AFFINITY, is_prepared=True, is_recounted=True),
            Layer(repelled, EXISTING_ANTI_AFFINITY, is_prepared=True, is_recounted=True),
        ]
        return [layer for layer in answers if layer.refused.any()]

    def coupled_filter(self, shape: Shape) -> "AffinityFilter":
        """Return the required terms in a form that follows a run of the shape."""
        is_first = self._is_first(shape)
        refused = self._misses_affinity(shape, is_first=is_first) | self._hits_own_anti_affinity(shape) | self._is_repelled(shape)
        drawn = [term.topology_key for term in shape.affinity.required] if is_first else []
        # Terms of pods like itself that repel it are its own, and those are about at least as many pods.
        repelled = [term.topology_key for term in shape.anti_affinity.required if self.own_term_matches(shape, term, shape)]
        return AffinityFilter(refused, list(map(self._table.label, drawn)), list(map(self._table.label, repelled)))

    def _misses_affinity(self, shape: Shape, *, is_first: bool) -> Mask:
        refused = np.zeros(len(self._table), dtype=np.bool_)
        for term in shape.affinity.required:
            refused |= ~self._table.label(term.topology_key).present
            if not is_first:
                refused |= self._in_domain(term.topology_key, self._pods_of_all(shape)) <= 0
        return refused

    def _is_first(self, shape: Shape) -> bool:
        """Tell whether the task has affinity, nobody is there yet whom it is about, and it is about the task itself.

        The first pod of a group that wants to be near its own kind would never start: it may go anywhere that has the labels.
        """
        terms = shape.affinity.required
        if not terms or not all(self.own_term_matches(shape, term, shape) for term in terms):
            return False
        pods = self._pods_of_all(shape)
        return not pods.any() or not any(pods[self._table.label(term.topology_key).present].any() for term in terms)

    def _hits_own_anti_affinity(self, shape: Shape) -> Mask:
        refused = np.zeros(len(self._table), dtype=np.bool_)
        for term in shape.anti_affinity.required:
            pods = self._pods_of(shape, term)
            if pods.any():  # most gangs are the first of their kind
                refused |= self._table.label(term.topology_key).present & (self._in_domain(term.topology_key, pods) > 0)
        return refused

    def _pods_of(self, shape: Shape, term: AffinityTerm) -> Counts:
        """Count per node the pods that a term of the incoming task is about."""
        return self._index.count(("own", shape, term), lambda other, _: self.own_term_matches(shape, term, other), term.selector)

    def _pods_of_all(self, shape: Shape) -> Counts:
        """Count per node the pods that every required affinity term of the incoming task is about."""
        terms = shape.affinity.required
        matches = self.own_term_matches
        return self._index.count(
            ("all", shape), lambda other, _: all(matches(shape, term, other) for term in terms), terms[0].selector
        )

    def _is_repelled(self, shape: Shape) -> Mask:
        refused = np.zeros(len(self._table), dtype=np.bool_)
        listed = self._index.had_anti_affinity if self._is_frozen else None
        for counts, key, _ in self._terms_about(shape, is_required=True):
            refused |= self._spread_out(key, _nodes_of(counts, listed))
        return refused

    def _terms_about(self, shape: Shape, *, is_required: bool) -> list[tuple[dict[int, int], str, int]]:
        """Return the terms of other pods that are about the task: where those pods are, the topology key, the weight.

        Which terms match never changes, so each shape of other pods is looked at once per incoming shape.
        """
        known = self._about.setdefault((shape, is_required), [])
        seen, classes = self._seen.get((shape, is_required), 0), len(self._index.affine)
        if seen == classes:
            return known
        terms = self._index.repelling if is_required else self._index.wishing
        known += [
            (self._index.affine[owned.owner], owned.term.topology_key, owned.weight)
            for owned in terms.since(seen, shape)
            if self._other_term_matches(owned.owner, owned.term, shape)
        ]
        self._seen[shape, is_required] = classes
        return known

    def _spread_out(self, key: str, nodes: list[int]) -> Mask:
        """Mark every node in the same domain as one of these."""
        # Nodes without the label have the code -1, which reads the last entry: one more than there are values, and always false.
        column = self._table.label(key)
        hit = np.zeros(len(column.values) + 1, dtype=np.bool_)
        hit[column.codes[nodes]] = True
        hit[-1] = False
        return hit[column.codes]

    def _in_domain(self, key: str, pods: Counts) -> Counts:
        """Sum the pods over each node's domain; 0 for nodes without the key."""
        column = self._table.label(key)
        if not column.values:
            return np.zeros(len(self._table), dtype=np.int64)
        there = column.present
        sums = np.bincount(column.codes[there], weights=pods[there], minlength=len(column.values)).astype(np.int64)
        return np.where(there, sums[column.codes], 0)

    def own_term_matches(self, owner: Shape, term: AffinityTerm, other: Shape) -> bool:
        """Tell whether a term of the incoming task is about another pod."""
        return is_about(owner, term, other, self._namespaces, is_incoming=True)

    def _other_term_matches(self, owner: Shape, term: AffinityTerm, incoming: Shape) -> bool:
        return is_about(owner, term, incoming, self._namespaces, is_incoming=False)

    def score(self, shape: Shape, weight: int) -> list[Term]:
        """Return the preferred terms as one score relative to the candidates; nothing when no term has a say."""
        by_key = self._preferences(shape)
        if not by_key:
            return []
        raw = self._raw(by_key)
        return [Term(weight, among=lambda candidates: normalise_range(raw[candidates]), is_static=False)]

    def coupled_score(self, shape: Shape, weight: int) -> list["AffinityScore"]:
        """Return the preferred terms in a form that follows a run of the shape; nothing when no term has a say."""
        changes = [
            (self._table.label(term.topology_key), term.weight * sign * self._weight_of_own(shape, term))
            for term, sign in _preferred(shape)
        ]
        changes = [change for change in changes if change[1] and self._session.books_are_live]
        by_key = self._preferences(shape)
        return [AffinityScore(self._raw(by_key), weight, changes)] if by_key or changes else []

    def _weight_of_own(self, shape: Shape, term: AffinityTerm) -> int:
        """Return how often a preferred term counts for a pod of the same shape: by its own term, and by that of the other."""
        return self.own_term_matches(shape, term, shape) + self._other_term_matches(shape, term, shape)

    def _raw(self, by_key: dict[str, NDArray[np.int64]]) -> Counts:
        raw = np.zeros(len(self._table), dtype=np.int64)
        for key, sums in by_key.items():
            raw += np.append(sums, 0)[self._table.label(key).codes]
        return raw

    def _preferences(self, shape: Shape) -> dict[str, NDArray[np.int64]]:
        """Sum weights per topology key and value."""
        by_key: dict[str, NDArray[np.int64]] = {}
        has_own = bool(shape.affinity.preferred or shape.anti_affinity.preferred)
        for term, sign in _preferred(shape):
            pods = self._pods_of(shape, term)
            self._add(by_key, term.topology_key, np.flatnonzero(pods), pods[np.flatnonzero(pods)] * term.weight * sign)
        listed = None if has_own or not self._is_frozen else self._index.had_affinity
        for counts, key, weight in self._terms_about(shape, is_required=False):
            nodes = _nodes_of(counts, listed)
            weights = np.array([counts[node] for node in nodes], dtype=np.int64) * weight
            self._add(by_key, key, np.array(nodes, dtype=np.int64), weights)
        return by_key

    def _add(self, by_key: dict[str, NDArray[np.int64]], key: str, nodes: Index, weights: Counts) -> None:
        column = self._table.label(key)
        there = column.codes[nodes] >= 0
        if there.any():
            sums = by_key.setdefault(key, np.zeros(len(column.values), dtype=np.int64))
            np.add.at(sums, column.codes[nodes[there]], weights[there])


class AffinityFilter:
    """Required terms about pods, while a run of one shape is placed."""

    only_closes = True

    def __init__(self, refused: Mask, drawn: list[LabelColumn], repelled: list[LabelColumn]) -> None:
        """Begin with what is refused; the first place draws the others to its domains, each place repels them from its own."""
        self.refused = refused
        self._drawn, self._repelled = drawn, [column for column in repelled if not column.is_unique]
        self.is_steady = not drawn and not self._repelled
        alone = [column for column in repelled if column.is_unique]
        self.room: Counts | int = NO_LIMIT
        if alone:
            self.room = np.where(np.logical_or.reduce([column.present for column in alone]), 1, NO_LIMIT)

    def take(self, node: int) -> Moved:
        """Follow one task onto a node."""
        moved = Moved.NOTHING if self.is_steady else Moved.CLOSES
        for column in self._drawn:
            self.refused |= column.codes != column.codes[node]
        self._drawn = []
        self.is_steady = not self._repelled
        for column in self._repelled:
            if column.codes[node] >= 0:
                self.refused |= column.codes == column.codes[node]
        return moved


class AffinityScore:
    """Preferred terms about pods, while a run of one shape is placed."""

    def __init__(self, raw: Counts, weight: int, changes: list[tuple[LabelColumn, int]]) -> None:
        """Begin with the sums of weights; each place adds some to its domains."""
        self._raw, self._changes = raw, changes
        self.is_steady = not changes
        self.term = Term(weight, among=lambda candidates: normalise_range(raw[candidates]), is_static=False)

    def take(self, node: int) -> None:
        """Follow one task onto a node."""
        for column, weight in self._changes:
            if column.codes[node] >= 0:
                self._raw[column.codes == column.codes[node]] += weight


def is_about(owner: Shape, term: AffinityTerm, other: Shape, namespaces: Mapping[str, Labels], *, is_incoming: bool) -> bool:
    """Tell whether a term of `owner` is about another pod; `is_incoming` if the owner is the task that looks for a node."""
    return _namespace_matches(owner, term, other.namespace, namespaces, is_incoming) and _labels_match(term, other)


def _namespace_matches(
    owner: Shape, term: AffinityTerm, namespace: str, namespaces: Mapping[str, Labels], is_incoming: bool
) -> bool:  # fmt: skip
    if namespace in term.namespaces:
        return True
    selector = term.namespace_selector
    if selector is None:
        return not term.namespaces and namespace == owner.namespace
    if selector.is_empty or (is_incoming and selector.matches({})):
        return True
    labels = namespaces.get(namespace)
    return selector.matches(labels) if labels is not None else (not is_incoming and selector.matches({}))


def _preferred(shape: Shape) -> Iterator[tuple[AffinityTerm, int]]:
    yield from ((term, 1) for term in shape.affinity.preferred)
    yield from ((term, -1) for term in shape.anti_affinity.preferred)


def _nodes_of(counts: dict[int, int], listed: Mask | None) -> list[int]:
    return [node for node, count in counts.items() if count > 0 and (listed is None or listed[node])]


def _labels_match(term: AffinityTerm, pod: Shape) -> bool:
    return term.selector is not None and term.selector.matches(pod.labels)
