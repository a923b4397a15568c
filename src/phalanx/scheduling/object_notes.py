"""Annotations that are on their way to the server: sessions see them as if they were there, whatever watches bring meanwhile."""

from collections.abc import Mapping
from dataclasses import replace

from phalanx.model.kinds import Document, Kind, object_key
from phalanx.model.watch_event import DELETED, WatchEvent

Place = tuple[Kind, str]
"""An object by kind and key."""
Texts = Mapping[str, str | None]
"""Annotations by name; None removes one."""


class ObjectNotes:
    """Knows what is on its way to each object; another one that has its name later has nothing of it."""

    def __init__(self) -> None:
        """Know of none."""
        self._notes: dict[Place, tuple[str, Texts]] = {}
        """With the uid of the object."""

    def __len__(self) -> int:
        """Return how many objects there are."""
        return len(self._notes)

    def put(self, kind: Kind, document: Document, texts: Texts) -> None:
        """Let an object bear annotations, in place of earlier ones of here."""
        self._notes[kind, object_key(document)] = document["metadata"].get("uid", ""), texts

    def drop(self, kind: Kind, key: str) -> None:
        """Go by what the object says."""
        self._notes.pop((kind, key), None)

    def applied(self, kind: Kind, document: Document) -> Document:
        """Return an object as it will be."""
        uid, texts = self._notes.get((kind, object_key(document)), ("", {}))
        meta = document["metadata"]
        if not texts or uid != meta.get("uid", ""):
            return document
        annotations = meta.get("annotations") or {}
        if all(annotations.get(name) == text for name, text in texts.items()):
            return document
        others = {name: text for name, text in annotations.items() if name not in texts}
        own = {name: text for name, text in texts.items() if text is not None}
        return {**document, "metadata": {**meta, "annotations": {**others, **own}}}

    def on(self, event: WatchEvent) -> WatchEvent:
        """Return a change as it would be reported if the annotations were there; with the object they are gone."""
        if event.type == DELETED:
            self.drop(event.kind, object_key(event.object))
            return event
        before = None if event.before is None else self.applied(event.kind, event.before)
        return replace(event, object=self.applied(event.kind, event.object), before=before)
