"""How the nodes look to one class of tasks: which may take one, how many, and what they score.

An outlook is made once per shape and session and kept up to date: when nodes changed, only those are looked at again. That
holds for shapes whose placement matters to the next one only on the node that took it; for all others (affinity, spread,
ports, volumes, claims) everything is looked at again after every change.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from phalanx.core.hooks import Layer, Site, Term
from phalanx.core.verdict import FitError
from phalanx.model.shape import Shape
from phalanx.placement import Counts, Index, Mask, Scores
from phalanx.placement.fill import NOT_A_CANDIDATE, Candidates, fill
from phalanx.placement.fit import copies, first_short

if TYPE_CHECKING:
    from phalanx.core.session import Session

EVERYWHERE = slice(None)


@dataclass(slots=True)
class Valuation:
    """Scores of some nodes, the parts that do not depend on the candidates."""

    floats: Scores
    whole: Counts

    def total(self) -> Scores:
        """Add the parts up, in the order that decides between nearly equal scores."""
        return self.floats + self.whole.astype(np.float64)


class Outlook:
    """Feasibility and scores of all nodes for one shape."""

    def __init__(self, session: "Session", shape: Shape) -> None:
        """Look at every node."""
        self._session, self.shape = session, shape
        self.request = session.request_of(shape)
        self._is_local = session.is_local(shape)
        self._look_everywhere()

    def _look_everywhere(self) -> None:
        count = len(self._session.snapshot.nodes)
        self._allowed: Mask = np.ones(count, dtype=np.bool_)
        self._idle_room = np.zeros(count, dtype=np.int64)
        self._future_room = np.zeros(count, dtype=np.int64)
        self._now: Valuation | None = None
        self._after_one: Valuation | None = None
        self._relative: list[Term] = []
        self.scoring_failed = False
        self._look_at(EVERYWHERE)
        self._position = self._session.ledger.position

    def refresh(self) -> None:
        """Bring the outlook in line with the books."""
        ledger = self._session.ledger
        if ledger.position == self._position:
            return
        if not self._is_local or ledger.changes_since(self._position) > len(self._allowed):
            self._look_everywhere()
            return
        touched = ledger.touched_since(self._position)
        self._look_at(touched)
        if self._now is not None and self._after_one is not None:
            self._value_at(touched)
        self._position = ledger.position

    def _look_at(self, nodes: Index | slice) -> None:
        session, ledger = self._session, self._session.ledger
        allowed = np.ones(self._allowed[nodes].shape, dtype=np.bool_)
        for _, layers in session.screen(self.shape, nodes):
            for layer in layers:
                allowed &= ~layer.refused
        room = np.minimum(copies(ledger.future, self.request, nodes), session.node_room(self.shape, nodes))
        room[~allowed] = 0
        self._allowed[nodes] = allowed
        self._future_room[nodes] = room
        self._idle_room[nodes] = np.minimum(room, copies(ledger.idle, self.request, nodes))

    def _value_at(self, nodes: Index | slice) -> None:
        assert self._now is not None
        assert self._after_one is not None
        booked = self._session.books_are_live
        for valuation, site in ((self._now, Site(nodes)), (self._after_one, Site(nodes, 1, int(booked)))):
            fresh, _ = self._session.value(self.shape, site)
            if fresh is not None:
                valuation.floats[nodes], valuation.whole[nodes] = fresh.floats, fresh.whole

    def groups(self, *, within: Mask | None = None, ignores_idle: bool = False) -> list[tuple[bool, Mask]]:
        """Return the nodes that can take a task as groups, best first; true beside a group means: now, not once others left.

        Nodes with room now come before nodes with room later, the own shard before others in soft sharding.
        """
        idle, future = self._idle_room > 0, self._future_room > 0
        if ignores_idle:
            idle = self._allowed
        if within is not None:
            idle, future = idle & within, future & within
        kinds = [(True, idle)] if ignores_idle else [(True, idle), (False, future)]
        return [(now, mask & part) for now, mask in kinds for part in self._session.shard_parts()]

    def place(self, count: int, *, within: Mask | None = None) -> tuple[list[int], list[int]]:
        """Choose nodes for up to `count` tasks, one after the other: those with room now first, then those with room later."""
        now: list[int] = []
        later: list[int] = []
        for is_now, mask in self.groups(within=within):
            missing = count - len(now) - len(later)
            if missing and mask.any():
                (now if is_now else later).extend(self._place_in(mask.copy(), missing, is_now))
        return now, later

    def _place_in(self, mask: Mask, count: int, is_now: bool) -> list[int]:
        room = (self._idle_room if is_now else self._future_room).copy()
        chosen: list[int] = []
        while len(chosen) < count and mask.any():
            if count - len(chosen) == 1 or not self._is_local:
                node = self.best(mask)
                return chosen if node is None else [*chosen, node]
            part = self._run(mask, room, count - len(chosen), is_now)
            if part is None or not part.size:
                break
            chosen.extend(part.tolist())
            np.subtract.at(room, part, 1)
            mask &= room > 0
        return chosen

    def _run(self, mask: Mask, room: Counts, count: int, is_now: bool) -> Index | None:
        """Place a run; a relative score ends it when a node drops out of the candidates."""
        if int(mask.sum()) == 1:
            return np.full(min(count, int(room[mask][0])), int(np.flatnonzero(mask)[0]), dtype=np.int64)
        valuation = self._valuation()
        if valuation is None:
            return None
        relative = self._relative_scores(mask)
        scores = np.where(mask, valuation.total() + relative, NOT_A_CANDIDATE)
        after = self._after_one if is_now else self._value(Site(EVERYWHERE, 0, int(self._session.books_are_live)))
        assert after is not None
        after_one = after.total() + relative
        candidates = Candidates(scores, after_one, room, lambda node, last: self._after_more(node, last, is_now) + relative[node])
        return fill(candidates, count, stops_when_full=bool(self._relative))

    def _after_more(self, node: int, last: int, is_now: bool) -> Scores:
        extra = np.arange(2, last + 1, dtype=np.int64)
        booked = extra if self._session.books_are_live else 0
        nodes = np.full(len(extra), node, dtype=np.int64)
        return self._value(Site(nodes, extra if is_now else 0, booked)).total()

    def _value(self, site: Site) -> Valuation:
        valuation, _ = self._session.value(self.shape, site)
        assert valuation is not None
        return valuation

    def _valuation(self) -> Valuation | None:
        if self._now is None and not self.scoring_failed:
            self._now, self._relative = self._session.value(self.shape, Site(EVERYWHERE))
            self.scoring_failed = self._now is None
            if self._now is not None and self._is_local:
                self._after_one = self._value(Site(EVERYWHERE, 1, int(self._session.books_are_live)))
        return self._now

    def _relative_scores(self, mask: Mask) -> Scores:
        scores = np.zeros(len(mask), dtype=np.float64)
        if self._relative:
            candidates = np.flatnonzero(mask)
            whole = np.zeros(len(candidates), dtype=np.int64)
            for term in self._relative:
                assert term.among is not None
                whole += term.among(candidates) * term.weight
            scores[candidates] = whole
        return scores

    def best(self, mask: Mask, *, extra: Scores | None = None) -> int | None:
        """Return the best node of the mask: the only one unscored, else the highest score, the lower number among equals.

        None when scoring failed.
        """
        candidates = np.flatnonzero(mask)
        if len(candidates) == 1:
            return int(candidates[0])
        scores = self.scores(mask)
        if scores is None:
            return None
        if extra is not None:
            scores = scores + extra
        return int(np.where(mask, scores, NOT_A_CANDIDATE).argmax())

    def scores(self, mask: Mask) -> Scores | None:
        """Return the total score of each node among the candidates of the mask; None when scoring failed."""
        valuation = self._valuation()
        return None if valuation is None else valuation.total() + self._relative_scores(mask)

    def layers(self) -> list[Sequence[Layer]]:
        """Return what each plugin's filters say about every node."""
        return [layers for _, layers in self._session.screen(self.shape, EVERYWHERE)]

    def error(self, *, within: Mask | None = None, prefix: str = "", ignores_room: bool = False) -> FitError:
        """Say why no node fits: resources first, then the filters of each plugin, first refusing plugin only."""
        asked = np.ones(len(self._allowed), dtype=np.bool_) if within is None else within.copy()
        counts: Counter[str] = Counter()
        total = int(asked.sum())
        short = np.where(asked & (not ignores_room), first_short(self._session.ledger.future, self.request), -1)
        for row, amount in zip(*np.unique(short[short >= 0], return_counts=True), strict=True):
            counts[f"Insufficient {self._session.snapshot.space.names[row]}"] += int(amount)
        final = np.zeros(len(asked), dtype=np.bool_)
        asked &= short < 0
        for layers in self.layers():
            asked, final = _count_layers(layers, asked, final, counts)
        return FitError(total, counts, prefix, final)


def _count_layers(layers: Sequence[Layer], asked: Mask, final: Mask, counts: Counter[str]) -> tuple[Mask, Mask]:
    """Count the refusals of one plugin; nodes it refuses are not asked further."""
    refused = np.zeros(len(asked), dtype=np.bool_)
    for layer in layers:
        hits = layer.refused & asked
        counts.update({layer.reason: int(hits.sum())} if hits.any() else {})
        refused |= hits
        if layer.is_final:
            final = final | hits
            asked = asked & ~hits
    return asked & ~refused, final
