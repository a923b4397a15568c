"""Writes of sessions and controllers, carried out on the store at once."""

from collections.abc import Callable

from phalanx.controllers.controller import Bind, Create, Delete, Evict, Patch, RecordEvent, Write
from phalanx.errors import Exists, Missing
from phalanx.model.kinds import Document
from phalanx.store import patches
from phalanx.store.memory import MemoryStore


class Pen:
    """Writes what it is told to."""

    def __init__(self, store: MemoryStore) -> None:
        """Write to a store."""
        self._store = store
        self.told: list[Callable[[RecordEvent], None]] = []
        """Told of every event that somebody wants to be known."""
        self.evicting: list[Callable[[Evict], None]] = []
        """Told of every pod that has to go, before it does; a budget may still say no."""
        self.evicted: list[Callable[[Evict], None]] = []
        """Told of every pod that was told to go."""

    def write(self, write: Write) -> None:
        """Carry out one write; a refusal is raised."""
        match write:
            case Create(document):
                self._create(document)
            case Patch(kind, namespace, name, patch, is_status):
                form = patches.STRATEGIC if write.is_by_type else patches.MERGE
                self._store.patch(kind, namespace, name, patch, form=form, is_status=is_status)
            case Delete():
                self._delete(write)
            case Evict():
                self._evict(write)
            case Bind(namespace, name, node, uid):
                self._store.bind(namespace, name, node, uid=uid)
            case RecordEvent():
                for listener in self.told:
                    listener(write)

    def _create(self, document: Document) -> None:
        try:
            self._store.create(document)
        except Exists:
            return

    def _delete(self, write: Delete) -> None:
        try:
            self._store.delete(write.kind, write.namespace, write.name, uid=write.uid)
        except Missing:
            return

    def _evict(self, write: Evict) -> None:
        for listener in self.evicting:
            listener(write)
        try:
            self._store.evict(write.namespace, write.name, uid=write.uid)
        except Missing:
            return
        for listener in self.evicted:
            listener(write)
