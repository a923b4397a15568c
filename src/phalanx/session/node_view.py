"""How the nodes look to one class of tasks: which may take one, how many, and what they score.

A node view is made once per shape and session and kept up to date: when nodes changed, only those are looked at again. That
holds for shapes whose placement matters to the next one only on the node that took it; for all others (affinity, spread,
ports, volumes, claims) everything is looked at again after every change.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from phalanx.model.shape import Shape
from phalanx.placement import Counts, Index, Mask, Scores
from phalanx.placement.fill import NOT_A_CANDIDATE, Candidates, fill
from phalanx.placement.fit import copies, first_short
from phalanx.session.node_answers import Layer, Site, Term
from phalanx.session.node_plan import NodePlan
from phalanx.session.score_steps import ScoreSteps
from phalanx.state.verdict import WHOLE_CLUSTER, FitError, SearchScope, insufficient

if TYPE_CHECKING:
    from phalanx.session.session import Session

EVERYWHERE = slice(None)


@dataclass(slots=True)
class Valuation:
    """Scores of some nodes, the parts that do not depend on the candidates."""

    floats: Scores
    whole: Counts

    def total(self, relative: Counts | int = 0) -> Scores:
        """Add the parts up: whole numbers first, so that equal totals are equal to the last bit."""
        return self.floats + (self.whole + relative).astype(np.float64)


class NodeView:
    """Feasibility and scores of all nodes for one shape."""

    def __init__(self, session: "Session", shape: Shape) -> None:
        """Look at every node."""
        self._session, self.shape = session, shape
        self.request = session.request_of(shape)
        self.is_local = session.is_local(shape)
        self.is_steady = self.is_local
        """A place for a task of the shape changes nothing but the node that took it, as long as no others are placed."""
        self._closed_by: Callable[[int], Mask | None] | None = None
        """While a run is placed that closes nodes to itself: told each of its nodes."""
        self._last_error: tuple[tuple[int, bool], FitError] | None = None
        self._plan = NodePlan(session)
        """Places for tasks that follow each other."""
        self._look_everywhere()

    def _look_everywhere(self) -> None:
        count = len(self._session.snapshot.nodes)
        self._allowed: Mask = np.ones(count, dtype=np.bool_)
        self._idle_room = np.zeros(count, dtype=np.int64)
        self._future_room = np.zeros(count, dtype=np.int64)
        self._now: Valuation | None = None
        self._after_one: Valuation | None = None
        self._after_position = -1
        self._steps: ScoreSteps | None = None
        """Scores to come, once nodes were scored again."""
        self._own: list[tuple[Index | int, Counts | int]] = []
        """The nodes that took tasks of the class since the last look, with their number."""
        self._relative: list[Term] = []
        self.scoring_failed = False
        self._look_at(EVERYWHERE)
        self._position = self._session.ledger.position

    @property
    def feasible(self) -> Mask:
        """Mark the nodes that can take a task, now or later."""
        return self._future_room > 0

    @property
    def allowed(self) -> Mask:
        """Mark the nodes that the filters let a task onto, room aside."""
        return self._allowed

    def room_in(self, nodes: Mask) -> int:
        """Return how many tasks these nodes can take together, now or later."""
        return int(self._future_room[nodes].sum())

    def allows(self, node: int) -> bool:
        """Tell whether the filters let a task onto the node, room aside."""
        return bool(self._allowed[node])

    def refresh(self) -> None:
        """Bring the node view up to date with the books."""
        ledger = self._session.ledger
        if ledger.position == self._position:
            return
        if not self.is_local or ledger.changes_since(self._position) > len(self._allowed):
            self._look_everywhere()
            return
        touched = ledger.touched_since(self._position)
        is_own = self._follow_own(touched)
        if not is_own.all():
            self._look_at(touched[~is_own])
        if self._now is not None:
            self._value_again(touched)
        self._position = ledger.position
        self._own.clear()

    def take(self, nodes: Index | int, counts: Counts | int) -> None:
        """Learn that nodes have taken tasks of the class, each named once; a negative count takes them back."""
        self._own.append((nodes, counts))

    def _follow_own(self, touched: Index) -> Mask:
        """Follow tasks of the class onto nodes; mark those of the touched ones that need no other look.

        Where nothing else has happened, a node has room for so many tasks less, and its scores to come are known, as in one run.
        Only where none is left it is looked at, for what its filters say then.
        """
        changes, taken = np.zeros(len(self._allowed), dtype=np.int64), np.zeros(len(self._allowed), dtype=np.int64)
        for nodes, counts in self._own:
            changes[nodes] += 1
            taken[nodes] += counts
        is_own: Mask = changes[touched] == self._session.ledger.changes_of(touched, self._position)
        if self._now is not None:
            self._follow_steps(touched, taken, is_own)
        own = touched[is_own]
        has_room = (self._idle_room[own] > 0) & (self._idle_room[own] > taken[own]) & (self._future_room[own] > taken[own])
        self._idle_room[own] -= taken[own]
        self._future_room[own] -= taken[own]
        is_own[is_own] = has_room
        return is_own

    def _follow_steps(self, touched: Index, taken: Counts, is_own: Mask) -> None:
        """Keep the scores to come of nodes where only tasks of the class came or went."""
        if self._steps is None:
            self._steps = ScoreSteps(self._ask_value, len(self._allowed), is_live=self._session.books_are_live)
            return
        self._steps.take(touched, taken[touched])
        self._steps.forget(touched[~is_own])

    def _value_again(self, touched: Index) -> None:
        """Score nodes again; the scores after one more task too, if they are in use, in the same pass."""
        assert self._now is not None
        if self._after_one is None or self._after_position != self._position:
            fresh = self.value_at(Site(touched))
            self._now.floats[touched], self._now.whole[touched] = fresh.floats, fresh.whole
            return
        half = len(touched)
        more = np.zeros(2 * half, dtype=np.int64)
        more[half:] = 1
        both = self.value_at(Site(np.concatenate((touched, touched)), more, more if self._session.books_are_live else 0))
        self._now.floats[touched], self._now.whole[touched] = both.floats[:half], both.whole[:half]
        self._after_one.floats[touched], self._after_one.whole[touched] = both.floats[half:], both.whole[half:]
        self._after_position = self._session.ledger.position

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
        for waits in session.node_waits(self.shape):
            self._idle_room[waits] = 0

    def groups(self, *, within: Mask | None = None) -> list[tuple[bool, Mask]]:
        """Return the nodes that can take a task as groups, best first; true beside a group means: now, not once others left.

        Nodes with room now come before nodes with room later, the own shard before others in soft sharding.
        """
        idle, future = self._idle_room > 0, self._future_room > 0
        if within is not None:
            idle, future = idle & within, future & within
        return [(now, mask & part) for now, mask in ((True, idle), (False, future)) for part in self._session.shard_parts]

    def place(self, count: int, *, within: Mask | None = None, closes: bool = False) -> tuple[list[int], list[int]]:
        """Choose nodes for up to `count` tasks, one after the other: those with room now first, then those with room later.

        With `closes`, a node that refuses one of them is not offered to those after it; it would refuse them too, here.
        """
        run = Run(self, len(self._allowed))
        self._place_all(count, within, run)
        return run.now, run.later

    def place_next(self, count: int) -> tuple[list[int], list[int]]:
        """Choose nodes as `place` does on all nodes; tasks of the class that follow each other share one look at them."""
        return self._plan.place(self, count)

    def planned(self, count: int) -> list[int] | None:
        """Return the nodes that `place_next` would choose, all of them with room now, if that needs no look; else None."""
        return self._plan.known(count)

    def _place_all(self, count: int, within: Mask | None, run: "Run") -> None:
        """Choose nodes for the rest of a run, so that it has up to `count` tasks."""
        for is_now, mask in self.groups(within=within):
            missing = count - len(run.now) - len(run.later)
            if missing:
                room = self._room_left(run, is_now)
                self._place_in(mask & (room > 0), room, missing, is_now, run)

    def _room_left(self, run: "Run", is_now: bool) -> Counts:
        later: Counts = self._future_room - run.taken
        return np.minimum(later, self._idle_room - run.held, out=later) if is_now else later

    def _refused(self) -> Mask:
        """Mark the nodes that places of a run have closed."""
        return ~self._allowed

    def _place_in(self, mask: Mask, room: Counts, count: int, is_now: bool, run: "Run") -> None:
        while count > 0 and mask.any():
            if count == 1 and not run.taken.any():
                node = self.best(mask)
                part = np.array([] if node is None else [node], dtype=np.int64)
            else:
                part = self._fill(mask, room, count, is_now, run)
            if not part.size:
                return
            run.take(part, is_now)
            count -= len(part)
            np.subtract.at(room, part, 1)
            mask &= room > 0
            if self._closed_by is not None:
                mask &= ~self._refused()

    def _fill(self, mask: Mask, room: Counts, count: int, is_now: bool, run: "Run") -> Index:
        """Place a run; a relative score ends it when a node drops out of the candidates."""
        if int(mask.sum()) == 1 and self._closed_by is None:
            return np.full(min(count, int(room[mask][0])), int(np.flatnonzero(mask)[0]), dtype=np.int64)
        valuation = self._valuation()
        if valuation is None:
            return np.zeros(0, dtype=np.int64)
        relative = self._relative_scores(mask)
        touched = np.flatnonzero(run.taken)
        scores = run.overlay(valuation.total(relative), touched, 0, is_now, relative)
        after_one = run.overlay(self._next_valuation(is_now).total(relative), touched, 1, is_now, relative)
        candidates = Candidates(
            np.where(mask, scores, NOT_A_CANDIDATE), after_one, room,
            lambda nodes, turns: run.after(nodes, turns, is_now, relative[nodes]), self._closed_by,
        )  # fmt: skip
        return fill(candidates, count, stops_when_full=bool(self._relative))

    def _next_valuation(self, is_now: bool) -> Valuation:
        if not is_now:
            return self.value_at(Site(EVERYWHERE, 0, int(self._session.books_are_live)))
        if self._after_one is None or self._after_position != self._position:
            self._after_one = self.value_at(Site(EVERYWHERE, 1, int(self._session.books_are_live)))
            self._after_position = self._position
        return self._after_one

    def value_at(self, site: Site) -> Valuation:
        """Return the scores of a site; scoring is known to work."""
        known = None if self._steps is None else self._steps.at(site, self._future_room)
        return self._ask_value(site) if known is None else Valuation(*known)

    def _ask_value(self, site: Site) -> Valuation:
        valuation, _ = self._session.value(self.shape, site)
        assert valuation is not None
        return valuation

    @property
    def has_runs(self) -> bool:
        """Tell whether several tasks can be placed in one call."""
        return self.is_local

    @property
    def books_are_live(self) -> bool:
        """Tell whether placements count in the book of Kubernetes' scores."""
        return self._session.books_are_live

    def _valuation(self) -> Valuation | None:
        if self._now is None and not self.scoring_failed:
            self._now, self._relative = self._session.value(self.shape, Site(EVERYWHERE))
            self.scoring_failed = self._now is None
        return self._now

    @property
    def can_score(self) -> bool:
        """Tell whether the scores of nodes are known, so that every place with room is found."""
        return self._valuation() is not None

    @property
    def is_relative(self) -> bool:
        """Tell whether scores depend on who else is a candidate; known once something was scored."""
        return bool(self._relative)

    def room(self, *, is_now: bool) -> Counts:
        """Return how many tasks each node can take, now or later."""
        return self._idle_room if is_now else self._future_room

    def scores_in_turn(self, nodes: Index, turns: Counts, *, is_now: bool) -> Scores:
        """Return the scores of places that are taken one after the other; `turns` says how many before are on the same node."""
        booked = turns if self._session.books_are_live else 0
        return self.value_at(Site(nodes, turns if is_now else 0, booked)).total()

    def _relative_scores(self, mask: Mask) -> Counts:
        scores = np.zeros(len(mask), dtype=np.int64)
        if self._relative:
            candidates = np.flatnonzero(mask)
            for term in self._relative:
                assert term.among is not None
                scores[candidates] += term.among(candidates) * term.weight
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
        return None if valuation is None else valuation.total(self._relative_scores(mask))

    def layers(self) -> list[Sequence[Layer]]:
        """Return what each plugin's filters say about every node."""
        return [layers for _, layers in self._session.screen(self.shape, EVERYWHERE)]

    def error(
        self,
        *,
        within: Mask | None = None,
        scope: SearchScope = WHOLE_CLUSTER,
        ignores_room: bool = False,
        own: Sequence[Sequence[Layer]] = (),
    ) -> FitError:
        """Say why no node fits: filters that no eviction changes first, then resources, then the other filters.

        In this order a node with the wrong labels counts as such whether or not it is full, as in kube-scheduler, so the sentence
        does not change with load that has nothing to do with the task. `own` are the filters of one task alone; they come last.

        That a node refuses for good is only remembered of nodes with room, the only ones whose filters Volcano asks.
        """
        if within is not None or scope is not WHOLE_CLUSTER or own:
            return self._error(within, scope, own, ignores_room=ignores_room)
        # In a full cluster gang after gang with the same request gets the same answer.
        seen = (self._session.ledger.position, ignores_room)
        if self._last_error is None or self._last_error[0] != seen:
            self._last_error = (seen, self._error(None, scope, (), ignores_room=ignores_room))
        return self._last_error[1]

    def _error(
        self, within: Mask | None, scope: SearchScope, own: Sequence[Sequence[Layer]], *, ignores_room: bool
    ) -> FitError:  # fmt: skip
        counts: Counter[str] = Counter()
        masks: dict[str, Mask] = {}
        final = np.zeros(len(self._allowed), dtype=np.bool_)
        for reason, refused, is_final in self._refusals(within, ignores_room=ignores_room, own=own):
            counts[reason] += int(refused.sum())
            masks[reason] = masks[reason] | refused if reason in masks else refused
            final |= refused & is_final
        if not ignores_room and final.any():
            final &= first_short(self._session.ledger.future, self.request) < 0
        return FitError(len(final) if within is None else int(within.sum()), counts, scope, final, refused=masks)

    def refused_nodes(self, *, within: Mask | None = None) -> dict[str, list[int]]:
        """Return the nodes that `error` counts, by reason, for a record of the session."""
        found: dict[str, list[int]] = {}
        for reason, refused, _ in self._refusals(within):
            found.setdefault(reason, []).extend(np.flatnonzero(refused).tolist())
        return found

    def _refusals(
        self, within: Mask | None, *, ignores_room: bool = False, own: Sequence[Sequence[Layer]] = ()
    ) -> Iterator[tuple[str, Mask, bool]]:
        """Yield each reason with the nodes that give it, and whether no eviction helps there."""
        asked = np.ones(len(self._allowed), dtype=np.bool_) if within is None else within.copy()
        layers = [*self.layers(), *own]
        for layer in chain.from_iterable(layers):
            if layer.is_final and (hits := layer.refused & asked).any():
                yield layer.reason, hits, True
                asked &= ~hits
        short = np.where(asked & (not ignores_room), first_short(self._session.ledger.future, self.request), -1)
        for row in np.unique(short[short >= 0]):
            yield insufficient(self._session.snapshot.space.names[row]), short == row, False
        yield from _passing_refusals(layers, asked & (short < 0))


def _passing_refusals(layers: Sequence[Sequence[Layer]], asked: Mask) -> Iterator[tuple[str, Mask, bool]]:
    """Yield the reasons that evictions could change; of each node, those of the first plugin that refuses it."""
    for plugin in layers:
        refused = np.zeros(len(asked), dtype=np.bool_)
        for layer in plugin:
            if not layer.is_final and (hits := layer.refused & asked).any():
                yield layer.reason, hits, False
                refused |= hits
        asked = asked & ~refused


class Run:
    """The places chosen so far in one call, which the books do not know yet."""

    def __init__(self, node_view: NodeView, nodes: int) -> None:
        self._node_view = node_view
        self.now: list[int] = []
        self.later: list[int] = []
        self.held = np.zeros(nodes, dtype=np.int64)
        """How many of its tasks each node takes now."""
        self.taken = np.zeros(nodes, dtype=np.int64)

    def take(self, nodes: Index, is_now: bool) -> None:
        (self.now if is_now else self.later).extend(nodes.tolist())
        np.add.at(self.taken, nodes, 1)
        if is_now:
            np.add.at(self.held, nodes, 1)

    def take_one(self, node: int, is_now: bool) -> None:
        (self.now if is_now else self.later).append(node)
        self.taken[node] += 1
        self.held[node] += is_now

    def overlay(self, scores: Scores, touched: Index, more: int, is_now: bool, relative: Counts) -> Scores:
        """Correct scores where places were chosen already, as if `more` tasks came on top."""
        if touched.size:
            scores[touched] = self._node_view.value_at(self._site(touched, more, is_now)).total(relative[touched])
        return scores

    def after(self, nodes: Index, more: Counts, is_now: bool, relative: Counts) -> Scores:
        """Return the score of each node after so many more tasks."""
        return self._node_view.value_at(self._site(nodes, more, is_now)).total(relative)

    def _site(self, nodes: Index, more: Counts | int, is_now: bool) -> Site:
        booked = self.taken[nodes] + more if self._node_view.books_are_live else 0
        return Site(nodes, self.held[nodes] + (more if is_now else 0), booked)
