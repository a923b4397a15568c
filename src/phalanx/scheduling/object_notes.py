"""Annotations that are on their way to the server: sessions see them as if they were there, whatever watches bring meanwhile."""

from dataclasses import replace
from typing import NamedTuple

from phalanx.model.kinds import Document, Kind, object_key
from phalanx.model.watch_event import DELETED, WatchEvent

Place = tuple[Kind, str]
"""An object by kind and key."""


class Note(NamedTuple):
    """An annotation of one object, not of another that has its name later."""

    uid: str
    name: str
    text: str | None
    """None removes it."""


class ObjectNotes:
    """Knows what is on its way, one annotation for each object."""

    def __init__(self) -> None:
        """Know of none."""
        self._notes: dict[Place, Note] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._notes)

    def put(self, kind: Kind, document: Document, name: str, text: str | None) -> None:
        """Let an object bear an annotation, in place of an earlier one."""
        self._notes[kind, object_key(document)] = Note(document["metadata"].get("uid", ""), name, text)

    def drop(self, kind: Kind, key: str) -> None:
        """Go by what the object says."""
        self._notes.pop((kind, key), None)

    def applied(self, kind: Kind, document: Document) -> Document:
        """Return an object as it will be."""
        note = self._notes.get((kind, object_key(document)))
        if note is None:
            return document
        meta = document["metadata"]
        annotations = meta.get("annotations") or {}
        if note.uid != meta.get("uid", "") or annotations.get(note.name) == note.text:
            return document
        others = {name: text for name, text in annotations.items() if name != note.name}
        own = {} if note.text is None else {note.name: note.text}
        return {**document, "metadata": {**meta, "annotations": {**others, **own}}}

    def on(self, event: WatchEvent) -> WatchEvent:
        """Return a change as it would be reported if the annotation were there; with the object its note is gone."""
        if event.type == DELETED:
            self.drop(event.kind, object_key(event.object))
            return event
        before = None if event.before is None else self.applied(event.kind, event.before)
        return replace(event, object=self.applied(event.kind, event.object), before=before)
