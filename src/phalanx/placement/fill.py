"""Place a run of identical tasks, one after the other, each on the node that scores best at that moment.

The score of a node changes only when it takes a task, so a run costs one look for the highest score per task, and one
evaluation per node that takes more than one; not one evaluation of all nodes per task. For the same reason a run of n tasks
stays among the n nodes that score highest before it, and looks at no others: it costs a scan of all nodes once, not n times.

Scores after one task are there for all nodes at once: when tasks are spread most nodes take one. Scores after more are
evaluated when a node gets its second task, all that it may need in one call, and in the same call for the nodes that are likely
to be next: a call costs the same for one node as for some.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from phalanx.placement import Counts, Index, Mask, Scores

NOT_A_CANDIDATE = -np.inf
LEAST_TASKS, NODES_PER_TASK = 64, 4
"""A run of fewer tasks, or on fewer nodes for each of them, looks at all nodes: to find the best ones first would take longer."""
MOST_NODES, MOST_SCORES = 16, 2048
"""How far one evaluation of scores goes: so many nodes, and about so many scores."""


@dataclass(slots=True)
class Candidates:
    """The nodes a class of tasks may go to, and what they score before and after the next task."""

    scores: Scores
    """Now; nodes that are out hold `NOT_A_CANDIDATE`. `fill` may change them."""
    after_one: Scores
    """The score once the node has taken one more task."""
    room: Counts
    """How many tasks each node can take."""
    after: Callable[[Index, Counts], Scores]
    """Given nodes and beside each a number of tasks: the score of the node once it has taken so many."""
    closed_by: Callable[[int], Mask | None] | None = None
    """Told the node of each task: which nodes take none after it; None where that has not changed."""


def fill(candidates: Candidates, count: int, *, stops_when_full: bool = False) -> Index:
    """Return the node of each task, at most `count`; fewer when no node has room left.

    Equal scores go to the lower node number. With `stops_when_full` the run ends as soon as a node has no room left or is closed,
    for scores that depend on which nodes are candidates.
    """
    if count < LEAST_TASKS or len(candidates.scores) < NODES_PER_TASK * count or candidates.closed_by is not None:
        return fill_among_all(candidates, count, stops_when_full=stops_when_full)
    nodes = _highest(candidates.scores, count)
    part = Candidates(
        candidates.scores[nodes], candidates.after_one[nodes], candidates.room[nodes],
        lambda places, turns: candidates.after(nodes[places], turns),
    )  # fmt: skip
    return nodes[fill_among_all(part, count, stops_when_full=stops_when_full)]


def _highest(scores: Scores, count: int) -> Index:
    """Return the numbers of the `count` nodes that score highest, of equal ones the lower numbers, in the order of numbers."""
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    above = np.flatnonzero(scores > least)
    equal = np.flatnonzero(scores == least)[: count - len(above)]
    return np.sort(np.concatenate((above, equal)))


def fill_among_all(candidates: Candidates, count: int, *, stops_when_full: bool) -> Index:
    """Return the same by looking at all nodes for every task."""
    chosen: list[int] = []
    taken: dict[int, int] = {}
    ahead: dict[int, list[float]] = {}
    scores, room = candidates.scores, candidates.room
    is_over = False
    while len(chosen) < count and not is_over:
        # Of 1,000 nodes a scan takes 1 microsecond. A heap takes 0.8 per task, but 170 to build.
        node = int(scores.argmax())
        if scores[node] == NOT_A_CANDIDATE:
            break
        chosen.append(node)
        taken[node] = tasks = taken.get(node, 0) + 1
        if tasks >= room[node]:
            scores[node] = NOT_A_CANDIDATE
            is_over = stops_when_full
        elif tasks == 1:
            scores[node] = candidates.after_one[node]
        else:
            if node not in ahead:
                ahead.update(_look_ahead(candidates, node, known=ahead, left=count - len(chosen)))
            scores[node] = ahead[node].pop()
        closed = candidates.closed_by(node) if candidates.closed_by is not None else None
        if closed is not None:
            scores[closed] = NOT_A_CANDIDATE
            is_over = stops_when_full
    return np.array(chosen, dtype=np.int64)


def _look_ahead(candidates: Candidates, node: int, *, known: Mapping[int, object], left: int) -> dict[int, list[float]]:
    """Return the scores after two and more tasks of a node that has taken two, and of some that may follow; the next one last."""
    nodes = np.array([node, *_best(candidates.scores, known, min(left, MOST_NODES) - 1, but=node)], dtype=np.int64)
    last = np.minimum(candidates.room[nodes], left + 2)
    sizes = np.maximum(last - 1, 0)
    few = max(int((sizes.cumsum() <= MOST_SCORES).sum()), 1)
    nodes, sizes = nodes[:few], sizes[:few]
    turns = np.concatenate([np.arange(2, size + 2, dtype=np.int64) for size in sizes.tolist()])
    scores = candidates.after(nodes.repeat(sizes), turns)
    parts = np.split(scores[::-1], sizes[::-1].cumsum()[:-1])
    return {place: part.tolist() for place, part in zip(reversed(nodes.tolist()), parts, strict=True)}


def _best(scores: Scores, known: Mapping[int, object], count: int, *, but: int) -> list[int]:
    """Return the nodes that score highest but one; those whose scores are known need no evaluation and are left out."""
    rest, found = scores.copy(), list[int]()
    rest[but] = NOT_A_CANDIDATE
    for _ in range(count):
        node = int(rest.argmax())
        if rest[node] == NOT_A_CANDIDATE:
            break
        rest[node] = NOT_A_CANDIDATE
        if node not in known:
            found.append(node)
    return found
