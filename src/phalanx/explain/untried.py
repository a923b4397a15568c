"""Why no node takes a task that was not tried, since its queue may have no more of a resource than the whole cluster has.

Nodes that labels, taints or a cordon close to it come first: of these more room would not help.
"""

import numpy as np

from phalanx.kubernetes.nodeselection import matching_nodes, selector_mask
from phalanx.kubernetes.taints import closed_by_cordon, closed_by_taint
from phalanx.model.shape import Shape
from phalanx.placement import Mask
from phalanx.state.node_table import NodeTable
from phalanx.state.verdict import FitError, insufficient

CORDONED, WRONG_NODE = "node(s) were unschedulable", "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"


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
    allowed = selector_mask(shape.node_selector, table)
    if shape.node_terms is not None:
        allowed = allowed & matching_nodes(shape.node_terms, table)
    return {CORDONED: closed_by_cordon(shape, table), WRONG_NODE: ~allowed, TAINTED: closed_by_taint(shape, table)}
