"""What of an object has changed: the fields of its parts that differ, and those that are gone.

A pod is heard of four times and more, and only a field or two differ: to write the whole of it each time takes most of what a
recording costs. Only fields that are recorded are compared. Whoever reads a recording gets whole objects again, by `KnownObjects`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from phalanx.dialects.cluster import group_and_kind
from phalanx.dialects.recorded_fields import ALWAYS, ANNOTATED, Takes, TakesByPart, is_recorded, part_taken, recorded, takes_by_part
from phalanx.model.kinds import POD, Document
from phalanx.recording.entries import AnyEntry, Changed, Gone, Header, Landed, Put
from phalanx.scheduling.cache import TOPOLOGY
from phalanx.state.quorum import MINIMA

Parts = dict[str, dict[str, Any]]  # Any: as JSON has it
Place = tuple[str, str, str, str]
LABELS, SPEC = "labels", "spec"
POD_PLACE = (POD.group, POD.kind)
OF_ONE_OBJECT = ("name", "namespace", "uid", "creationTimestamp")
"""Metadata that never changes: with another uid it is another object."""


def entry_of(before: Document | None, after: Document) -> AnyEntry | None:
    """Return the entry for an object that came or changed; None for a kind that is not recorded."""
    found = None if before is None else _changed(before, after)
    if found is not None:
        return found
    kept = recorded(after)
    return None if kept is None else Put(kept)


class LandedEntries:
    """Makes entries for pods of which the cache knows that only a bind has come through; nothing is left to be compared.

    Pods that are bound in one second have the same status, and it is written once: to compare takes half as long as to write.
    """

    def __init__(self) -> None:
        """Begin before the first of them."""
        self._status: object = self

    def forget(self) -> None:
        """Write everything the next time."""
        self._status = self

    def entry(self, after: Document, *, has_same_labels: bool) -> Landed:
        """Return the entry for such a pod."""
        meta, status = after["metadata"], after.get("status")
        labels = None if has_same_labels else _topology(meta.get(LABELS) or {})
        place = meta.get("namespace", ""), meta["name"], after["spec"]["nodeName"], labels, (meta.get(ANNOTATED) or {}).get(MINIMA)
        if self._status == status:
            return Landed(*place, None, has_last_status=True)
        self._status = status
        return Landed(*place, part_taken(POD_PLACE, "status")(status))


def _topology(labels: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in labels.items() if name.startswith(TOPOLOGY)}


def _changed(before: Document, after: Document) -> Changed | None:
    """Return what differs; None where that is no matter of some fields, and the object is to be written as a whole."""
    version, kind = str(after["apiVersion"]), str(after["kind"])
    parts, meta = _parts(version, kind), after["metadata"]
    if parts is None or before["apiVersion"] != version or before["metadata"].get("uid") != meta.get("uid"):
        return None
    found = _difference(parts, before, after)
    return None if found is None else Changed(version, kind, meta.get("namespace", ""), meta["name"], *found)


@cache
def _parts(version: str, kind: str) -> TakesByPart | None:
    """Return the parts of objects of a kind that may differ, without what names it; None if they are not recorded."""
    place = group_and_kind({"apiVersion": version, "kind": kind})
    if not is_recorded(*place):
        return None
    parts = {part: takes for part, takes in takes_by_part(place).items() if part not in ALWAYS}
    return parts | {"metadata": {name: take for name, take in (parts["metadata"] or {}).items() if name not in OF_ONE_OBJECT}}


def _difference(parts: TakesByPart, before: Document, after: Document) -> tuple[Parts, list[tuple[str, str]]] | None:
    """Return the fields that are recorded and differ, and those that are gone; None where a value by itself differs."""
    new: Parts = {}
    gone: list[tuple[str, str]] = []
    for part, takes in parts.items():
        old, value = before.get(part), after.get(part)
        # Other parts are not compared as a whole: most differ, be it by a version that is not recorded, and go field by field then.
        if old is value or (part == SPEC and old == value):
            continue
        if takes is None or type(old) is not dict or type(value) is not dict:
            if old == value:
                continue
            return None
        if fields := _other_fields(takes, old, value):
            new[part] = fields
        if not old.keys() <= value.keys():
            # Names of fields that are not recorded are nobody's business either.
            gone += [(part, key) for key in old if key in takes and key not in value]
    return new, gone


def _other_fields(takes: Takes, old: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:  # Any: as above
    found: dict[str, Any] = {}
    for key, item in value.items():
        if key in takes and (key not in old or old[key] != item):
            take = takes[key]
            found[key] = item if take is None else take(item)
    return found


class KnownObjects:
    """The objects of a recording as far as it was read, so that changes become whole objects."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._objects: dict[Place, dict[str, Any]] = {}  # Any: as JSON has it
        self._status: dict[str, Any] | None = None  # Any: as above
        """Of the pod that landed last."""

    def whole(self, entry: AnyEntry) -> AnyEntry | None:
        """Return an entry with the whole object in place of its change; None if the object is not known."""
        match entry:
            case Header():
                self._objects.clear()
            case Put():
                self._objects[_place_of(entry.object)] = entry.object
            case Gone():
                self._objects.pop(_place(entry), None)
            case Changed():
                return self._merged(entry)
            case Landed():
                return self._bound(entry)
            case _:
                pass
        return entry

    def _merged(self, change: Changed) -> Put | None:
        known = self._objects.get(_place(change))
        if known is None:
            return None
        found = known | {part: known.get(part, {}) | fields for part, fields in change.fields.items()}
        for part, key in change.gone:
            found[part] = {name: value for name, value in found.get(part, {}).items() if name != key}
        self._objects[_place(change)] = found
        return Put(found)

    def _bound(self, landed: Landed) -> Put | None:
        if not landed.has_last_status:
            self._status = landed.status
        place = (*POD_PLACE, landed.namespace, landed.name)
        known = self._objects.get(place)
        if known is None:
            return None
        found = {
            **known,
            "metadata": _bound_metadata(known["metadata"], landed),
            "spec": {**known["spec"], "nodeName": landed.node},
        }
        found |= {} if self._status is None else {"status": self._status}
        self._objects[place] = found
        return Put(found)


def _bound_metadata(meta: dict[str, Any], landed: Landed) -> dict[str, Any]:  # Any: as above
    labels = meta.get(LABELS) or {}
    if landed.labels is not None:
        labels = {name: text for name, text in labels.items() if not name.startswith(TOPOLOGY)} | landed.labels
    annotations = {name: text for name, text in (meta.get(ANNOTATED) or {}).items() if name != MINIMA}
    annotations |= {} if landed.minima is None else {MINIMA: landed.minima}
    now = {LABELS: labels, ANNOTATED: annotations}
    return {**meta, **{name: texts for name, texts in now.items() if texts or name in meta}}


def _place_of(document: dict[str, Any]) -> Place:  # Any: as above
    meta = document.get("metadata")
    found: Mapping[str, Any] = meta if isinstance(meta, Mapping) else {}
    return *group_and_kind(document), str(found.get("namespace") or ""), str(found.get("name") or "")


def _place(entry: Changed | Gone) -> Place:
    group, kind = group_and_kind({"apiVersion": entry.api_version, "kind": entry.kind})
    return group, kind, entry.namespace, entry.name
