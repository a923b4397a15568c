"""What has to be so before a pod is bound: its shared GPUs are reserved, its volumes are there, its claims have their devices.

Each part says what to write and what it waits for. A part that neither writes nor waits is ready. What was prepared for a pod that
is not bound after all is taken back.
"""

from collections.abc import Iterable
from typing import Any

from phalanx.controllers.binder.claims import claim_parts, claims_let_go
from phalanx.controllers.binder.gpu_reservations import devices_for, reservation_part
from phalanx.controllers.binder.pending import Ask
from phalanx.controllers.binder.preparation_step import READY, PreparationStep
from phalanx.controllers.binder.reservation_pod import VISIBLE
from phalanx.controllers.binder.volumes import has_reserved, reserve_volume
from phalanx.controllers.controller import Patch, View, Write
from phalanx.controllers.objects import annotations_of, inside, labels_of, meta_of
from phalanx.dialects.pods import GPU_GROUP
from phalanx.model.kinds import POD, STORAGE_CLASS, VOLUME_CLAIM, Document

RECEIVED = "received-resource-type"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAITS_FOR_POD = "WaitForFirstConsumer"


def prepared(view: View, ask: Ask, image: str) -> PreparationStep:
    """Return what is left to do for a pod; its marks come when everything else is ready."""
    found = PreparationStep.of([reservation_part(view, ask, image), *_volume_parts(view, ask), *claim_parts(view, ask)])
    return _marks(view, ask) if found.is_ready else found


def taken_back(view: View, ask: Ask) -> list[Write]:
    """Return what undoes the preparations for a pod; reservations of GPUs that nobody uses go by themselves."""
    return [*_unmarked(ask), *_volumes_let_go(view, ask), *claims_let_go(view, ask)]


# --- marks ---------------------------------------------------------------------------------------------------------------


def group_labels(groups: Iterable[str]) -> dict[str, str]:
    """Return the labels that tell on which shared GPUs a pod is."""
    names = list(groups)
    return {GPU_GROUP: names[0]} if len(names) == 1 else {f"{GPU_GROUP}/{name}": name for name in names}


def _marks(view: View, ask: Ask) -> PreparationStep:
    received, groups = inside(ask.document, "spec", "receivedResourceType"), ask.request.gpu_groups
    annotations = {RECEIVED: str(received)} if received else {}
    if groups:
        annotations[VISIBLE] = devices_for(view, groups)
    labels = group_labels(groups)
    if labels.items() <= labels_of(ask.pod).items() and annotations.items() <= annotations_of(ask.pod).items():
        return READY
    return PreparationStep([_pod_patch(ask, {"labels": labels, "annotations": annotations})])


def _unmarked(ask: Ask) -> list[Write]:
    labels = {name: None for name in labels_of(ask.pod) if name.partition("/")[0] == GPU_GROUP}
    annotations = {name: None for name in (RECEIVED, VISIBLE) if name in annotations_of(ask.pod)}
    return [_pod_patch(ask, {"labels": labels, "annotations": annotations})] if labels or annotations else []


def _pod_patch(ask: Ask, meta: dict[str, Any]) -> Patch:
    return Patch(POD, ask.pod_key.namespace, ask.pod_key.name, {"metadata": {name: table for name, table in meta.items() if table}})


# --- volumes -------------------------------------------------------------------------------------------------------------


def volume_claims_of(pod: Document) -> list[str]:
    """Return the names of the volume claims of a pod, also of those that were made for it alone."""
    found = []
    for volume in inside(pod, "spec", "volumes") or ():
        if name := inside(volume, "persistentVolumeClaim", "claimName"):
            found.append(str(name))
        elif inside(volume, "ephemeral") is not None:
            found.append(f"{meta_of(pod)['name']}-{volume.get('name')}")
    return found


def _volume_parts(view: View, ask: Ask) -> list[PreparationStep]:
    return [_volume_part(view, ask, name) for name in volume_claims_of(ask.pod)]


def _volume_part(view: View, ask: Ask, name: str) -> PreparationStep:
    claim = view.find(VOLUME_CLAIM, ask.pod_key.namespace, name)
    if claim is None:
        return PreparationStep(waits=f"volume claim {name} is not there; create it")
    if inside(claim, "spec", "volumeName") and inside(claim, "status", "phase") == "Bound":
        return READY
    is_unplaced = _waits_for_pod(view, claim) and annotations_of(claim).get(SELECTED_NODE) != ask.node
    if is_unplaced and not has_reserved(view, claim):
        return PreparationStep([reserve_volume(view, claim, ask.node) or _claim_patch(ask, name, ask.node)])
    return PreparationStep(waits=f"volume claim {name} is not bound")


def _waits_for_pod(view: View, claim: Document) -> bool:
    name = inside(claim, "spec", "storageClassName")
    found = view.find(STORAGE_CLASS, "", str(name)) if name else None
    return found is not None and found.get("volumeBindingMode") == WAITS_FOR_POD


def _volumes_let_go(view: View, ask: Ask) -> list[Write]:
    claims = ((name, view.find(VOLUME_CLAIM, ask.pod_key.namespace, name)) for name in volume_claims_of(ask.pod))
    return [
        _claim_patch(ask, name, None) for name, claim in claims
        if claim is not None and not inside(claim, "spec", "volumeName") and annotations_of(claim).get(SELECTED_NODE) == ask.node
    ]  # fmt: skip


def _claim_patch(ask: Ask, name: str, node: str | None) -> Patch:
    return Patch(VOLUME_CLAIM, ask.pod_key.namespace, name, {"metadata": {"annotations": {SELECTED_NODE: node}}})
