"""Equal tasks of a gang that its network topology draws into the HyperNode where the last of them is, as one run.

Each task is scored against the places that were found before it, so equal tasks have to be placed one after the other. But as long
as they go into one lowest HyperNode (a leaf), and no node drops out of the candidates, these scores are the same on all its nodes,
only rise there, and stay as they are everywhere else. So the nodes are chosen inside the leaf as for tasks without topology, and
compared with the best node outside: where that one is better, or a node is full, the run ends. What it holds until then is what
one task after the other would have got.
"""

import numpy as np

from phalanx.placement import Counts, Index, Mask, Scores
from phalanx.session.node_view import NodeView

NOBODY = -np.inf


def leaf_run(node_view: NodeView, leaf: Mask, count: int, *, candidates: Mask, is_now: bool, extra: Scores) -> list[int]:
    """Return nodes of a leaf for up to `count` tasks; none where the first of them had better go elsewhere.

    `extra` are the scores of the next task besides those of its class; candidates are nodes with room now, or with room later.
    """
    inside, scores = candidates & leaf, node_view.scores(candidates)
    if scores is None or node_view.is_relative or not inside.any():
        return []
    now, later = node_view.place(count, within=inside)
    nodes = np.array(now if is_now else later, dtype=np.int64)
    turns = _turns(nodes)
    total = node_view.scores_in_turn(nodes, turns, is_now=is_now) + extra[nodes]
    stays = _is_better(total, nodes, np.where(candidates & ~leaf, scores + extra, NOBODY))
    fills = turns + 1 == node_view.room(is_now=is_now)[nodes]
    end = min(_first(~stays), _first(fills) + 1)
    return [int(node) for node in nodes[:end]]


def _turns(nodes: Index) -> Counts:
    """Return for each place how many before it are on the same node."""
    seen: dict[int, int] = {}
    turns = []
    for node in nodes.tolist():
        turns.append(seen.get(node, 0))
        seen[node] = turns[-1] + 1
    return np.array(turns, dtype=np.int64)


def _is_better(total: Scores, nodes: Index, outside: Scores) -> Mask:
    """Tell which places are better than the best node outside; among equals the lower number is."""
    rival = int(outside.argmax())
    return np.asarray((total > outside[rival]) | ((total == outside[rival]) & (nodes < rival)))


def _first(marks: Mask) -> int:
    """Return the first place that is marked, or how many there are."""
    return int(marks.argmax()) if marks.any() else len(marks)
