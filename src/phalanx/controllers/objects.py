"""Reading unchecked objects: metadata, owners, groups, and the annotation that reports a problem."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from phalanx.controllers.controller import Key, Patch, RecordEvent, View, Write
from phalanx.dialects import group_references as links
from phalanx.dialects import schema
from phalanx.dialects.cluster import describe
from phalanx.dialects.kinds.reader import reader_of
from phalanx.dialects.reading import read_as
from phalanx.dialects.wrong_field import readable
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.kinds import GROUP_BY_DIALECT, Document, Kind

Struct = TypeVar("Struct", bound=msgspec.Struct)
PROBLEM = "phalanx.dev/problem"
"""Annotation that says why an object cannot be read."""
UNREADABLE = "?"
"""In place of the group of a pod that cannot be read."""


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
    """Return the reference to an owner, as an object that belongs to it has it."""
    meta = meta_of(owner)
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "controller": is_controller, "blockOwnerDeletion": True,
    }  # fmt: skip


def controller_of(document: Document) -> Document | None:
    """Return the reference to the owner that manages an object, or None."""
    owners: list[Document] = meta_of(document).get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def is_of_its_node(pod: Document) -> bool:
    """Tell whether a pod belongs to its node and goes with it: of a DaemonSet, or static."""
    return any(owner.get("kind") in ("DaemonSet", "Node") for owner in meta_of(pod).get("ownerReferences") or ())


def annotations_of(document: Document) -> dict[str, str]:
    """Return the annotations of an object."""
    return dict(meta_of(document).get("annotations") or {})


def labels_of(document: Document) -> dict[str, str]:
    """Return the labels of an object."""
    return dict(meta_of(document).get("labels") or {})


def inside(document: Document, *path: str) -> Any:  # Any: whatever somebody wrote there
    """Return the value at a path of an unchecked object; None where there is none."""
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def group_of(view: View, gang: Gang) -> Document | None:
    """Return the object of a gang's group; None where pods alone make it, or where it is gone."""
    kind = GROUP_BY_DIALECT.get(gang.dialect)
    return None if kind is None else view.find(kind, gang.namespace, gang.name)


def group_named(pod: Document) -> str:
    """Return the group that a pod names in any dialect; a pod that cannot be read names an unknown one."""
    try:
        read = read_as(pod, schema.Pod)
    except msgspec.ValidationError:
        return UNREADABLE
    return next((link.group.partition("/")[2] for link in links.references_of(read.metadata, read.spec)), "")


def read(document: Document, kind: type[Struct]) -> Struct:
    """Return an object as a struct; a wrong one is an error that names the object and the field."""
    try:
        return read_as(document, reader_of(kind))
    except msgspec.ValidationError as problem:
        raise SnapshotError(f"{describe(document)}: {readable(problem)}") from problem


def problem_writes(kind: Kind, document: Document, text: str) -> list[Write]:
    """Return the annotation and event that report a problem of an object, once; an empty text removes the annotation."""
    if annotations_of(document).get(PROBLEM, "") == text:
        return []
    key = key_of(document)
    patch = Patch(kind, key.namespace, key.name, {"metadata": {"annotations": {PROBLEM: text or None}}})
    return [patch, *([RecordEvent(document, "Invalid", text, is_warning=True)] if text else [])]
