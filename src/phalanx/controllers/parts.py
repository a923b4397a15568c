"""Small parts that controllers share: keys, owners, merge patches."""

from typing import Any

from phalanx.controllers.base import Key
from phalanx.model.kinds import Document


def meta_of(document: Document) -> Document:
    """Return the metadata of an object; empty without any."""
    found: Document = document.get("metadata") or {}
    return found


def key_of(document: Document) -> Key:
    """Return the key of an object."""
    meta = meta_of(document)
    return Key(str(meta.get("namespace") or ""), str(meta.get("name") or ""))


def is_leaving(document: Document) -> bool:
    """Tell whether the deletion of an object was asked for."""
    return "deletionTimestamp" in meta_of(document)


def owner_reference(owner: Document, *, is_controller: bool = True) -> dict[str, Any]:
    """Return what an object says that belongs to another."""
    meta = meta_of(owner)
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "controller": is_controller, "blockOwnerDeletion": True,
    }  # fmt: skip


def controller_of(document: Document) -> Document | None:
    """Return the reference to the owner that manages an object, or None."""
    owners: list[Document] = meta_of(document).get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def annotations_of(document: Document) -> dict[str, str]:
    """Return the annotations of an object."""
    return dict(meta_of(document).get("annotations") or {})


def labels_of(document: Document) -> dict[str, str]:
    """Return the labels of an object."""
    return dict(meta_of(document).get("labels") or {})
