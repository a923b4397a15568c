"""Why no node takes a task that was not tried, since its queue may have no more of a resource than the whole cluster has.

Nodes that labels, taints or a cordon close to it come first: of these more room would not help.
"""

import numpy as np

from phalanx.kubernetes.nodeselection import allowed_nodes
from phalanx.kubernetes.taints import closed_by_cordon, closed_by_taint
from phalanx.model.shape import Shape
from phalanx.placement import Mask
from phalanx.plugins.predicates import CORDONED, TAINTED, WRONG_NODE
from phalanx.state.node_table import NodeTable
from phalanx.state.verdict import FitError, insufficient


def untried_error(shape: Shape, resource: str, table: NodeTable) -> FitError:
    """Return how many nodes are closed to such a task, and that the others have too little of the resource."""
    left, refused = np.ones(len(table), dtype=np.bool_), dict[str, Mask]()
    for reason, mask in (*_closed(shape, table).items(), (insufficient(resource), left)):
        found = mask & left
        if found.any():
            refused[reason] = found
        left = left & ~found
    return FitError(len(table), {reason: int(mask.sum()) for reason, mask in refused.items()}, refused=refused)


def closed_nodes(error: FitError) -> bool:
    """Tell whether some nodes are closed to the task, whatever room they have."""
    return any(reason in (CORDONED, WRONG_NODE, TAINTED) for reason in error.counts)


def _closed(shape: Shape, table: NodeTable) -> dict[str, Mask]:
    wrong = ~allowed_nodes(shape, table)
    return {CORDONED: closed_by_cordon(shape, table), WRONG_NODE: wrong, TAINTED: closed_by_taint(shape, table)}
