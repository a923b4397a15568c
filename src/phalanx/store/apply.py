"""Client-side apply: the three-way merge of the manifest applied last, the manifest applied now, and the live object.

The manifest that was applied last is kept in an annotation of the object, where kubectl keeps it too. Lists whose items have a key,
such as containers, are merged item by item in Kubernetes' own kinds, since the API server writes defaults into the items; in custom
kinds a list is one value, as for kubectl.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

import msgspec

from phalanx.errors import Invalid
from phalanx.model.kinds import Document, Kind
from phalanx.model.merging import merged
from phalanx.store.kubernetes_types import FieldType, fields_of, type_of

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OF_THE_SERVER = (
    "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip

FIRST = ("Namespace", "PriorityClass", "StorageClass", "DeviceClass", "Topology", "Queue", "Node", "HyperNode", "PodGroup")
"""Other kinds refer to these, so they are created first and deleted last."""


def rank(document: Document) -> int:
    """Return a key that puts objects into the order in which they are to be created."""
    return FIRST.index(document["kind"]) if document["kind"] in FIRST else len(FIRST)


def wanted(kind: Kind, document: Document, namespace: str) -> dict[str, Any]:
    """Return what a manifest asks for: without what the server keeps, and in a namespace."""
    meta = {key: value for key, value in (document.get("metadata") or {}).items() if key not in OF_THE_SERVER}
    if not meta.get("name"):
        raise Invalid(f"{kind.kind}: metadata.name: missing; what is applied needs a name, to be found again")
    if kind.is_namespaced:
        meta.setdefault("namespace", namespace)
    else:
        meta.pop("namespace", None)
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key != LAST_APPLIED}
    if "annotations" in meta:
        meta["annotations"] = annotations
    rest = {key: value for key, value in document.items() if key != "metadata" and _is_ours(kind, key)}
    return {**rest, "metadata": meta}


def _is_ours(kind: Kind, key: str) -> bool:
    """Tell whether manifests may set a field; a status is the server's, but only manifests say what a simulated node offers."""
    return key != "status" or not kind.has_status or kind.kind == "Node"


def with_last_applied(document: Document) -> dict[str, Any]:
    """Return an object with itself in the annotation of what was applied last."""
    meta = document["metadata"]
    text = msgspec.json.encode(document, order="sorted").decode()
    return {**document, "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), LAST_APPLIED: text}}}


def change(document: Document, live: Document) -> dict[str, Any]:
    """Return the merge patch that makes an object what a manifest asks for; empty if it is."""
    fields = fields_of(type_of(str(document.get("apiVersion")), str(document.get("kind"))) or "")
    patch = _difference(_last(live), document, live, fields)
    if not patch:
        return {}
    note = with_last_applied(document)["metadata"]["annotations"][LAST_APPLIED]
    meta = patch.setdefault("metadata", {})
    meta["annotations"] = {**(meta.get("annotations") or {}), LAST_APPLIED: note}
    return patch


def _last(live: Document) -> Document:
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED, "{}")
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _difference(last: Document, document: Document, live: Document, fields: Mapping[str, FieldType]) -> dict[str, Any]:
    patch: dict[str, Any] = {key: None for key in last if key not in document and key in live}
    for key, value in document.items():
        there, before, part = live.get(key), last.get(key), fields.get(key)
        inside = fields_of(part.name) if part is not None else {}
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            old = before if isinstance(before, Mapping) else {}
            if inner := _difference(old, value, there, inside):
                patch[key] = inner
            continue
        field = part.merge_key if part is not None else None
        if field and _has_keys(value, field) and _has_keys(there, field):
            old_items = before if _has_keys(before, field) else []
            value = _merged_items(old_items, value, there, field, inside)
        if value != there and not (not value and there is None):
            patch[key] = value
    return patch


def _has_keys(items: Any, field: str) -> TypeGuard[list[Document]]:  # Any: as found in the object
    return isinstance(items, list) and all(isinstance(item, Mapping) and field in item for item in items)


def _merged_items(
    last: list[Document], wanted: list[Document], live: list[Document], field: str, fields: Mapping[str, FieldType]
) -> list[Document]:
    """Return the live items with what is wanted of each, then those that are new; without those that are wanted no longer."""
    before, asked = ({item[field]: item for item in items} for items in (last, wanted))
    kept = [item for item in live if item[field] in asked or item[field] not in before]
    there = {item[field] for item in kept}
    changed = [_merged_item(before.get(item[field], {}), asked.get(item[field], {}), item, fields) for item in kept]
    return [*changed, *(item for item in wanted if item[field] not in there)]


def _merged_item(last: Document, wanted: Document, live: Document, fields: Mapping[str, FieldType]) -> Document:
    """Return a live item as a manifest asks for it; one of which it says nothing is somebody else's."""
    return merged(live, _difference(last, wanted, live, fields)) if wanted else live
