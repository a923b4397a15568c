"""What an autoscaler did in a simulation, as plain data: what pools were asked for and delivered, when, and what is to be paid."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from phalanx.model.resources import scale_of
from phalanx.sim.cloud_provider import CloudProvider, NodeGroup, ScaleEvent

SUMS = {"scale-up": "nodesRequested", "delivered": "nodesDelivered", "failed": "nodesFailed", "scale-down": "nodesGivenBack"}
"""What the nodes of each kind of event are counted as."""


def autoscaler_result(provider: CloudProvider, resource: str, now: float) -> dict[str, Any]:
    """Return the figures of each pool, and all events in the order of time."""
    events = provider.events
    pools = {group.pool.name: _figures(group, events, resource, now) for group in provider.groups}
    return {"pools": pools, "events": [_event(item) for item in events]}


def autoscaler_metrics(found: dict[str, Any]) -> dict[str, float]:
    """Return the figures of all pools together."""
    total: Counter[str] = Counter()
    for figures in found["pools"].values():
        total.update(figures)
    return dict(total)


def _figures(group: NodeGroup, events: Sequence[ScaleEvent], resource: str, now: float) -> dict[str, float]:
    own = [item for item in events if item.pool == group.pool.name]
    seconds = group.seconds_until(now)
    amount = group.pool.template.amounts.get(resource, 0) / scale_of(resource)
    return {
        "scaleUps": sum(item.kind == "scale-up" for item in own),
        **{name: sum(item.count for item in own if item.kind == kind) for kind, name in SUMS.items()},
        "nodeSeconds": seconds, "amountSeconds": seconds * amount,
    }  # fmt: skip


def _event(item: ScaleEvent) -> dict[str, Any]:
    return {
        "time": item.moment, "pool": item.pool, "event": item.kind, "count": item.count, "nodes": list(item.nodes),
        "message": item.message,
    }  # fmt: skip
