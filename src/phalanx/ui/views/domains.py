"""How nodes are divided: network domains of HyperNodes, topologies and labels, the widest first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from phalanx.placement import Index
from phalanx.state.hypernodes import HyperTree
from phalanx.state.node_table import NodeTable
from phalanx.state.snapshot import Snapshot

WIDTHS = ("region", "datacenter", "zone", "superpod", "block", "row", "rack", "switch")
"""What the last part of a label is called that divides nodes by where they are, the widest first."""


@dataclass(frozen=True, slots=True)
class DomainLevel:
    """One way to divide the nodes."""

    key: str
    """A label, or ``hypernode/TIER``."""
    title: str
    names: Sequence[str]
    of: Index
    """The number of each node's domain; -1 for a node in none."""


def levels(snapshot: Snapshot) -> list[DomainLevel]:
    """Return the levels of a cluster: those of HyperNodes, those of topologies, and labels that say where a node is."""
    found = [*_tiers(snapshot.hypernodes, len(snapshot.nodes)), *_labels(snapshot)]
    return [level for level in found if level.names]


def _tiers(tree: HyperTree, nodes: int) -> Iterator[DomainLevel]:
    """Yield a level for each tier; a node that two HyperNodes of a tier hold is shown in the first."""
    for tier in sorted({hypernode.tier for hypernode in tree.hypernodes}, reverse=True):
        numbers = [number for number in range(tree.top) if tree.tiers[number] == tier]
        of = np.full(nodes, -1, dtype=np.int64)
        for place, number in reversed(list(enumerate(numbers))):
            of[tree.members[number]] = place
        title = next((item.tier_name for item in tree.hypernodes if item.tier == tier and item.tier_name), "")
        yield DomainLevel(
            f"hypernode/{tier}", title or f"HyperNodes of tier {tier}", [tree.names[number] for number in numbers], of
        )


def _labels(snapshot: Snapshot) -> Iterator[DomainLevel]:
    trees = [key for tree in snapshot.surroundings.label_trees.values() for key in tree.levels]
    wanted = [gang.label for gang in snapshot.gangs.values() if gang.label]
    for key in dict.fromkeys([*trees, *location_labels(snapshot.nodes), *sorted(set(wanted))]):
        column = snapshot.nodes.label(key)
        if column.values and not column.is_unique:
            yield DomainLevel(key, key, column.values, column.codes)


@lru_cache(maxsize=8)
def location_labels(nodes: NodeTable) -> tuple[str, ...]:
    """Return the labels that say where nodes are, the widest first."""
    keys = {key for node in nodes.nodes for key in node.labels}
    found = [(WIDTHS.index(word), key) for key in keys if (word := key.rpartition("/")[2].lower()) in WIDTHS]
    return tuple(key for _, key in sorted(found))


def path_of(snapshot: Snapshot, node: int) -> list[tuple[str, str]]:
    """Return the domains of a node with the titles of their levels, the widest first."""
    return [(level.title, level.names[level.of[node]]) for level in levels(snapshot) if level.of[node] >= 0]
