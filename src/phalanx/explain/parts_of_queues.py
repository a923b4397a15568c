"""Node groups: which nodes are kept from a queue, by the group that they are in."""

from collections.abc import Iterator

import numpy as np

from phalanx.explain.cause import Part, Search, verb
from phalanx.placement import Mask
from phalanx.plugins.nodegroup import LABEL

MOST_NAMED = 3


def node_group_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the groups of the nodes, and those that the queue may use."""
    table = search.snapshot.nodes
    names = sorted({table.nodes[number].labels.get(LABEL, "") for number in np.flatnonzero(nodes).tolist()} - {""})
    groups = _listed(names) if names else "no node group"
    yield Part(nodes, f"{verb(int(nodes.sum()), 'is', 'are')} in {groups} ({_rule(search)})", groups)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"node group{'s' if len(names) > 1 else ''} {', '.join(map(repr, names[:MOST_NAMED]))}{more}"


def _rule(search: Search) -> str:
    """Say what the queue asks for."""
    name = search.task.gang.gang.queue
    queue = search.snapshot.queues.get(name)
    groups = queue.node_groups if queue is not None else None
    if groups is None or not (groups.required or groups.preferred):
        return f"queue {name!r} names none"
    return f"queue {name!r} may use {' and '.join(map(repr, dict.fromkeys((*groups.required, *groups.preferred))))}"
