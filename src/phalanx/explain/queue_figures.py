"""The amounts of queues, for metrics and `phalanx describe queue`.

They are in cores, bytes and devices, and for inner queues with those of all queues below them.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.kai.amounts import NAMES
from phalanx.model.queue import Queue
from phalanx.model.resources import CPU, GPU, Resources, add, scale_of
from phalanx.state.snapshot import Snapshot

Figures = Mapping[str, Mapping[str, Mapping[str, float]]]
"""What plugins say of queues: by queue, kind and resource; cpu in thousandths, memory in bytes, everything else in units."""
LONG_NAMES = {"gpu": GPU}
"""What KAI's numbers call a resource, and what everybody else does."""
SHARES = ("deserved", "fair_share")
"""The kinds that only a plugin knows."""

Rows = dict[tuple[str, str, str], float]
"""By queue, resource and kind."""


def queue_rows(snapshot: Snapshot, figures: Figures) -> Rows:
    """Return every figure of every queue that is finite.

    Where several schedulers share a cluster, each has shares of its own, under the name ``shard/queue``.
    """
    rows: Rows = {}
    allocated = _summed(snapshot, {name: totals.allocated for name, totals in snapshot.totals.items()})
    requested = _summed(snapshot, {name: totals.requested for name, totals in snapshot.totals.items()})
    for name, queue in snapshot.queue_objects.items():
        kinds = {
            "allocated": _in_units(allocated.get(name, {})), "requested": _in_units(requested.get(name, {})),
            "capability": _capability(queue), **_shares(figures.get(name, {})),
        }  # fmt: skip
        rows |= _rows_of(name, kinds)
    for name, own in figures.items():
        shard, _, queue_name = name.rpartition("/")
        if shard and queue_name in snapshot.queue_objects:
            rows |= _rows_of(name, _shares(own))
    return rows


def _rows_of(name: str, kinds: Mapping[str, Mapping[str, float]]) -> Rows:
    return {(name, resource, kind): amount for kind, amounts in kinds.items() for resource, amount in amounts.items()}


def queue_list(snapshot: Snapshot, figures: Figures) -> dict[str, Any]:
    """Return the figures of all queues as one list: by resource and kind; those of shards under `SHARD/QUEUE`."""
    items: dict[str, dict[str, dict[str, float]]] = {name: {} for name in sorted(snapshot.queue_objects)}
    for (name, resource, kind), amount in queue_rows(snapshot, figures).items():
        items.setdefault(name, {}).setdefault(resource, {})[kind] = amount
    return {"kind": "QueueFiguresList", "items": [{"name": name, "figures": found} for name, found in items.items()]}


def _summed(snapshot: Snapshot, own: Mapping[str, Resources]) -> dict[str, Resources]:
    """Return the amounts of each queue and of all queues below it."""
    total: dict[str, Resources] = {}
    for name, amounts in own.items():
        for ancestor in queue_line(snapshot.queue_objects, name):
            total[ancestor] = add(total.get(ancestor, {}), amounts)
    return total


def queue_line(queues: Mapping[str, Queue], name: str) -> Iterator[str]:
    """Yield a queue and those above it; parents that go round in a circle end it."""
    seen = set()
    while name in queues and name not in seen:
        seen.add(name)
        yield name
        name = queues[name].parent


def _in_units(amounts: Resources) -> dict[str, float]:
    return {name: amount / scale_of(name) for name, amount in amounts.items()}


def _capability(queue: Queue) -> dict[str, float]:
    """Return what the queue may have at most; without a bound it is left out."""
    if queue.capability is None and queue.bounds is not None:
        return _finite(dict(zip(NAMES, queue.bounds.limit, strict=True)))
    return _in_units(queue.capability or {})


def _shares(figures: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {kind: _finite(figures[kind]) for kind in SHARES if kind in figures}


def _finite(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return amounts in cores, bytes and devices; what has no bound, -1 in KAI's numbers, is left out."""
    known = {name: amount for name, amount in amounts.items() if amount >= 0 and math.isfinite(amount)}
    return {LONG_NAMES.get(name, name): amount / scale_of(CPU) if name == CPU else amount for name, amount in known.items()}
