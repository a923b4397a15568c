"""How the nodes look to a class of tasks that looks at other pods: affinity, anti-affinity, spread.

Nodes look to it as they do to all classes that ask for the same, which one node view keeps up to date node by node, less what
terms about pods refuse, plus what they score. Only the terms are looked at again after every change.

Runs of the class are placed like those of any other class where a place changes nothing but its own node: a class that may only be
alone on each host, or that looks at others than itself. Else the terms follow the run, task by task, on arrays of their own.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from phalanx.model.shape import Shape
from phalanx.placement import NO_LIMIT, Counts, Mask, Scores
from phalanx.placement.fill import NOT_A_CANDIDATE
from phalanx.session.node_answers import CoupledFilter, CoupledScore, Moved, Site, Term
from phalanx.session.node_view import NodeView, Run, Valuation

if TYPE_CHECKING:
    from phalanx.session.session import Session


class CoupledNodeView(NodeView):
    """Feasibility and scores of all nodes for one shape, made from those without other pods."""

    def __init__(self, session: "Session", shape: Shape, apart: NodeView) -> None:
        """Look at every node."""
        self._apart = apart
        super().__init__(session, shape)

    def _look_everywhere(self) -> None:
        self._apart.refresh()
        self._asked_filters: list[CoupledFilter] | None = None
        self._scores: list[CoupledScore] | None = None
        self.is_steady = all(each.is_steady for each in self._filters)
        self._allowed = self._apart.allowed & ~self._refused()
        self._idle_room = np.where(self._allowed, self._apart.room(is_now=True), 0)
        self._future_room = np.where(self._allowed, self._apart.room(is_now=False), 0)
        self._relative = []
        self.scoring_failed = False
        self._position = self._session.ledger.position

    @property
    def _filters(self) -> list[CoupledFilter]:
        if self._asked_filters is None:
            self._asked_filters = self._session.coupled_filters(self.shape)
        return self._asked_filters

    def _refused(self) -> Mask:
        if len(self._filters) == 1:
            return self._filters[0].refused
        refused = np.zeros(len(self._apart.allowed), dtype=np.bool_)
        for each in self._filters:
            refused |= each.refused
        return refused

    def _valuation(self) -> Valuation | None:
        valuation = self._apart._valuation()
        if valuation is None:
            self.scoring_failed = True
        elif self._scores is None:
            self._scores = self._session.coupled_scores(self.shape)
            self._relative = [*self._apart._relative, *(each.term for each in self._scores)]
        return valuation

    def _next_valuation(self, is_now: bool) -> Valuation:
        return self._apart._next_valuation(is_now)

    def value_at(self, site: Site) -> Valuation:
        """Return the scores of a site, other pods aside; scoring is known to work."""
        return self._apart.value_at(site)

    @property
    def relative_terms(self) -> Sequence[Term]:
        """The scores that depend on who else is a candidate; known once something was scored."""
        return self._relative

    @property
    def shard_parts(self) -> Sequence[Mask]:
        """The parts of the cluster, the one to use first before others."""
        return self._session.shard_parts

    @property
    def has_runs(self) -> bool:
        """Tell whether several tasks can be placed in one call."""
        return self._valuation() is not None

    def _room_left(self, run: Run, is_now: bool) -> Counts:
        room = super()._room_left(run, is_now)
        for each in self._filters:
            if each.room is not NO_LIMIT:
                room = np.minimum(room, each.room - run.taken)
        if self._closed_by is not None:
            room[self._refused()] = 0
        return room

    def place(self, count: int, *, within: Mask | None = None, closes: bool = False) -> tuple[list[int], list[int]]:
        """Choose nodes for up to `count` tasks, one after the other.

        With `closes`, a node that refuses one of them is not offered to those after it.
        """
        valuation = self._valuation()
        if count == 1 or valuation is None or self._is_settled:
            return super().place(count, within=within)
        if all(score.is_steady for score in self._scores or ()) and all(each.only_closes for each in self._filters):
            places = self._place_closing(count, within)
        else:
            places = _FollowedRun(self, valuation, within, closes).place(count)
        # The terms have followed a run that may never happen.
        self._asked_filters = self._scores = None
        return places

    def _place_closing(self, count: int, within: Mask | None) -> tuple[list[int], list[int]]:
        """Place a run whose places close nodes to those after them, for good."""
        self._closed_by = self._narrow
        places = super().place(count, within=within)
        self._closed_by = None
        return places

    def _narrow(self, node: int) -> Mask | None:
        return self._refused() if self._follow_filters(node) else None

    def _follow_filters(self, node: int) -> Moved:
        """Let the filters know of a place; tell whether other nodes may be refused now."""
        return max([each.take(node) for each in self._filters], default=Moved.NOTHING)

    @property
    def _is_settled(self) -> bool:
        """Tell whether places for the class change nothing but their own nodes."""
        return all(part.is_steady for part in (*self._filters, *(self._scores or ())))

    def room_for_class(self, *, is_now: bool) -> Counts:
        """Return how many tasks of the class each node can take, whatever terms about pods refuse now."""
        room = self._apart.room(is_now=is_now).copy()
        for each in self._filters:
            np.minimum(room, each.room, out=room)
        return room

    def refused_to_class(self) -> Mask:
        """Mark the nodes that terms about pods refuse, after the places that were followed."""
        return self._refused()

    def follow(self, node: int) -> Moved:
        """Let the terms know of a place for the class that the books do not know yet; tell whether other nodes may be refused."""
        for score in self._scores or ():
            score.take(node)
        return self._follow_filters(node)

    def after_one(self) -> Valuation:
        """Return the scores of all nodes as if each had taken one task of the class, now."""
        return self._next_valuation(True)


class _FollowedRun:
    """Tasks of one class, placed one after the other; what each place changes elsewhere is followed."""

    def __init__(self, node_view: CoupledNodeView, valuation: Valuation, within: Mask | None, closes: bool) -> None:
        self._node_view, self._closes = node_view, closes
        self._idle, self._future = node_view.room_for_class(is_now=True), node_view.room_for_class(is_now=False)
        self._open = np.ones(len(self._idle), dtype=np.bool_) if within is None else within.copy()
        self._run = Run(node_view, len(self._idle))
        self._floats, self._whole = valuation.floats.copy(), valuation.whole.copy()
        self._offer: _Offer | None = None
        """Who the next task can go to; None when that has to be looked at again."""
        self._steps: dict[int, _Steps] = {}
        self._outdated: dict[int, bool] = {}
        """Nodes whose scores are those before their last task, with whether they took it now; scored again when it matters."""

    def place(self, count: int) -> tuple[list[int], list[int]]:
        """Choose nodes for up to `count` tasks: those to take now, those to take later."""
        for left in range(count, 0, -1):
            node = self._next(left)
            if node is None:
                break
            self._take(node)
        return self._run.now, self._run.later

    def _next(self, left: int) -> int | None:
        """Return the node of the next task; None where the run ends."""
        node = None if self._offer is None else self._best(self._offer, left)
        if node is not None:
            return node
        self._offer = self._look()
        # Tasks that start now come first in a run. Where spread lets tasks onto free room again, that is another run.
        if self._offer is None or (self._offer.is_now and self._run.later):
            return None
        return self._best(self._offer, left)

    def _take(self, node: int) -> None:
        offer = self._offer
        assert offer is not None, "the node is one of its candidates"
        is_now = offer.is_now
        self._run.take_one(node, is_now)
        self._outdated[node] = is_now
        self._future[node] -= 1
        self._idle[node] = min(self._idle[node] - is_now, self._future[node])
        is_full = (self._idle if is_now else self._future)[node] <= 0
        moved = self._node_view.follow(node)
        if moved is Moved.OPENS or (offer.is_relative and (moved or is_full)):
            self._offer = None
            return
        if is_full:
            offer.close(node)
        if moved:
            self._narrow(offer)

    def _narrow(self, offer: "_Offer") -> None:
        """Leave out nodes that places have closed; scores that do not depend on who is a candidate stay what they are."""
        refused = self._node_view.refused_to_class()
        offer.close(refused)
        if self._closes:
            self._open &= ~refused

    def _look(self) -> "_Offer | None":
        feasible = (self._future > 0) & ~self._node_view.refused_to_class()
        if self._closes:
            self._open &= feasible
        feasible &= self._open
        for is_now, mask in ((True, feasible & (self._idle > 0)), (False, feasible)):
            for part in self._node_view.shard_parts:
                candidates = mask & part
                if candidates.any():
                    return _Offer(is_now, candidates, self._node_view.relative_terms, self._floats, self._whole)
        return None

    def _best(self, offer: "_Offer", left: int) -> int | None:
        """Return the node with the highest score, the lower number among equals; None if nobody is left."""
        for node in [node for node in self._outdated if offer.mask[node]]:
            self._score_again(node, self._outdated.pop(node), left)
            offer.score(node, self._floats[node], self._whole[node])
        return offer.best()

    def _score_again(self, node: int, is_now: bool, left: int) -> None:
        """Score a node for the next task and, in the same pass, for all that may follow it there."""
        held, taken = int(self._run.held[node]), int(self._run.taken[node])
        if held == taken == 1:
            # Most nodes of a run take one task or two.
            once = self._node_view.after_one()
            self._floats[node], self._whole[node] = once.floats[node], once.whole[node]
            return
        steps = self._steps.get(node)
        if steps is None or not steps.reaches(held, taken):
            count = min(int(self._future[node]), left)
            steps = self._steps[node] = _Steps(self._node_view, node, (held, taken), int(is_now), count)
        self._floats[node], self._whole[node] = steps.floats[taken - steps.taken], steps.whole[taken - steps.taken]


class _Offer:
    """The nodes that one task after the other can choose from, and how they compare with each other."""

    __slots__ = ("_candidates", "_floats", "_moving", "_static", "_whole", "is_now", "is_relative", "mask")

    def __init__(self, is_now: bool, mask: Mask, terms: Sequence[Term], floats: Scores, whole: Counts) -> None:
        self.is_now, self.mask, self._candidates = is_now, mask, np.flatnonzero(mask)
        self.is_relative = bool(terms)
        self._moving = [term for term in terms if not term.is_static]
        self._static = self._sum([term for term in terms if term.is_static])
        self._floats, self._whole = floats[self._candidates], whole[self._candidates] + self._static

    def score(self, node: int, floats: float, whole: int) -> None:
        """Enter the scores that a candidate has now."""
        place = int(self._candidates.searchsorted(node))
        self._floats[place] = floats
        self._whole[place] = whole + (self._static if isinstance(self._static, int) else self._static[place])

    def close(self, nodes: Mask | int) -> None:
        """Leave out some nodes."""
        self.mask[nodes] = False
        self._floats[~self.mask[self._candidates]] = NOT_A_CANDIDATE

    def best(self) -> int | None:
        """Return the candidate with the highest score, the lower number among equals; None if nobody is left."""
        scores = self._floats + (self._whole + self._sum(self._moving))
        place = int(scores.argmax())
        return None if scores[place] == NOT_A_CANDIDATE else int(self._candidates[place])

    def _sum(self, terms: Sequence[Term]) -> Counts | int:
        total: Counts | int = 0
        for number, term in enumerate(terms):
            assert term.among is not None
            part = term.among(self._candidates) * term.weight
            total = total + part if number else part
        return total


class _Steps:
    """The scores of a node as it takes one task after the other, all now or all later."""

    __slots__ = ("_each", "_held", "floats", "taken", "whole")

    def __init__(self, node_view: NodeView, node: int, start: tuple[int, int], each: int, count: int) -> None:
        (self._held, self.taken), self._each = start, each
        more = np.arange(count, dtype=np.int64)
        booked = self.taken + more if node_view.books_are_live else 0
        valuation = node_view.value_at(Site(np.full(count, node, dtype=np.int64), self._held + each * more, booked))
        self.floats, self.whole = valuation.floats, valuation.whole

    def reaches(self, held: int, taken: int) -> bool:
        """Tell whether the scores after so many tasks are among these."""
        step = taken - self.taken
        return 0 <= step < len(self.floats) and held == self._held + step * self._each
