"""The scores of nodes as they take one task of a class after the other, kept from gang to gang.

Asking plugins to score a handful of nodes takes as long as asking for a hundred scores. Where gangs of a class follow each other,
most go to nodes that have just taken one like them. So a node that has to be scored again is scored for all tasks of the class that
it has room for, and as long as nothing else happens on it, its next scores are known: to score a node as if it had taken some tasks
is to score it after it has taken them, as for the tasks of one run. Whatever else changes on a node makes its scores unknown.

The others go to nodes that nobody has scored yet. The more often nodes have to be scored, the more others are scored with them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from phalanx.placement import Counts, Index, Scores
from phalanx.session.node_answers import Site

if TYPE_CHECKING:
    from phalanx.session.node_view import Valuation

MOST_STEPS, MOST_SCORES = 32, 4096
"""How far scores are asked for at once: for so many tasks on a node, and about so many scores."""


class ScoreSteps:
    """Scores of some nodes after each number of tasks of one class."""

    def __init__(self, ask: Callable[[Site], "Valuation"], nodes: int, *, is_live: bool) -> None:
        """Start without scores; in live books tasks of this session count for Kubernetes' scores too."""
        self._ask, self._is_live = ask, is_live
        self._known: Counts = np.zeros(nodes, dtype=np.int64)
        """By node: how many of its scores are known."""
        self._taken: Counts = np.zeros(nodes, dtype=np.int64)
        """By node: how many tasks of the class it has taken since it was scored."""
        self._ahead = 0
        """How many nodes to score besides those that are asked for."""
        # Nobody writes to most of these rows, and what nobody writes to takes no memory.
        self._floats: Scores = np.empty((nodes, MOST_STEPS))
        self._whole: Counts = np.empty((nodes, MOST_STEPS), dtype=np.int64)

    def take(self, nodes: Index | int, counts: Counts | int) -> None:
        """Follow tasks of the class onto nodes, each named once."""
        self._taken[nodes] += counts

    def forget(self, nodes: Index) -> None:
        """Drop the scores of nodes where something else has happened."""
        self._known[nodes] = 0

    def at(self, site: Site, room: Counts) -> tuple[Scores, Counts] | None:
        """Return the scores of a site, asked for only where they are not known; None where they cannot be found here.

        `room` is how many tasks of the class each node can take.
        """
        nodes = site.nodes
        if isinstance(nodes, slice) or not self._counts_alike(site):
            return None
        self._learn(nodes[self._known[nodes] == 0], room)
        turns = self._taken[nodes] + site.extra
        if not ((turns >= 0) & (turns < self._known[nodes])).all():
            return None
        return self._floats[nodes, turns], self._whole[nodes, turns]

    def _counts_alike(self, site: Site) -> bool:
        """Tell whether all tasks that a site is scored after are on their nodes now, and none is to come later."""
        return site.extra is site.extra_booked or not self._is_live or np.array_equal(site.extra, site.extra_booked)

    def _learn(self, unknown: Index, room: Counts) -> None:
        """Ask for the scores of nodes after each of the tasks that they have room for, and one more."""
        if not unknown.size:
            return
        nodes = self._with_others(np.unique(unknown), room)
        sizes = np.minimum(room[nodes] + 2, max(min(MOST_STEPS, MOST_SCORES // len(nodes)), 2))
        turns = np.arange(int(sizes.sum()), dtype=np.int64) - np.repeat(sizes.cumsum() - sizes, sizes)
        each = nodes.repeat(sizes)
        valuation = self._ask(Site(each, turns, turns if self._is_live else 0))
        self._floats[each, turns], self._whole[each, turns] = valuation.floats, valuation.whole
        self._known[nodes], self._taken[nodes] = sizes, 0

    def _with_others(self, nodes: Index, room: Counts) -> Index:
        """Add nodes with room that are as unknown, and next time twice as many."""
        most, self._ahead = self._ahead, min(2 * max(self._ahead, len(nodes)), MOST_SCORES // MOST_STEPS)
        if not most:
            return nodes
        is_other = (self._known == 0) & (room > 0)
        is_other[nodes] = False
        return np.concatenate((nodes, np.flatnonzero(is_other)[:most]))
