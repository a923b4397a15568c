"""What the outside offers to the inside, as small protocols.

Everything below this module is pure. What it needs from the world comes in through a port: with the snapshot, or as an object
that the edge hands in.
"""

from collections.abc import Mapping
from typing import Protocol

from phalanx.model.node import NodeUsage
from phalanx.model.usage import QueueHistory


class UsageSource(Protocol):
    """Measures how much of each node is really in use, for the plugin `usage`.

    The loop that makes snapshots asks it now and then and enters the answer as `Surroundings.node_usage`; the plugin sees numbers
    and their age, never the source. NodeMetrics objects of the metrics API need no source: they are read like all other objects
    (`dialects/nodeinfo.py`). A source that asks Prometheus is the next one to be written; it belongs in `runtime`.
    """

    def read(self) -> Mapping[str, NodeUsage]:
        """Return what is known by node name; nodes that nobody measured are left out."""
        ...


class QueueUsageSource(Protocol):
    """Knows how much queues used over time, for the plugin `proportion` of the profile kai.

    Whoever makes snapshots enters the answer as `Surroundings.queue_history`; what of it counts, and how much, is decided by the
    policy. `phalanx schedule --usage` reads files (`cli/shards.py`).
    """

    def read(self) -> QueueHistory | None:
        """Return all samples that are known; None when nobody measures."""
        ...
