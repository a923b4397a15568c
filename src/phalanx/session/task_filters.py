"""Filters of one task or gang alone: what its queue or its gang says about nodes, beyond what its shape says.

A node view is shared by all tasks of a shape, so it knows nothing of these. The actions ask for them where they choose a node.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phalanx.placement import Index, Mask
from phalanx.session.node_answers import Layer
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState

NO_NODES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class OwnFilters:
    """The answers about some nodes; all other nodes pass."""

    layers: Sequence[Sequence[Layer]] = ()
    """One entry per plugin, over all nodes."""

    def narrow(self, within: Mask | None) -> Mask | None:
        """Leave out the nodes that are refused; None stays None when nobody has a say."""
        for layers in self.layers:
            for layer in layers:
                within = ~layer.refused if within is None else within & ~layer.refused
        return within


NOTHING = OwnFilters()


def own_filters(session: Session, task: TaskState, among: Mask) -> OwnFilters:
    """Ask about the marked nodes."""
    if not has_own_filters(session, task):
        return NOTHING
    nodes = np.flatnonzero(among)
    parts = session.task_screen(task, nodes)
    return OwnFilters([[_over_all(layer, nodes, len(among)) for layer in layers] for layers in parts])


def has_own_filters(session: Session, task: TaskState) -> bool:
    """Tell whether some plugin filters nodes for this very task."""
    return bool(session.task_screen(task, NO_NODES))


def offers(session: Session, gang: GangState, nodes: Mask) -> list[Mask]:
    """Return the nodes to place a gang on, in the order of trying: without those that it avoids, then all."""
    avoided = session.avoided_nodes(gang)
    return [nodes] if avoided is None else [nodes & ~avoided, nodes]


def _over_all(layer: Layer, nodes: Index, count: int) -> Layer:
    refused = np.zeros(count, dtype=np.bool_)
    refused[nodes] = layer.refused
    return replace(layer, refused=refused)
