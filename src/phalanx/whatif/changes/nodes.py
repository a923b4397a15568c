"""Changes of nodes.

Pods that lose their node with it, because it is drained or gone, wait again under the same name if they are in a gang, as their
owner would make them again; all others are gone, since whoever makes them again does not wait for our scheduler. A drained node
keeps the pods of DaemonSets, as `kubectl drain --ignore-daemonsets` does.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from phalanx.controllers.objects import is_of_its_node
from phalanx.dialects.fresh_pods import fresh
from phalanx.kubernetes.spread import HOSTNAME
from phalanx.kubernetes.taints import OF_UNREADY_NODES, UNSCHEDULABLE
from phalanx.model.kinds import HYPERNODE, KINDS, NODE, POD, RESOURCE_SLICE, Document
from phalanx.whatif.changes.object_change import EFFECTS, NONE, ObjectChange, close_to, edited, part
from phalanx.whatif.trial_cluster import Edit, TrialCluster

MOST_NODES = 10_000
NAMED_LIKE_NODES = tuple(kind for kind in KINDS if kind.kind in ("CSINode", "Numatopology"))
"""Objects that describe the node of their name."""
_OF_ONE_NODE = ("uid", "resourceVersion", "creationTimestamp")


@dataclass(frozen=True, slots=True)
class NodeChange(ObjectChange):
    """What would be different about a node, or how many more there would be."""

    word = "node"
    states = ("drained", "cordoned", "uncordoned", "gone", "ready", "notready")
    fields = {"labels": "east", "taints": NONE, "allocatable": "+4"}  # noqa: RUF012  read only

    def edits(self, cluster: TrialCluster) -> list[Edit]:
        """Return the objects that it changes."""
        if self.name.startswith("+"):
            return list(_more_nodes(self._node(cluster, self.value), self._count(), cluster))
        node = self._node(cluster, self.name)
        if self.field:
            return [Edit(node, self._edited(node))]
        match self.value:
            case "gone":
                return [*_losing(node, cluster, keeps_daemons=False), Edit(node, None)]
            case "drained":
                return [*_losing(node, cluster, keeps_daemons=True), Edit(node, _cordoned(node))]
            case "cordoned":
                return [Edit(node, _cordoned(node))]
            case "uncordoned":
                return [Edit(node, _uncordoned(node))]
            case "ready":
                return [Edit(node, _ready(node))]
            case "notready":
                return [Edit(node, _with_condition(node, "False"))]
        raise self.unknown_state()

    def _node(self, cluster: TrialCluster, name: str) -> Document:
        found = cluster.find(NODE, name)
        if found is None:
            names = (item["metadata"]["name"] for item in cluster.all_of(NODE))
            if name == self.name:
                raise self.unknown(names)
            raise self.refuse(f"there is no node {name!r}; {close_to(name, names, 'there are')}")
        return found

    def _count(self) -> int:
        text = self.name.removeprefix("+")
        if not text.isdecimal() or not 0 < int(text) <= MOST_NODES:
            raise self.refuse(f"how many more nodes, {MOST_NODES} at most? write for example 'node/+2={self.value}'")
        return int(text)

    def _edited(self, node: Document) -> Document:
        if not self.key:
            raise self.refuse(f"which one? write node/{self.name}.{self.field}.KEY={self.value}")
        if self.field == "labels":
            return edited(node, "metadata", "labels", self.key, to=None if self.value == NONE else self.value)
        if self.field == "taints":
            return self._tainted(node)
        amount = self.quantity(part(node, "status", "allocatable", self.key))
        found = edited(node, "status", "allocatable", self.key, to=amount)
        return edited(found, "status", "capacity", self.key, to=amount) if part(node, "status", "capacity") else found

    def _tainted(self, node: Document) -> Document:
        if self.value == NONE:
            return _without_taints(node, self.key)
        _, _, effect = self.value.partition(":")
        if effect not in EFFECTS:
            raise self.refuse(f"expected VALUE:EFFECT or 'none'; effects: {', '.join(EFFECTS)}")
        return _with_taint(node, self.key, self.value)


# --- states --------------------------------------------------------------------------------------------------------------


def _cordoned(node: Document) -> Document:
    return _with_taint(edited(node, "spec", "unschedulable", to=True), UNSCHEDULABLE.key, ":NoSchedule")


def _uncordoned(node: Document) -> Document:
    return _without_taints(edited(node, "spec", "unschedulable", to=None), UNSCHEDULABLE.key)


def _ready(node: Document) -> Document:
    return _with_condition(_without_taints(node, *OF_UNREADY_NODES), "True")


def _with_condition(node: Document, status: str) -> Document:
    others = [item for item in part(node, "status", "conditions") or () if item.get("type") != "Ready"]
    return edited(node, "status", "conditions", to=[*others, {"type": "Ready", "status": status}])


def _without_taints(node: Document, *keys: str) -> Document:
    left = [taint for taint in part(node, "spec", "taints") or () if taint.get("key") not in keys]
    return edited(node, "spec", "taints", to=left or None)


def _with_taint(node: Document, key: str, text: str) -> Document:
    value, _, effect = text.partition(":")
    others = part(_without_taints(node, key), "spec", "taints") or []
    return edited(node, "spec", "taints", to=[*others, {"key": key, "value": value, "effect": effect}])


# --- pods that lose their node -------------------------------------------------------------------------------------------


def _losing(node: Document, cluster: TrialCluster, *, keeps_daemons: bool) -> Iterator[Edit]:
    """Yield what becomes of the pods of a node that goes."""
    for task in cluster.on_node(node["metadata"]["name"]):
        pod = cluster.find(POD, task.key)
        if pod is None or (keeps_daemons and is_of_its_node(pod)):
            continue
        yield Edit(pod, waiting_again(pod) if task.gang is not None and not is_of_its_node(pod) else None)


def waiting_again(pod: Document) -> Document:
    """Return a pod as its owner would make it again."""
    old = {key: pod["metadata"][key] for key in ("uid", "creationTimestamp") if key in pod["metadata"]}
    found = fresh(pod)
    return {**found, "metadata": {**found["metadata"], **old}, "status": {"phase": "Pending"}}


# --- more nodes ----------------------------------------------------------------------------------------------------------


def _more_nodes(like: Document, count: int, cluster: TrialCluster) -> Iterator[Edit]:
    """Yield new nodes like one, empty, ready and in the same network domains, with what describes each of them."""
    own = like["metadata"]["name"]
    taken = {node["metadata"]["name"] for node in cluster.all_of(NODE)}
    names = list(itertools.islice((name for number in itertools.count(1) if (name := f"{own}-more-{number}") not in taken), count))
    for name in names:
        yield Edit(None, _renamed(_ready(_uncordoned(like)), name))
        for kind in NAMED_LIKE_NODES:
            yield from _described(cluster.find(kind, own), name)
    yield from _in_same_domains(own, names, cluster)
    yield from _with_same_devices(own, names, cluster)


def _renamed(document: Document, name: str) -> dict[str, Any]:
    meta = {key: value for key, value in document["metadata"].items() if key not in _OF_ONE_NODE}
    labels = dict(meta.get("labels") or {})
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    return {**document, "metadata": {**meta, "name": name, "labels": labels}}


def _described(document: Document | None, name: str) -> Iterator[Edit]:
    if document is not None:
        yield Edit(None, _renamed(document, name))


def _in_same_domains(own: str, names: list[str], cluster: TrialCluster) -> Iterator[Edit]:
    """Yield the HyperNodes that name a node exactly, with the new nodes beside it."""
    for domain in list(cluster.all_of(HYPERNODE)):
        members = part(domain, "spec", "members") or []
        if any(_names(member, own) for member in members):
            more = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in names]
            yield Edit(domain, edited(domain, "spec", "members", to=[*members, *more]))


def _names(member: Mapping[str, Any], node: str) -> bool:
    return member.get("type") == "Node" and part(member, "selector", "exactMatch", "name") == node


def _with_same_devices(own: str, names: list[str], cluster: TrialCluster) -> Iterator[Edit]:
    for devices in list(cluster.all_of(RESOURCE_SLICE)):
        if part(devices, "spec", "nodeName") == own:
            yield from (Edit(None, _slice_of(devices, name)) for name in names)


def _slice_of(devices: Document, node: str) -> Document:
    found = _renamed(devices, f"{devices['metadata']['name']}-{node}")
    found = edited(found, "spec", "nodeName", to=node)
    return edited(found, "spec", "pool", "name", to=node) if part(found, "spec", "pool", "name") else found
