"""Kubernetes' scores, weighted: free room, balance, node and pod affinity, taints, images, spread."""

from collections.abc import Hashable, Sequence

import numpy as np

from phalanx.kubernetes.images import ImageBook
from phalanx.kubernetes.nodeselection import term_mask
from phalanx.kubernetes.podaffinity import AffinityBook
from phalanx.kubernetes.spread import SpreadBook
from phalanx.kubernetes.taints import taints_to_avoid
from phalanx.model.shape import Shape
from phalanx.placement import Amounts, Counts, Scores
from phalanx.placement.ledger import amounts_at
from phalanx.placement.score import balanced, least_allocated, most_allocated, normalise
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import CoupledScore, Site, Term
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session

WEIGHTS = {
    "leastrequested": 1, "mostrequested": 0, "balancedresource": 1, "nodeaffinity": 2, "podaffinity": 2, "tainttoleration": 3,
    "imagelocality": 1, "podtopologyspread": 2,
}  # fmt: skip
BALANCED = ("cpu", "memory", "nvidia.com/gpu")


class NodeOrderPlugin:
    """Adds up kube-scheduler's scores."""

    name = "nodeorder"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the weights; 0 turns a score off."""
        settings = Arguments(self.name, policy.arguments)
        self.weights = {name: settings.integer(f"{name}.weight", weight) for name, weight in WEIGHTS.items()}
        self._spreads_services = settings.switch("podtopologyspread.services", True)
        settings.done()
        # By what they read of a shape: gangs that only ask for other amounts share them, and on 50,000 nodes each takes 400 kB.
        self._relative: dict[Hashable, list[Term] | None] = {}

    def open(self, session: Session) -> None:
        """Prepare what the scores read."""
        self._affinity, self._spread = AffinityBook(session), SpreadBook(session, spreads_services=self._spreads_services)
        self._images: ImageBook | None = None
        self._image_scores: dict[Hashable, Counts] = {}

    def couples_nodes(self, session: Session, shape: Shape) -> bool:
        """Tell whether a placement elsewhere can change the score of a node."""
        if not session.books_are_live:
            return False
        affinity = bool(self.weights["podaffinity"]) and self._affinity.concerns(shape)
        return affinity or (bool(self.weights["podtopologyspread"]) and self._spread.concerns(shape))

    def node_scores(self, session: Session, shape: Shape, site: Site) -> Scores:
        """Return image locality, the one score that is added node by node."""
        weight = self.weights["imagelocality"]
        if not weight or not shape.images:
            return np.zeros(len(session.ledger.pods[site.nodes]))
        key = (shape.images, shape.containers)
        if key not in self._image_scores:
            self._images = self._images or ImageBook(session)
            self._image_scores[key] = self._images.score(shape)
        return (self._image_scores[key][site.nodes] * weight).astype(np.float64)

    def batch_scores(self, session: Session, shape: Shape, site: Site) -> Sequence[Term] | None:
        """Return all other scores; None when a preference of the task is invalid."""
        terms = self._resource_terms(session, shape, site)
        static = self._static_terms(session, shape)
        if static is None:
            return None
        terms += [_at(term, site) for term in static]
        if self.weights["podaffinity"] and self._affinity.concerns(shape):
            terms += self._affinity.score(shape, self.weights["podaffinity"])
        if self.weights["podtopologyspread"] and self._spread.concerns(shape):
            terms += self._spread.score(shape, self.weights["podtopologyspread"])
        return terms

    def coupled_scores(self, session: Session, shape: Shape) -> list[CoupledScore]:
        """Return the scores that look at other pods."""
        found: list[CoupledScore] = []
        if self.weights["podaffinity"] and self._affinity.concerns(shape):
            found += self._affinity.coupled_score(shape, self.weights["podaffinity"])
        if self.weights["podtopologyspread"] and self._spread.concerns(shape):
            found += self._spread.coupled_score(shape, self.weights["podtopologyspread"])
        return found

    def _resource_terms(self, session: Session, shape: Shape, site: Site) -> list[Term]:
        ledger, terms = session.ledger, list[Term]()
        least, most = self.weights["leastrequested"], self.weights["mostrequested"]
        if least or most:
            capacity = ledger.reported[:2, site.nodes]
            more = np.array(shape.booked_request, dtype=np.int64)[:, None] * site.extra_booked
            requested = ledger.scored[:, site.nodes] + more + np.array(shape.scoring_request, dtype=np.int64)[:, None]
            if least:
                terms.append(Term(least, least_allocated(capacity, requested)))
            if most:
                terms.append(Term(most, most_allocated(capacity, requested)))
        if self.weights["balancedresource"]:
            terms += self._balance(session, shape, site)
        return terms

    def _balance(self, session: Session, shape: Shape, site: Site) -> list[Term]:
        """Score balance over cpu, memory and GPUs, the last only if asked for; nothing for a task that asks for none of them."""
        if not any(shape.request.get(name) for name in BALANCED):
            return []
        rows_by_name, ledger = session.snapshot.space.row_by_name, session.ledger
        rows = [rows_by_name[name] for name in BALANCED if name in ("cpu", "memory") or shape.request.get(name)]
        request = session.request_of(shape).amounts[rows][:, None]
        before: Amounts = amounts_at(ledger.booked, rows, site.nodes) + request * site.extra_booked
        return [
            Term(
                self.weights["balancedresource"],
                balanced(amounts_at(ledger.reported, rows, site.nodes), before, before + request),
            )
        ]

    def _static_terms(self, session: Session, shape: Shape) -> list[Term] | None:
        """Return the scores that only depend on labels and taints, made once for all shapes of the same wishes."""
        key = (shape.node_preferences, shape.tolerations)
        if key not in self._relative:
            self._relative[key] = self._read_static(session, shape)
        return self._relative[key]

    def _read_static(self, session: Session, shape: Shape) -> list[Term] | None:
        table, terms = session.snapshot.nodes, list[Term]()
        if self.weights["nodeaffinity"] and shape.node_preferences:
            raw = np.zeros(len(table), dtype=np.int64)
            for preference in shape.node_preferences:
                if preference.weight == 0 or preference.term.is_empty:
                    continue
                if not preference.term.is_valid:
                    return None
                raw += preference.weight * term_mask(preference.term, table)
            terms.append(_scaled(raw, self.weights["nodeaffinity"], is_reversed=False))
        if self.weights["tainttoleration"]:
            terms.append(_scaled(taints_to_avoid(shape, table), self.weights["tainttoleration"], is_reversed=True))
        return terms


def _scaled(raw: Counts, weight: int, *, is_reversed: bool) -> Term:
    """Scale to the candidates; the same raw score everywhere gives the same result for any candidates."""
    if raw.size and (raw == raw[0]).all():
        return Term(weight, values=normalise(raw, is_reversed=is_reversed))
    return Term(weight, among=lambda candidates: normalise(raw[candidates], is_reversed=is_reversed))


def _at(term: Term, site: Site) -> Term:
    return term if term.values is None else Term(term.weight, values=term.values[site.nodes])
