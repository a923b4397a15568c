"""Pods that reserve shared GPUs: one for each group, which keeps its device from everybody else and says which one it is.

The binder makes one when the first pod comes to a group. It goes when nobody is on the group any more, nor about to be.
"""

from collections.abc import Iterable
from typing import Any

from phalanx.controllers.base import NOTHING, Create, Delete, Key, Result, View, Write
from phalanx.controllers.binder.asks import Ask, open_asks
from phalanx.controllers.binder.part import READY, Part
from phalanx.controllers.parts import annotations_of, inside, is_leaving, labels_of, meta_of
from phalanx.dialects.pods import GPU_GROUP, RESERVATION
from phalanx.model.kinds import BIND_REQUEST, NAMESPACE, POD, Document, Kind
from phalanx.model.resources import GPU

HOME = "kai-resource-reservation"
"""The namespace of reservation pods."""
DEVICE = "run.ai/reserve_for_gpu_index"
"""Annotation by which a reservation pod says which device it got."""
IMAGE = "kai-resource-reservation"
ENDED = ("Succeeded", "Failed")


def reservation_part(view: View, ask: Ask) -> Part:
    """Return what is left to do until the shared GPUs of a pod are reserved."""
    parts = [_group_part(view, group, ask.node) for group in ask.request.gpu_groups]
    missing = [write for part in parts for write in part.writes]
    return Part(_with_home(view, missing), next((part.waits for part in parts if part.waits), "")) if parts else READY


def _with_home(view: View, writes: list[Write]) -> list[Write]:
    """Let the namespace be made before what goes into it."""
    has_home = not writes or view.find(NAMESPACE, "", HOME) is not None
    return writes if has_home else [Create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}), *writes]


def _group_part(view: View, group: str, node: str) -> Part:
    found = [pod for pod in reservations_of(view, group) if not is_leaving(pod)]
    if not found:
        is_free = view.find(POD, HOME, _name(group)) is None
        return Part([Create(reservation(group, node))]) if is_free else Part(waits=f"reservation pod {_name(group)} is leaving")
    pod, name = found[0], meta_of(found[0])["name"]
    if inside(pod, "status", "phase") in ENDED:
        return Part([_deleted(pod)])
    if inside(pod, "spec", "nodeName") != node:
        return Part(waits=f"reservation pod {name} is on node {inside(pod, 'spec', 'nodeName')}, not on {node}")
    return READY if DEVICE in annotations_of(pod) else Part(waits=f"reservation pod {name} has not said which GPU it got")


def reservations_of(view: View, group: str) -> list[Document]:
    """Return the reservation pods of a group, the oldest first."""
    found = [pod for pod in view.within(POD, HOME) if is_reservation(pod) and group in groups_of(pod)]
    return sorted(found, key=lambda pod: (meta_of(pod).get("creationTimestamp", ""), meta_of(pod)["name"]))


def reservation(group: str, node: str) -> dict[str, Any]:
    """Return the pod that reserves a GPU for a group on a node; its name follows from the group, so that there is one."""
    container = {"name": "reservation", "image": IMAGE, "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}}
    meta = {"namespace": HOME, "name": _name(group), "labels": {RESERVATION[0]: RESERVATION[1], GPU_GROUP: group}}
    spec = {"nodeName": node, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _name(group: str) -> str:
    return f"gpu-reservation-{group}"


def is_reservation(pod: Document) -> bool:
    """Tell whether a pod only keeps a GPU for others."""
    return labels_of(pod).get(RESERVATION[0]) == RESERVATION[1]


def groups_of(pod: Document) -> list[str]:
    """Return the groups that the labels of a pod name."""
    return [text for name, text in labels_of(pod).items() if name.partition("/")[0] == GPU_GROUP]


def _deleted(pod: Document) -> Delete:
    meta = meta_of(pod)
    return Delete(POD, meta["namespace"], meta["name"], meta.get("uid", ""))


class GpuReservations:
    """Removes the reservations of groups that nobody uses, and all but the oldest of each group."""

    name = "gpu-reservations"
    watches = (POD, BIND_REQUEST)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Look at the groups of a pod or a request."""
        if kind is BIND_REQUEST:
            groups = inside(document, "spec", "selectedGPUGroups") or ()
            return [Key(HOME, str(group)) for group in groups]
        return [Key(HOME, group) for group in groups_of(document)]

    def reconcile(self, view: View, key: Key) -> Result:
        """Remove what is too much."""
        found = [pod for pod in reservations_of(view, key.name) if not is_leaving(pod)]
        kept = 1 if found and is_in_use(view, key.name) else 0
        return Result([_deleted(pod) for pod in found[kept:]]) if len(found) > kept else NOTHING


def is_in_use(view: View, group: str) -> bool:
    """Tell whether a pod is on a group, or about to be."""
    return any(group in ask.request.gpu_groups for ask in open_asks(view)) or any(_is_user(pod, group) for pod in view.within(POD))


def _is_user(pod: Document, group: str) -> bool:
    has_place = bool(inside(pod, "spec", "nodeName")) and inside(pod, "status", "phase") not in ENDED
    return group in groups_of(pod) and has_place and not is_reservation(pod)
