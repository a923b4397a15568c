"""Whether nodes still have the room that requests were made for.

Between a request and the bind volumes are made and GPUs reserved, which may take minutes. Meanwhile another scheduler may bind to
the node, or what a former leader sent may come at last. A kubelet would reject the pod then, so its request fails instead, as if
the bind had been refused. Requests that were made just now, and nodes to which nobody came since, are not looked at.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress

from phalanx.controllers.binder.pending import Ask
from phalanx.controllers.controller import View
from phalanx.controllers.objects import inside
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.explain.reason_text import amount_text
from phalanx.model.kinds import NODE, POD, Document, object_key
from phalanx.model.moment import moment_of
from phalanx.model.task import TaskKey
from phalanx.state.snapshot import EMPTY, Snapshot

FRESH_SECONDS = 2.0
"""So long nobody asks whether the room is still there: sessions bind as soon after they looked, and to look takes all pods."""


def without_room(view: View, asks: Sequence[Ask]) -> dict[Ask, str]:
    """Return the requests whose nodes have too little room for them by now, each with why."""
    asks_by_node: dict[str, list[Ask]] = defaultdict(list)
    for ask in asks:
        if view.now - ask.created > FRESH_SECONDS:
            asks_by_node[ask.node].append(ask)
    if not asks_by_node:
        return {}
    pods_by_node = _pods_on(view, asks_by_node)
    reached = {node for node, found in asks_by_node.items() if _has_newcomers(pods_by_node[node], found)}
    if not reached:
        return {}
    snapshot = _snapshot(view, {node: [*pods_by_node[node], *map(_placed, asks_by_node[node])] for node in reached})
    return {ask: text for node in reached for ask in asks_by_node[node] if (text := _shortage(snapshot, ask))}


def _pods_on(view: View, nodes: Collection[str]) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = defaultdict(list)
    for pod in view.within(POD):
        if inside(pod, "spec", "nodeName") in nodes:
            found[pod["spec"]["nodeName"]].append(pod)
    return found


def _has_newcomers(pods: Sequence[Document], asks: Sequence[Ask]) -> bool:
    """Tell whether somebody may have come to a node after the first of these requests was made; times are whole seconds."""
    begun = int(min(ask.created for ask in asks))
    return any((_bound_at(pod) or begun) >= begun for pod in pods)


def _bound_at(pod: Document) -> float | None:
    conditions = inside(pod, "status", "conditions") or ()
    texts = (item.get("lastTransitionTime") for item in conditions if item.get("type") == "PodScheduled")
    return moment_of(str(next(texts, "")))


def _placed(ask: Ask) -> Document:
    return {**ask.pod, "spec": {**ask.pod["spec"], "nodeName": ask.node}}


def _snapshot(view: View, pods_by_node: dict[str, list[Document]]) -> Snapshot:
    """Return these nodes with the pods on them, and nothing else."""
    cluster = ObjectCluster()
    nodes = (view.find(NODE, "", name) for name in pods_by_node)
    for document in (*(node for node in nodes if node is not None), *(pod for pods in pods_by_node.values() for pod in pods)):
        with suppress(SnapshotError):  # whoever enters objects says what is wrong with this one
            cluster.put(document)
    return cluster.snapshot(view.now)


def _shortage(snapshot: Snapshot, ask: Ask) -> str:
    """Say what its node would have too little of; empty if it has enough, or nobody can tell."""
    number = snapshot.nodes.number_by_name.get(ask.node)
    task = snapshot.on_node.get(ask.node, EMPTY).get(TaskKey(object_key(ask.pod)))
    if number is None or task is None:
        return ""
    texts = [_text(snapshot, number, name) for name, amount in task.shape.request.items() if amount]
    found = ", ".join(text for text in texts if text)
    return f"node {ask.node} would hold {found}" if found else ""


def _text(snapshot: Snapshot, number: int, name: str) -> str:
    row = snapshot.space.row_by_name[name]
    used, offers = int(snapshot.used[row, number]), int(snapshot.nodes.allocatable[row, number])
    return f"{amount_text(name, used)} of {amount_text(name, offers)} {name}" if used > offers else ""
