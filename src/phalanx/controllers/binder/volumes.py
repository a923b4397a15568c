"""Volumes that are there before they are claimed: the smallest that suits a claim on a node is reserved for it.

Kubernetes' own controllers bind a claim to a volume that names it; only when there is none is one made for the node.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from phalanx.controllers.controller import Patch, View
from phalanx.controllers.objects import inside, labels_of, meta_of
from phalanx.dialects import storage_schema
from phalanx.dialects import supporting as surroundings
from phalanx.dialects.reading import read_as
from phalanx.errors import SnapshotError
from phalanx.model.kinds import NODE, VOLUME, Document
from phalanx.model.storage import Volume, VolumeClaim


def reserve_volume(view: View, claim: Document, node: str) -> Patch | None:
    """Return what reserves a volume for a claim of a pod on a node; None when there is no such volume."""
    asked = surroundings.volume_claim(read_as(claim, storage_schema.VolumeClaimRead))
    machine = view.find(NODE, "", node)
    labels = {} if machine is None else dict(labels_of(machine))
    suited = [
        (volume.capacity_bytes, volume.name, document) for document, volume in _volumes(view)
        if _suits(volume, asked) and volume.is_reached_from(labels)
    ]  # fmt: skip
    if not suited:
        return None
    return _reserve(min(suited, key=lambda entry: entry[:2])[2], claim)


def has_reserved(view: View, claim: Document) -> bool:
    """Tell whether a volume names the claim already: Kubernetes' own controller binds the two a moment later."""
    uid = meta_of(claim)["uid"]
    return any(inside(volume, "spec", "claimRef", "uid") == uid for volume in view.within(VOLUME))


def _suits(volume: Volume, claim: VolumeClaim) -> bool:
    return volume.storage_class == (claim.storage_class or "") and volume.is_big_enough(claim) and volume.is_offered(claim)


def _volumes(view: View) -> Iterator[tuple[Document, Volume]]:
    for document in view.within(VOLUME):
        with suppress(SnapshotError, msgspec.ValidationError):  # whoever enters objects says what is wrong with this one
            yield document, surroundings.volume(read_as(document, storage_schema.VolumeRead))


def _reserve(volume: Document, claim: Document) -> Patch:
    """Write the claim on the volume, unless somebody else has been faster."""
    meta, mine = meta_of(volume), meta_of(claim)
    named = {key: mine[key] for key in ("namespace", "name", "uid")}
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}
    patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "spec": {"claimRef": reference}}
    return Patch(VOLUME, "", str(meta["name"]), patch)
