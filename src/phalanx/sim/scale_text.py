"""What an autoscaler did, in sentences: the same for tables and pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.explain.reason_text import counted

SHOWN_NODES = 3
"""So many are named; of more, the first and the last."""


def scale_event(item: Mapping[str, Any]) -> str:
    """Say what happened to a pool."""
    number, pool = counted(item["count"], "node"), item["pool"]
    match item["event"]:
        case "scale-up":
            return f"pool {pool} is asked for {number} {item['message']}"
        case "delivered":
            return f"pool {pool} delivers {_named(item['nodes'])}"
        case "failed":
            return f"pool {pool} fails to deliver {number}: {item['message']}"
    return f"pool {pool} takes back {_named(item['nodes'])}: nobody has needed {'it' if item['count'] == 1 else 'them'}"


def _named(nodes: Sequence[str]) -> str:
    if len(nodes) <= SHOWN_NODES:
        return f"{counted(len(nodes), 'node')}: {', '.join(nodes)}" if len(nodes) > 1 else f"node {nodes[0]}"
    return f"{len(nodes)} nodes: {nodes[0]} to {nodes[-1]}"
