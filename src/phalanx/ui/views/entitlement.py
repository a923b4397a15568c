"""What queues deserve: what their objects say, or else their part by weight of what the queue above them deserves.

Sessions give a queue less where it asks for less, and more where others do: that is its fair share now. Who lends to whom is seen
only beside what each of them deserves whatever it asks for.
"""

from collections.abc import Iterable, Mapping

from phalanx.dialects.queue_objects import IMPLIED_QUEUES
from phalanx.kai.amounts import NAMES, UNLIMITED
from phalanx.model.queue import Queue
from phalanx.model.resources import CPU, GPU, scale_of

KAI_NAMES = {GPU: "gpu"}
"""What KAI's numbers call a resource."""
KAI_SCALES = {CPU: 1000.0}


def entitlements(queues: Mapping[str, Queue], busy: Iterable[str], resource: str, offered: float) -> dict[str, float]:
    """Return what each queue deserves of a resource, in units; `busy` are queues with gangs, `offered` is all there is.

    The queues that always exist take no part as long as nobody uses them.
    """
    idle = set(IMPLIED_QUEUES) - set(busy)
    there = {name: queue for name, queue in queues.items() if name not in idle or _has_children(name, queues)}
    children: dict[str, list[str]] = {}
    for name, queue in there.items():
        children.setdefault(queue.parent if queue.parent in there else "", []).append(name)
    found: dict[str, float] = {}
    open_parents = [("", offered)]
    while open_parents:
        parent, whole = open_parents.pop()
        for name, part in _parts([there[name] for name in children.get(parent, ())], resource, whole).items():
            found[name] = part
            open_parents.append((name, part))
    return found


def _has_children(name: str, queues: Mapping[str, Queue]) -> bool:
    return any(queue.parent == name for queue in queues.values())


def _parts(beside: list[Queue], resource: str, whole: float) -> dict[str, float]:
    """Divide what there is: first what objects say, then the rest by weight."""
    said = {queue.name: amount for queue in beside if (amount := _said(queue, resource)) is not None}
    rest = max(whole - sum(said.values()), 0.0)
    others = [queue for queue in beside if queue.name not in said]
    weights = sum(max(queue.weight, 0) for queue in others) or 1
    return said | {queue.name: _bounded(queue, resource, rest * max(queue.weight, 0) / weights) for queue in others}


def _said(queue: Queue, resource: str) -> float | None:
    """Return what the object of a queue says that it deserves; None where it says nothing, and its weight counts alone."""
    if resource in queue.deserved:
        return queue.deserved[resource] / scale_of(resource)
    name = KAI_NAMES.get(resource, resource)
    if queue.bounds is None or name not in NAMES:
        return None
    quota = queue.bounds.quota[NAMES.index(name)]
    return quota / KAI_SCALES.get(resource, 1.0) if quota not in (UNLIMITED, 0.0) else None


def _bounded(queue: Queue, resource: str, amount: float) -> float:
    """Return no more than the queue may have."""
    limit = (queue.capability or {}).get(resource)
    return amount if limit is None else min(amount, limit / scale_of(resource))
