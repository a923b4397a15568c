"""Who owns which fields of an object, and server-side apply, which goes by it.

Everybody who writes through the API gets an entry in `metadata.managedFields`. Whoever applies owns exactly what is in the
manifest: what was in the last one and is in this one no longer goes, unless somebody else owns it too; and what somebody else owns
with another value is a conflict, unless it is forced.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from phalanx.errors import Conflict
from phalanx.model.kinds import Document, Kind
from phalanx.store.field_paths import Path, is_there, paths_of, read, shown, step_of, value_at, without, written
from phalanx.store.object_structure import Structure, structure_of

APPLY, UPDATE = "Apply", "Update"
OF_THE_SERVER = (
    "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "managedFields", "selfLink",
)  # fmt: skip
BEFORE = "before-first-apply"
"""Owns what was there before anybody was counted."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, when, and by which part of the API."""

    manager: str
    operation: str
    stamp: str
    api_version: str
    subresource: str = ""

    def is_same(self, other: "Writer") -> bool:
        """Tell whether entries of both are one: those who update are told apart by the version they write, too."""
        own, others = (
            (writer.manager, writer.operation, writer.subresource, writer.api_version if writer.operation == UPDATE else "")
            for writer in (self, other)
        )
        return own == others


@dataclass(frozen=True, slots=True)
class Entry:
    """The fields of one writer."""

    writer: Writer
    paths: frozenset[Path]


# --- entries -------------------------------------------------------------------------------------------------------------


def entries_of(document: Document) -> list[Entry]:
    """Return who owns what of an object."""
    return [_entry(item) for item in document["metadata"].get("managedFields") or ()]


def _entry(item: Mapping[str, Any]) -> Entry:
    writer = Writer(
        str(item.get("manager", "")), str(item.get("operation", "")), str(item.get("time", "")), str(item.get("apiVersion", "")),
        str(item.get("subresource", "")),
    )  # fmt: skip
    return Entry(writer, frozenset(read(item.get("fieldsV1") or {})))


def with_entries(document: Document, entries: Iterable[Entry]) -> dict[str, Any]:
    """Return an object with who owns what of it."""
    kept = [_document(entry) for entry in sorted(entries, key=_rank) if entry.paths]
    meta = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": {**meta, **({"managedFields": kept} if kept else {})}}


def _rank(entry: Entry) -> tuple[str, str, str, str, str]:
    writer = entry.writer
    return writer.operation, writer.stamp, writer.manager, writer.api_version, writer.subresource


def _document(entry: Entry) -> dict[str, Any]:
    writer = entry.writer
    found = {
        "manager": writer.manager, "operation": writer.operation, "apiVersion": writer.api_version, "time": writer.stamp,
        "fieldsType": "FieldsV1", "fieldsV1": written(entry.paths),
    }  # fmt: skip
    return {**found, **({"subresource": writer.subresource} if writer.subresource else {})}


def _owned(document: Document, structure: Structure, *, is_status: bool) -> frozenset[Path]:
    """Return the fields that somebody owns who sends an object."""
    return frozenset(path for path in paths_of(_mine(document, is_status=is_status), structure) if path)


def _mine(document: Document, *, is_status: bool) -> dict[str, Any]:
    """Return the part of an object that whoever sends it can own."""
    meta = {key: value for key, value in (document.get("metadata") or {}).items() if key not in OF_THE_SERVER}
    rest = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "metadata")}
    return {**({"metadata": meta} if meta else {}), **{key: value for key, value in rest.items() if (key == "status") == is_status}}


# --- updates -------------------------------------------------------------------------------------------------------------


def created(kind: Kind, document: Document, writer: Writer) -> dict[str, Any]:
    """Return a new object that its writer owns."""
    return with_entries(document, [Entry(writer, _owned(document, structure_of(kind), is_status=False))])


def changed(kind: Kind, old: Document, new: Document, writer: Writer) -> dict[str, Any]:
    """Return a changed object: its writer owns what is different now, and others no longer.

    Whoever sends other owners than there are sets them, as kubectl does when an object is applied on the server for the first time.
    """
    base = entries_of(new) if "managedFields" in new["metadata"] else entries_of(old)
    structure, is_status = structure_of(kind), writer.subresource == "status"
    after, before = (_owned(document, structure, is_status=is_status) for document in (new, old))
    mine = {path for path in after if value_at(new, structure, path) != value_at(old, structure, path)}
    lost = mine | (before - after)
    if not lost:
        return with_entries(new, base)
    others = [replace(entry, paths=entry.paths - lost) for entry in base if not entry.writer.is_same(writer)]
    own = next((entry.paths for entry in base if entry.writer.is_same(writer)), frozenset[Path]())
    return with_entries(new, [*others, Entry(writer, (own - lost) | mine)])


# --- apply ---------------------------------------------------------------------------------------------------------------


def applied(kind: Kind, live: Document, manifest: Document, writer: Writer, *, is_forced: bool) -> dict[str, Any]:
    """Return an object as it is when a manifest was applied."""
    structure, is_status = structure_of(kind), writer.subresource == "status"
    wanted = _owned(manifest, structure, is_status=is_status)
    entries = entries_of(live) or [
        Entry(replace(writer, manager=BEFORE, operation=UPDATE), _owned(live, structure, is_status=False))
    ]
    last = next((entry.paths for entry in entries if entry.writer.is_same(writer)), frozenset[Path]())
    others = [entry for entry in entries if not entry.writer.is_same(writer)]
    disputed = {path for path in wanted if value_at(manifest, structure, path) != value_at(live, structure, path)}
    if not is_forced:
        _refuse_conflicts(kind, live, [(entry.writer, sorted(entry.paths & disputed)) for entry in others])
    others = [replace(entry, paths=entry.paths - disputed) for entry in others]
    kept = frozenset[Path]().union(*(entry.paths for entry in others))
    made = merged(live, _mine(manifest, is_status=is_status), structure)
    for path in sorted(last - wanted - kept, reverse=True):
        if is_there(made, structure, path) and not any(other[: len(path)] == path for other in kept):
            made = without(made, structure, path)
    mine = next((entry for entry in entries if entry.writer.is_same(writer) and entry.paths == wanted), Entry(writer, wanted))
    return with_entries(made, [*others, mine])


def merged(old: Any, new: Any, structure: Structure) -> Any:  # Any: whatever JSON holds
    """Return a value with another one merged into it: maps by key, lists whose items are told apart by item."""
    if isinstance(old, Mapping) and isinstance(new, Mapping) and not structure.is_atomic:
        return {**old, **{name: merged(old.get(name), value, structure.at(name)) for name, value in new.items()}}
    if isinstance(old, list) and isinstance(new, list) and (structure.keys or structure.is_set):
        asked = {step_of(item, structure): item for item in new}
        there = {step_of(item, structure): item for item in old}
        found = {step: merged(item, asked[step], structure.item) if step in asked else item for step, item in there.items()}
        return list({**found, **{step: item for step, item in asked.items() if step not in there}}.values())
    return new


# --- conflicts -----------------------------------------------------------------------------------------------------------


def _refuse_conflicts(kind: Kind, live: Document, found: Sequence[tuple[Writer, Sequence[Path]]]) -> None:
    disputes = sorted((_named(writer), shown(path)) for writer, paths in found for path in paths)
    if not disputes:
        return
    count = f"{len(disputes)} conflict{'s' if len(disputes) > 1 else ''}"
    texts = [_dispute(name, [place for _, place in group]) for name, group in groupby(disputes, key=lambda item: item[0])]
    cause = ("FieldManagerConflict", f"conflict with {disputes[0][0]}")
    text = "\n".join(texts)
    raise Conflict(f"Apply failed with {count}: {text}", kind=kind.plural, name=str(live["metadata"].get("name", "")), cause=cause)


def _dispute(name: str, places: Sequence[str]) -> str:
    if len(places) == 1:
        return f"conflict with {name}: {places[0]}"
    return f"conflicts with {name}:\n" + "\n".join(f"- {place}" for place in places)


def _named(writer: Writer) -> str:
    below = f' with subresource "{writer.subresource}"' if writer.subresource else ""
    using = f" using {writer.api_version}" if writer.operation == UPDATE else ""
    return f'"{writer.manager}"{below}{using}'
