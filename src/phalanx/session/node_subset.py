"""The answer of the hook `node_subsets`: a set of nodes for a part of a gang, and what the trace says about it."""

from dataclasses import dataclass

from phalanx.placement import Mask
from phalanx.session.trace_searches import UNCOUNTED


@dataclass(frozen=True, slots=True, eq=False)
class NodeSubset:
    """Nodes to try. What is for the trace only is empty in a silent session."""

    nodes: Mask
    domain: str = ""
    """The name of the domain that the nodes are, for the trace; empty if they are none."""
    refusal: str = ""
    """Why the domain cannot take the tasks, for the trace: such a set is told, and not tried."""
    room: int = UNCOUNTED
    """How many of the tasks it could take, where that was counted."""
