"""Topology spread: hard constraints as a filter, soft ones as a score."""

import numpy as np
from numpy.typing import NDArray

from phalanx.kubernetes.nodeselection import allowed_nodes
from phalanx.kubernetes.podindex import PodIndex
from phalanx.kubernetes.taints import closed_by_taint
from phalanx.model.selectors import LabelSelector
from phalanx.model.shape import Shape, SpreadConstraint
from phalanx.placement import NO_LIMIT, Counts, Index, Mask
from phalanx.session.node_answers import Layer, Moved, Term
from phalanx.session.session import Session
from phalanx.state.node_table import LabelColumn

SKEW = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = f"{SKEW} (missing required label)"
HOSTNAME = "kubernetes.io/hostname"
SYSTEM_DEFAULTS = ((HOSTNAME, 3), ("topology.kubernetes.io/zone", 5))
"""Topology keys with their largest skew, for pods of a service without constraints of their own."""


class SpreadBook:
    """Answers what spread constraints say about nodes, for one session."""

    def __init__(self, session: Session, *, spreads_services: bool = True) -> None:
        """Read the cluster through the pod index, which is made when it is first needed."""
        self._session = session
        self._table = session.snapshot.nodes
        self._services = session.snapshot.surroundings.service_selectors if spreads_services else {}
        self._included: dict[tuple[Shape, bool, bool], Mask] = {}

    def concerns(self, shape: Shape) -> bool:
        """Tell whether the shape has constraints, its own or those a service gives it."""
        if shape.spread or shape.ignores_pods:
            return bool(shape.spread)
        return bool(self._services) and bool(self._system_defaults(shape))

    def layers(self, shape: Shape) -> list[Layer]:
        """Return the filter's answers for all nodes; the first failing constraint of a node decides."""
        constraints = [constraint for constraint in shape.spread if constraint.hard]
        lacking = np.zeros(len(self._table), dtype=np.bool_)
        skewed = lacking.copy()
        for constraint in constraints:
            present = self._table.label(constraint.topology_key).present
            undecided = ~lacking & ~skewed
            lacking |= undecided & ~present
            skewed |= undecided & present & self._domains(shape, constraint, constraints).skewed()
        answers = [Layer(lacking, MISSING_LABEL, is_final=True, is_prepared=True), Layer(skewed, SKEW, is_prepared=True)]
        return [layer for layer in answers if layer.refused.any()]

    def coupled_filter(self, shape: Shape) -> "SpreadFilter":
        """Return the hard constraints in a form that follows a run of the shape."""
        constraints = [constraint for constraint in shape.spread if constraint.hard]
        return SpreadFilter(
            ~self._carries_all(constraints), [self._domains(shape, constraint, constraints) for constraint in constraints]
        )

    def _domains(self, shape: Shape, constraint: SpreadConstraint, constraints: list[SpreadConstraint]) -> "_Domains":
        counted = self._carries_all(constraints) & self._is_included(shape, constraint)
        return _Domains(shape, constraint, self._table.label(constraint.topology_key), counted, self._pods(shape, constraint))

    def _carries_all(self, constraints: list[SpreadConstraint]) -> Mask:
        mask = np.ones(len(self._table), dtype=np.bool_)
        for constraint in constraints:
            mask &= self._table.label(constraint.topology_key).present
        return mask

    def _is_included(self, shape: Shape, constraint: SpreadConstraint) -> Mask:
        """Mark the nodes whose pods count, by the constraint's policies."""
        key = self._session.apart_from_pods(shape) or shape, constraint.honor_node_affinity, constraint.honor_taints
        if key not in self._included:
            mask = np.ones(len(self._table), dtype=np.bool_)
            if constraint.honor_node_affinity:
                mask &= allowed_nodes(shape, self._table)
            if constraint.honor_taints:
                mask &= ~closed_by_taint(shape, self._table)
            self._included[key] = mask
        return self._included[key]

    def _pods(self, shape: Shape, constraint: SpreadConstraint) -> Counts:
        """Count matching pods of the task's namespace per node; terminating ones and the empty selector count nothing."""
        selector = constraint.selector
        if selector is None or selector.is_empty:
            return np.zeros(len(self._table), dtype=np.int64)
        namespace = shape.namespace
        return self._session.book(PodIndex).count(
            ("spread", namespace, selector),
            lambda other, is_terminating: not is_terminating and other.namespace == namespace and selector.matches(other.labels),
            selector,
        )

    def score(self, shape: Shape, weight: int) -> list[Term]:
        """Return the soft constraints as one score relative to the candidates; nothing when there are none."""
        is_default = not shape.spread
        constraints = self._system_defaults(shape) if is_default else [part for part in shape.spread if not part.hard]
        if not constraints:
            return []
        scorer = _Scorer(self, shape, constraints, is_default)
        return [Term(weight, among=scorer.among, is_static=False)]

    def coupled_score(self, shape: Shape, weight: int) -> list["SpreadScore"]:
        """Return the soft constraints in a form that follows a run of the shape; nothing when there are none."""
        is_default = not shape.spread
        constraints = self._system_defaults(shape) if is_default else [part for part in shape.spread if not part.hard]
        if not constraints:
            return []
        return [SpreadScore(_Scorer(self, shape, constraints, is_default), weight, self._session.books_are_live)]

    def _system_defaults(self, shape: Shape) -> list[SpreadConstraint]:
        matching = [
            selector for namespace, selector in self._services.values()
            if namespace == shape.namespace and not selector.is_empty and selector.matches(shape.labels)
        ]  # fmt: skip
        parts = tuple(dict.fromkeys(part for selector in matching for part in selector.requirements))
        if not parts:
            return []
        return [SpreadConstraint(key, skew, False, LabelSelector(parts)) for key, skew in SYSTEM_DEFAULTS]


class _Domains:
    """The domains of one hard constraint, with the pods that it counts in each."""

    def __init__(
        self, shape: Shape, constraint: SpreadConstraint, column: LabelColumn, counted: Mask, pods: Counts
    ) -> None:  # fmt: skip
        self._codes, self._counted, self._most = column.codes, counted, constraint.max_skew
        # Nodes without the label have the code -1, which reads the last entry: one more than there are values, an empty domain.
        size = len(column.values) + 1
        sums = np.bincount(column.codes[counted], weights=pods[counted], minlength=size).astype(np.int64)
        # Domains without a single counted node do not exist for the constraint: their zero pods must not be the least.
        self._seen = np.bincount(column.codes[counted], minlength=size) > 0
        self._sums = np.where(self._seen, sums, 0)
        self._has_least = int(self._seen.sum()) >= max(constraint.min_domains, 1)
        self._mine = int(constraint.selector is not None and constraint.selector.matches(shape.labels))
        self.grows = _counts_itself(shape, constraint)
        self._look()

    def _look(self) -> None:
        self._least = int(self._sums[self._seen].min()) if self._has_least else 0
        self._full: Mask = np.asarray(self._sums + self._mine - self._least > self._most)
        """The domains where one more task would be too many."""

    def skewed(self) -> Mask:
        """Mark the nodes where one more task would be too many."""
        return self._full[self._codes]

    def take(self, node: int) -> Moved:
        """Follow one task onto a node; tell whether one more would be too many on other nodes than before."""
        if not (self.grows and self._counted[node]):
            return Moved.NOTHING
        domain, before = self._codes[node], self._full
        held = int(self._sums[domain])
        self._sums[domain] = held + 1
        if self._has_least and held == self._least and int(self._sums[self._seen].min()) > held:
            self._look()
            return Moved.NOTHING if np.array_equal(before, self._full) else Moved.OPENS
        # The least is what it was, so that only this domain can be full now.
        if before[domain] or held + 1 + self._mine - self._least <= self._most:
            return Moved.NOTHING
        self._full[domain] = True
        return Moved.CLOSES


def _counts_itself(shape: Shape, constraint: SpreadConstraint) -> bool:
    """Tell whether a constraint counts pods of the shape that has it."""
    selector = constraint.selector
    return selector is not None and not selector.is_empty and selector.matches(shape.labels)


class SpreadFilter:
    """Hard constraints, while a run of one shape is placed."""

    def __init__(self, lacking: Mask, domains: list[_Domains]) -> None:
        """Begin with the pods that are there; each place counts in its domains."""
        self._lacking, self._domains = lacking, domains
        self.room: Counts | int = NO_LIMIT
        self.is_steady = self.only_closes = not any(each.grows for each in domains)
        self.refused = self._look()

    def _look(self) -> Mask:
        refused = self._lacking.copy()
        for each in self._domains:
            refused |= each.skewed()
        return refused

    def take(self, node: int) -> Moved:
        """Follow one task onto a node."""
        moved = max([each.take(node) for each in self._domains])
        if moved:
            self.refused = self._look()
        return moved


class SpreadScore:
    """Soft constraints, while a run of one shape is placed."""

    def __init__(self, scorer: "_Scorer", weight: int, is_live: bool) -> None:
        """Begin with the pods that are there; each place counts in its domains."""
        self._scorer = scorer
        self.is_steady = not is_live or not scorer.grows
        self.term = Term(weight, among=scorer.among, is_static=False)

    def take(self, node: int) -> None:
        """Follow one task onto a node."""
        if not self.is_steady:
            self._scorer.take(node)


class _Soft:
    """One soft constraint: the pods that it counts on each node if it is about hosts, else in each domain."""

    def __init__(self, constraint: SpreadConstraint, column: LabelColumn, counted: Mask, pods: Counts) -> None:
        self._codes, self._is_host, self._skew = column.codes, constraint.topology_key == HOSTNAME, constraint.max_skew
        self._counted = counted & column.present
        if self._is_host:
            self._counts = pods.copy()
        else:
            # Nodes without the label have the code -1, which reads the last entry: one more than there are values, and always 0.
            codes = column.codes[self._counted]
            self._counts = np.bincount(codes, weights=pods[self._counted], minlength=len(column.values) + 1).astype(np.int64)

    def take(self, node: int) -> None:
        """Count one more pod on a node."""
        if self._is_host:
            self._counts[node] += 1
        elif self._counted[node]:
            self._counts[self._codes[node]] += 1

    def among(self, candidates: Index, ignored: Mask) -> None:
        """Note who the candidates are."""
        codes = self._codes[candidates]
        # Counting codes takes a fifth of the time of `unique`; -1 is the code of nodes without the label.
        kept = np.flatnonzero(~ignored) if self._is_host else np.flatnonzero(np.bincount(codes[~ignored] + 1)) - 1
        self.kept: Index = kept
        """The places of candidates that are compared: each is a place of its own if this is about hosts, else its domain is."""
        self.place_of: Index | slice = slice(None) if self._is_host else codes
        """The place of each candidate."""
        self._weight, self._places = np.log(len(kept) + 2), candidates
        self._lacking = codes < 0

    def raw(self) -> NDArray[np.float64]:
        """Return what the constraint adds at each place."""
        if self._is_host:
            return np.where(self._lacking, 0.0, self._scored(self._counts[self._places]))
        by_domain = self._scored(self._counts)
        by_domain[-1] = 0.0
        return by_domain

    def _scored(self, counts: Counts) -> NDArray[np.float64]:
        return np.asarray(counts.astype(np.float64) * self._weight + float(self._skew - 1))


class _Scorer:
    """Scores candidates: fewer matching pods in a node's domain is better, narrow domains weigh less."""

    def __init__(self, book: SpreadBook, shape: Shape, constraints: list[SpreadConstraint], is_default: bool) -> None:
        self._book, self._shape, self._constraints, self._is_default = book, shape, constraints, is_default
        self._own = [_counts_itself(shape, constraint) for constraint in constraints]
        """Which of the constraints count pods of the shape itself."""
        self._read: list[_Soft] | None = None
        self._candidates: Index | None = None
        """Those that were compared last: as long as they are the same, only counts change."""

    @property
    def grows(self) -> bool:
        """Tell whether pods of the shape itself count."""
        return any(self._own)

    def take(self, node: int) -> None:
        """Count one more task of the shape on a node."""
        for soft, is_own in zip(self._soft, self._own, strict=True):
            if is_own:
                soft.take(node)

    @property
    def _soft(self) -> list[_Soft]:
        # Scores of a few nodes are asked for more often than how candidates compare.
        if self._read is None:
            book, shape = self._book, self._shape
            self._carries_all = np.ones(len(book._table), dtype=np.bool_)
            if not self._is_default:
                self._carries_all = book._carries_all(self._constraints)
            self._read = [
                _Soft(
                    each, book._table.label(each.topology_key), self._carries_all & book._is_included(shape, each),
                    book._pods(shape, each),
                )
                for each in self._constraints
            ]  # fmt: skip
        return self._read

    def among(self, candidates: Index) -> Counts:
        soft = self._soft
        if candidates is not self._candidates:
            self._ignored = ~self._carries_all[candidates]
            for each in soft:
                each.among(candidates, self._ignored)
            self._ignores, self._candidates = bool(self._ignored.any()), candidates
        if len(soft) == 1:  # as many different scores as places, and domains are few
            scores = _normalised(soft[0].raw(), soft[0].kept)[soft[0].place_of]
        else:
            total = sum((each.raw()[each.place_of] for each in soft), np.zeros(len(candidates)))
            scores = _normalised(total, np.flatnonzero(~self._ignored))
        return np.where(self._ignored, 0, scores) if self._ignores else scores


def _normalised(raw: NDArray[np.float64], kept: Index) -> Counts:
    """Return scores from 100 down; those that are kept say how far."""
    rounded = np.floor(raw + 0.5).astype(np.int64)
    if not kept.size:
        return np.zeros_like(rounded)
    compared = rounded[kept]
    low, high = int(compared.min()), max(int(compared.max()), 0)
    return np.full_like(rounded, 100) if high == 0 else np.asarray(100 * (high + low - rounded) // high)
