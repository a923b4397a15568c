"""HyperNodes from the labels of nodes: each level is a label, from narrow to wide, and nodes that agree on it and on all wider ones
are one HyperNode of that tier.

A node whose label is missing at some level belongs to none of that level and above. HyperNodes that others made are left
alone; one that has a name that we would give takes the place of ours.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

from phalanx.controllers.controller import Create, Delete, Key, Patch, Result, View, Write
from phalanx.controllers.objects import inside, labels_of, meta_of
from phalanx.model.kinds import HYPERNODE, NODE, Document, Kind

EVERYTHING = Key("", "")
MADE_FROM = "phalanx.dev/made-from"
LABELS = "node-labels"
LONGEST_NAME = 253
_PLAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
Domain = tuple[str, ...]
"""The values of a level and of all wider ones, the widest first."""


class HyperNodeController:
    """Reconciles the HyperNodes that node labels describe."""

    name = "hypernode"
    watches = (NODE, HYPERNODE)
    brings_back = ()

    def __init__(self, levels: Sequence[str]) -> None:
        """Take these labels, from narrow to wide."""
        self._levels = tuple(levels)

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Reconcile all when a HyperNode has changed, or a node that is not in the HyperNode of its labels."""
        return [] if kind is NODE and self._is_in_place(view, document) else [EVERYTHING]

    def _is_in_place(self, view: View, node: Document) -> bool:
        """Tell cheaply whether a change of a node concerns no HyperNode: it is there, and a member of the right one or of none."""
        name = str(meta_of(node).get("name"))
        if view.find(NODE, "", name) is None:
            return False
        line = next(self._domains(node), None)
        if line is None:
            return not any(_is_ours(item) and _holds(item, name) for item in view.within(HYPERNODE))
        found = view.find(HYPERNODE, "", _name(line))
        return found is not None and _holds(found, name)

    def reconcile(self, view: View, key: Key) -> Result:
        """Make, change and remove HyperNodes; wide ones after the narrow ones they hold, and removed before them."""
        wanted = self._wanted(view)
        there = {str(meta_of(item)["name"]): item for item in view.within(HYPERNODE)}
        writes = [write for name, item in wanted.items() for write in _written(there.get(name), item)]
        gone = [item for name, item in there.items() if name not in wanted and _is_ours(item)]
        gone.sort(key=lambda item: -int(inside(item, "spec", "tier") or 0))
        return Result([*writes, *(Delete(HYPERNODE, "", meta_of(item)["name"], meta_of(item)["uid"]) for item in gone)])

    def _wanted(self, view: View) -> dict[str, dict[str, Any]]:
        members: dict[tuple[int, Domain], dict[tuple[str, str], None]] = {}
        for node in view.within(NODE):
            member = ("Node", str(meta_of(node)["name"]))
            for tier, domain in self._domains(node):
                members.setdefault((tier, domain), {})[member] = None
                member = ("HyperNode", _name((tier, domain)))
        return {_name(place): self._document(place, members[place]) for place in sorted(members)}

    def _domains(self, node: Document) -> Iterator[tuple[int, Domain]]:
        """Yield tier and values of the HyperNodes that a node is in, the narrowest first."""
        labels, values = labels_of(node), list[str]()
        for level in self._levels:
            if not labels.get(level):
                break
            values.insert(0, labels[level])
        for tier in range(1, len(values) + 1):
            yield tier, tuple(values[: len(values) - tier + 1])

    def _document(self, place: tuple[int, Domain], members: Iterable[tuple[str, str]]) -> dict[str, Any]:
        tier, domain = place
        level = self._levels[tier - 1]
        spec = {"tier": tier, "tierName": level, "members": [_member(*member) for member in sorted(members)]}
        meta = {"name": _name(place), "labels": {MADE_FROM: LABELS, level: domain[-1]}}
        return {"apiVersion": HYPERNODE.api_version, "kind": HYPERNODE.kind, "metadata": meta, "spec": spec}


def _name(place: tuple[int, Domain]) -> str:
    """Return a name that says tier and values; a hash keeps values apart that are no valid parts of a name."""
    tier, domain = place
    name = ".".join((f"tier-{tier}", *domain))
    if all(_PLAIN.fullmatch(value) for value in domain) and len(name) <= LONGEST_NAME:
        return name
    digest = sha256("\n".join(domain).encode()).hexdigest()[:10]
    plain = re.sub(r"[^a-z0-9]+", "-", ".".join(domain).lower()).strip("-")[:200].rstrip("-")
    return f"tier-{tier}.{plain}-{digest}"


def _member(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def _holds(hypernode: Document, node: str) -> bool:
    return _member("Node", node) in (inside(hypernode, "spec", "members") or ())


def _is_ours(hypernode: Document) -> bool:
    return labels_of(hypernode).get(MADE_FROM) == LABELS


def _written(found: Document | None, wanted: dict[str, Any]) -> list[Write]:
    if found is None:
        return [Create(wanted)]
    name, labels = wanted["metadata"]["name"], wanted["metadata"]["labels"]
    if not _is_ours(found) or (found["spec"] == wanted["spec"] and labels.items() <= labels_of(found).items()):
        return []
    return [Patch(HYPERNODE, "", name, {"metadata": {"labels": labels}, "spec": wanted["spec"]})]
