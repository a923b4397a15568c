"""How many groups a queue of Volcano's holds in each phase, and what the pods hold that have a place.

Every change of a group or a pod changes some queue, and counting takes a pass over all of them: so it is done for all queues at
once, at most once in a while, and only what has changed is written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from phalanx.controllers.controller import Key, Patch, Result, View
from phalanx.controllers.objects import inside, meta_of
from phalanx.controllers.queue import GROUP, above, queue_of
from phalanx.dialects import group_references as links
from phalanx.dialects import pods
from phalanx.dialects.reading import read_as
from phalanx.dialects.schema import ShapeSpec
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD, QUEUE, Document, Kind
from phalanx.model.queue import ROOT
from phalanx.model.resources import PODS, Resources, add, quantity_text
from phalanx.model.task_status import ENDED

EVERYTHING = Key("", "")
PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
COUNTED = ("containers", "initContainers", "overhead", "resources")
Amounts = dict[str, dict[str, int]]


class QueueStatusController:
    """Keeps the counts in the status of queues."""

    name = "queue-status"
    watches = (QUEUE, GROUP, POD)
    brings_back = ()

    def __init__(self, patience_seconds: float = 1.0) -> None:
        """Count so long after a change."""
        self.patience_seconds = patience_seconds

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Count again when a group or one of its pods has changed, or a queue was never counted."""
        if kind is POD and not inside(document, "metadata", "annotations", links.GROUP):
            return []
        if kind is QUEUE and inside(document, "status", "allocated") is not None:
            return []
        return [EVERYTHING]

    def reconcile(self, view: View, key: Key) -> Result:
        """Write what has changed."""
        queues = {str(meta_of(queue)["name"]): queue for queue in view.within(QUEUE)}
        groups = view.within(GROUP)
        counts = Counter((queue_of(group), inside(group, "status", "phase") or PHASES[0]) for group in groups)
        allocated = _with_those_below(queues, _allocated(view, groups))
        patches = ((name, _changes(queue, _status(name, counts, allocated))) for name, queue in queues.items())
        return Result([Patch(QUEUE, "", name, {"status": patch}, is_status=True) for name, patch in patches if patch])


def _allocated(view: View, groups: Iterable[Document]) -> Amounts:
    """Sum up by queue what the pods ask for that have a place."""
    queue_by_group = {(group["metadata"].get("namespace"), group["metadata"].get("name")): queue_of(group) for group in groups}
    sums: Amounts = {}
    for (queue, asked), number in _counted_by_request(view, queue_by_group).items():
        total = sums.setdefault(queue, {})
        for name, amount in _request(asked).items():
            total[name] = total.get(name, 0) + amount * number
    return sums


def _counted_by_request(view: View, queue_by_group: Mapping[tuple[str, str], str]) -> Counter[tuple[str, bytes]]:
    """Count the pods of each queue by their encoded requests: among many pods there are few different ones."""
    found: Counter[tuple[str, bytes]] = Counter()
    for pod in view.within(POD):
        meta, spec = pod["metadata"], pod["spec"]
        group = (meta.get("annotations") or {}).get(links.GROUP)
        if group and spec.get("nodeName") and (pod.get("status") or {}).get("phase") not in ENDED:
            queue = queue_by_group.get((meta.get("namespace"), group))
            if queue is not None:
                found[queue, msgspec.json.encode([spec.get(name) for name in COUNTED])] += 1
    return found


@lru_cache(maxsize=4096)
def _request(encoded: bytes) -> Resources:
    """Return what a pod asks for; nothing if that cannot be read, which the quarantine controller reports."""
    parts = dict(zip(COUNTED, msgspec.json.decode(encoded), strict=True))
    try:
        return {**pods.pod_request(read_as(parts, ShapeSpec)), PODS: 1}
    except (SnapshotError, msgspec.ValidationError):
        return {}


def _with_those_below(queues: Mapping[str, Document], own: Amounts) -> Amounts:
    """Add what a queue holds to those above it; the root is above all."""
    sums: Amounts = {name: dict(own.get(name, {})) for name in queues}
    for name in queues:
        line = above(queues, name)
        tops = [ROOT] if ROOT in queues and ROOT not in (name, *line) else []
        for parent in (*line, *tops):
            sums[parent] = add(sums[parent], own.get(name, {}))
    return sums


def _status(name: str, counts: Mapping[tuple[str, str], int], allocated: Amounts) -> dict[str, Any]:
    held = {resource: quantity_text(resource, amount) for resource, amount in sorted(allocated[name].items())}
    return {**{phase.lower(): counts.get((name, phase), 0) for phase in PHASES}, "allocated": held}


def _changes(queue: Document, status: Mapping[str, Any]) -> dict[str, Any]:
    """Return a patch that makes the status of a queue what it should be."""
    old = inside(queue, "status") or {}
    changes = {name: value for name, value in status.items() if old.get(name) != value}
    if "allocated" in changes:
        gone = dict.fromkeys(set(old.get("allocated") or {}) - set(status["allocated"]))
        changes["allocated"] = {**gone, **status["allocated"]}
    return changes
