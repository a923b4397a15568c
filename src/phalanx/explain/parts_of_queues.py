"""Node groups: which nodes are kept from a queue, by the group that they are in."""

from collections.abc import Iterator

import numpy as np

from phalanx.explain.cause import Part, Search, verb
from phalanx.placement import Mask
from phalanx.plugins.nodegroup import LABEL


def node_group_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the groups of the nodes, and those that the queue may use."""
    table = search.snapshot.nodes
    groups = np.array([node.labels.get(LABEL, "") for node in table.nodes], dtype=object)
    for name in sorted(set(groups[nodes].tolist())):
        part = nodes & (groups == name)
        where = f"in node group {name!r}" if name else "in no node group"
        yield Part(part, f"{verb(int(part.sum()), 'is', 'are')} {where}; {_rule(search)}", f"{LABEL}={name}" if name else LABEL)


def _rule(search: Search) -> str:
    """Say what the queue asks for."""
    name = search.task.gang.gang.queue
    queue = search.snapshot.queues.get(name)
    groups = queue.node_groups if queue is not None else None
    if groups is None or not (groups.required or groups.preferred):
        return f"queue {name!r} names none"
    return f"queue {name!r} may use {' and '.join(map(repr, dict.fromkeys((*groups.required, *groups.preferred))))}"
