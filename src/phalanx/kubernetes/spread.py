"""Topology spread: hard constraints as a filter, soft ones as a score."""

import numpy as np
from numpy.typing import NDArray

from phalanx.kubernetes.nodeselection import allowed_nodes
from phalanx.kubernetes.podindex import PodIndex
from phalanx.kubernetes.taints import closed_by_taint
from phalanx.model.selectors import LabelSelector
from phalanx.model.shape import Shape, SpreadConstraint
from phalanx.placement import Counts, Index, Mask
from phalanx.session.node_answers import Layer, Term
from phalanx.session.session import Session

SKEW = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = f"{SKEW} (missing required label)"
HOSTNAME = "kubernetes.io/hostname"
SYSTEM_DEFAULTS = ((HOSTNAME, 3), ("topology.kubernetes.io/zone", 5))
"""Topology keys with their largest skew, for pods of a service without constraints of their own."""


class SpreadBook:
    """Answers what spread constraints say about nodes, for one session."""

    def __init__(self, session: Session) -> None:
        """Read the cluster through the pod index, which is made when it is first needed."""
        self._session = session
        self._table = session.snapshot.nodes
        self._services = session.snapshot.surroundings.service_selectors

    def concerns(self, shape: Shape) -> bool:
        """Tell whether the shape has constraints, its own or those a service gives it."""
        return bool(shape.spread) or (bool(self._services) and bool(self._system_defaults(shape)))

    def layers(self, shape: Shape) -> list[Layer]:
        """Return the filter's answers for all nodes; the first failing constraint of a node decides."""
        constraints = [constraint for constraint in shape.spread if constraint.hard]
        lacking = np.zeros(len(self._table), dtype=np.bool_)
        skewed = lacking.copy()
        for constraint in constraints:
            present = self._table.label(constraint.topology_key).present
            undecided = ~lacking & ~skewed
            lacking |= undecided & ~present
            skewed |= undecided & present & self._is_skewed(shape, constraint, constraints)
        answers = [Layer(lacking, MISSING_LABEL, is_final=True, is_prepared=True), Layer(skewed, SKEW, is_prepared=True)]
        return [layer for layer in answers if layer.refused.any()]

    def _is_skewed(self, shape: Shape, constraint: SpreadConstraint, constraints: list[SpreadConstraint]) -> Mask:
        column = self._table.label(constraint.topology_key)
        counted = self._carries_all(constraints) & self._is_included(shape, constraint)
        pods = self._pods(shape, constraint)
        sums = np.bincount(column.codes[counted], weights=pods[counted], minlength=len(column.values)).astype(np.int64)
        # Domains without a single counted node do not exist for the constraint: their zero pods must not be the least.
        seen = np.bincount(column.codes[counted], minlength=len(column.values)) > 0
        enough = int(seen.sum()) >= constraint.min_domains
        least = int(sums[seen].min()) if seen.any() and enough else 0
        mine = int(constraint.selector is not None and constraint.selector.matches(shape.labels))
        return np.append(np.where(seen, sums, 0), 0)[column.codes] + mine - least > constraint.max_skew

    def _carries_all(self, constraints: list[SpreadConstraint]) -> Mask:
        mask = np.ones(len(self._table), dtype=np.bool_)
        for constraint in constraints:
            mask &= self._table.label(constraint.topology_key).present
        return mask

    def _is_included(self, shape: Shape, constraint: SpreadConstraint) -> Mask:
        """Mark the nodes whose pods count, by the constraint's policies."""
        mask = np.ones(len(self._table), dtype=np.bool_)
        if constraint.honor_node_affinity:
            mask &= allowed_nodes(shape, self._table)
        if constraint.honor_taints:
            mask &= ~closed_by_taint(shape, self._table)
        return mask

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

    def _system_defaults(self, shape: Shape) -> list[SpreadConstraint]:
        matching = [
            selector for namespace, selector in self._services.values()
            if namespace == shape.namespace and not selector.is_empty and selector.matches(shape.labels)
        ]  # fmt: skip
        parts = tuple(dict.fromkeys(part for selector in matching for part in selector.requirements))
        if not parts:
            return []
        return [SpreadConstraint(key, skew, False, LabelSelector(parts)) for key, skew in SYSTEM_DEFAULTS]


class _Scorer:
    """Scores candidates: fewer matching pods in a node's domain is better, narrow domains weigh less."""

    def __init__(self, book: SpreadBook, shape: Shape, constraints: list[SpreadConstraint], is_default: bool) -> None:
        self._book, self._shape, self._constraints, self._is_default = book, shape, constraints, is_default

    def among(self, candidates: Index) -> Counts:
        ignored = np.zeros(len(candidates), dtype=np.bool_)
        if not self._is_default:
            ignored = ~self._book._carries_all(self._constraints)[candidates]
        total = np.zeros(len(candidates), dtype=np.float64)
        for constraint in self._constraints:
            total += self._raw(constraint, candidates, ignored)
        raw = np.floor(total + 0.5).astype(np.int64)
        return self._normalised(raw, ignored)

    def _raw(self, constraint: SpreadConstraint, candidates: Index, ignored: Mask) -> NDArray[np.float64]:
        column = self._book._table.label(constraint.topology_key)
        codes = column.codes[candidates]
        there = codes >= 0
        is_host = constraint.topology_key == HOSTNAME
        size = int((~ignored).sum()) if is_host else len(np.unique(codes[~ignored]))
        pods = self._book._pods(self._shape, constraint)
        counts = pods[candidates] if is_host else self._domain_counts(constraint, pods)[codes]
        raw = counts.astype(np.float64) * np.log(size + 2) + float(constraint.max_skew - 1)
        return np.where(there, raw, 0.0)

    def _domain_counts(self, constraint: SpreadConstraint, pods: Counts) -> Counts:
        column = self._book._table.label(constraint.topology_key)
        counted = column.present & self._book._is_included(self._shape, constraint)
        if not self._is_default:
            counted &= self._book._carries_all(self._constraints)
        sums = np.bincount(column.codes[counted], weights=pods[counted], minlength=len(column.values)).astype(np.int64)
        return np.append(sums, 0)

    def _normalised(self, raw: Counts, ignored: Mask) -> Counts:
        kept = raw[~ignored]
        if not kept.size:
            return np.zeros_like(raw)
        low, high = int(kept.min()), max(int(kept.max()), 0)
        scores = np.full_like(raw, 100) if high == 0 else 100 * (high + low - raw) // high
        return np.where(ignored, 0, scores)
