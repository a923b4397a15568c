"""The queues as a tree: what each deserves, has, borrows and waits for, and which of them lend to others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from phalanx.explain.queue_figures import Rows, queue_line, queue_rows
from phalanx.explain.reason_text import scarce_first
from phalanx.model.listing import listed
from phalanx.model.queue import Queue
from phalanx.model.resources import PODS, scale_of
from phalanx.ui.scope import Scope
from phalanx.ui.seen import SeenCluster, SeenGang
from phalanx.ui.views import Json
from phalanx.ui.views.amounts import amount_text, offered_resources, with_unit
from phalanx.ui.views.entitlement import entitlements

KINDS = {"deserved": "fairShare", "fair_share": "fairShare", "allocated": "allocated", "capability": "limit"}
"""Figures of queues, and what they are called in documents: what a session gives a queue is its share for now."""
TINY = 1e-6
MOST_NAMED = 4


def queues(seen: SeenCluster, scope: Scope) -> Json:
    """Return every queue with its figures, parents before their children; nothing for those who may not list queues."""
    if not scope.sees_queues:
        return {"now": seen.now, "resources": [], "queues": [], "lending": [], "hidden": True}
    known, rows = seen.snapshot.queue_objects, queue_rows(seen.snapshot, seen.figures)
    resources = scarce_first({*(resource for _, resource, _ in rows), *offered_resources(seen.snapshot)} - {PODS})
    gangs, deserved = _gangs_by_queue(seen, scope), {resource: _deserved(seen, resource) for resource in resources}
    found = [
        _document(known[name], rows, deserved) | {"depth": depth} | asdict(gangs.get(name, _Gangs()))
        for name, depth in _in_tree_order(known)
    ]
    return {
        "now": seen.now, "resource": seen.resource, "resources": resources, "queues": found,
        "lending": list(_lending(found, seen.resource)), "hidden": False,
    }  # fmt: skip


# --- one queue -----------------------------------------------------------------------------------------------------------


def _deserved(seen: SeenCluster, resource: str) -> dict[str, float]:
    snapshot = seen.snapshot
    row = snapshot.space.row_by_name.get(resource)
    offered = 0.0 if row is None else float(snapshot.nodes.allocatable[row].sum()) / scale_of(resource)
    busy = {gang.queue for gang in snapshot.gangs.values()}
    return entitlements(snapshot.queue_objects, busy, resource, offered)


def _document(queue: Queue, rows: Rows, deserved: Mapping[str, Mapping[str, float]]) -> Json:
    figures = {resource: _figures(queue, resource, rows, own.get(queue.name)) for resource, own in deserved.items()}
    return {
        "name": queue.name, "parent": queue.parent, "state": queue.state, "weight": queue.weight,
        "reclaimable": queue.is_reclaimable, "figures": {resource: each for resource, each in figures.items() if each},
    }  # fmt: skip


def _figures(queue: Queue, resource: str, rows: Rows, deserved: float | None) -> Json:
    """Return what a queue has of one resource: borrowed is more than it deserves, reclaimable what others may take back now."""
    found = {word: rows[queue.name, resource, kind] for kind, word in KINDS.items() if (queue.name, resource, kind) in rows}
    if deserved is None:
        return found
    allocated = found.get("allocated", 0.0)
    beyond = max(allocated - found.get("fairShare", deserved), 0.0) if queue.is_reclaimable else 0.0
    borrowed = max(allocated - deserved, 0.0)
    return {**found, "allocated": allocated, "deserved": deserved, "borrowed": borrowed, "reclaimable": beyond}


def _in_tree_order(known: Mapping[str, Queue]) -> list[tuple[str, int]]:
    """Return every queue below its parent with its depth; those whose parents go round in a circle come last, as without any."""
    children: dict[str, list[str]] = {}
    for name, queue in sorted(known.items(), reverse=True):
        children.setdefault(queue.parent if queue.parent in known else "", []).append(name)
    found: dict[str, int] = {}
    open_queues = [(name, 0) for name in children.get("", ())]
    while open_queues:
        name, depth = open_queues.pop()
        found[name] = depth
        open_queues.extend((child, depth + 1) for child in children.get(name, ()))
    return [*found.items(), *((name, 0) for name in sorted(known) if name not in found)]


# --- gangs of queues -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Gangs:
    """How many gangs of a queue wait and have started, and how much the pods of those that wait ask for."""

    waiting: int = 0
    started: int = 0
    asked: float = 0.0

    def add(self, gang: SeenGang) -> None:
        self.waiting += gang.waits
        self.started += gang.status.has_minimum
        self.asked += gang.facts.asked

    def add_all(self, other: "_Gangs") -> None:
        self.waiting, self.started, self.asked = (
            self.waiting + other.waiting,
            self.started + other.started,
            self.asked + other.asked,
        )


def _gangs_by_queue(seen: SeenCluster, scope: Scope) -> dict[str, _Gangs]:
    """Return what the gangs of each queue and of all queues below it come to."""
    own: dict[str, _Gangs] = {}
    for gang in seen.gangs.values():
        if scope.sees_key(gang.key):
            own.setdefault(gang.queue, _Gangs()).add(gang)
    found: dict[str, _Gangs] = {}
    for name, gangs in own.items():
        for ancestor in queue_line(seen.snapshot.queue_objects, name):
            found.setdefault(ancestor, _Gangs()).add_all(gangs)
    return found


# --- lending -------------------------------------------------------------------------------------------------------------


def _lending(found: Sequence[Json], resource: str) -> Iterator[Json]:
    """Yield who lends to whom: queues beside each other, of which some use less than they deserve and others more."""
    for parent in dict.fromkeys(each["parent"] for each in found):
        beside = [each for each in found if each["parent"] == parent and "borrowed" in each["figures"].get(resource, {})]
        borrowers = {each["name"]: each["figures"][resource]["borrowed"] for each in beside}
        borrowers = {name: amount for name, amount in borrowers.items() if amount > TINY}
        if not borrowers:
            continue
        for each in beside:
            spare = each["figures"][resource]["deserved"] - each["figures"][resource]["allocated"]
            if spare > TINY:
                yield _loan(each, spare, borrowers, resource)


def _loan(lender: Json, spare: float, borrowers: Mapping[str, float], resource: str) -> Json:
    ordered, deserved = _largest_first(borrowers), lender["figures"][resource]["deserved"]
    names = [f"{name} has {with_unit(resource, amount)} more than it deserves" for name, amount in ordered]
    unused = f"{amount_text(resource, spare)} of the {with_unit(resource, deserved)} that it deserves are not used"
    text = f"{lender['name']} lends: {unused}; {listed(names, MOST_NAMED)}"
    return {"lender": lender["name"], "borrowers": [name for name, _ in ordered], "unused": spare, "text": text}


def _largest_first(amounts: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
