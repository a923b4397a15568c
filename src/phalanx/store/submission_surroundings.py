"""The part of a cluster that a submission touches: a store in memory with what controllers and admission read, and no more.

Of tens of thousands of pods only those below an owner that is submitted again are needed.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from phalanx.errors import ClusterError
from phalanx.model.kinds import NAMESPACE, PRIORITY, RUNTIME_CLASS, SILENT, STORAGE_CLASS, Document, object_key
from phalanx.store.completion import known_kind
from phalanx.store.memory import MemoryStore

CLUSTER_WIDE = (NAMESPACE, PRIORITY, RUNTIME_CLASS, STORAGE_CLASS)
FIRST_NUMBER = 1 << 44
"""Uids that are given out to new objects begin here, far from those of an embedded cluster."""


@dataclass(slots=True)
class Surroundings:
    """What a submission may touch, by namespace."""

    namespaces: frozenset[str]
    also: frozenset[str] = frozenset()
    """Keys of ConfigMaps in other namespaces that are read."""
    is_whole: bool = False
    """The objects are those of a real cluster, which lists its namespaces: one that is not among them does not exist."""
    others: list[Document] = field(default_factory=list)
    pods: list[Document] = field(default_factory=list)

    def add(self, document: Document) -> None:
        """Keep an object if it may be needed."""
        name = document.get("kind")
        if name in SILENT and object_key(document) not in self.also:
            return
        if name == "Pod":
            if _namespace(document) in self.namespaces:
                self.pods.append(document)
            return
        kind = known_kind(document)
        if kind is not None and (kind in CLUSTER_WIDE or (kind.is_namespaced and _is_near(self, document))):
            self.others.append(document)
            self.is_whole |= kind is NAMESPACE

    def needed_pods(self, new: Iterable[Document]) -> list[Document]:
        """Return the pods that are submitted again, or are below an owner that is."""
        keys = {(document.get("kind"), object_key(document)) for document in new}
        again = [document for document in self.others if (document["kind"], object_key(document)) in keys]
        below = self._below({_uid(document) for document in again}) if again else set()
        return [pod for pod in self.pods if ("Pod", object_key(pod)) in keys or not below.isdisjoint(owner_uids(pod))]

    def _below(self, uids: set[str]) -> set[str]:
        """Return the uids of owners and of everything below them."""
        children: dict[str, list[str]] = {}
        for document in (*self.others, *self.pods):
            for owner in owner_uids(document):
                children.setdefault(owner, []).append(_uid(document))
        waiting, found = list(uids), set(uids)
        while waiting:
            fresh = [uid for uid in children.get(waiting.pop(), ()) if uid not in found]
            found.update(fresh)
            waiting += fresh
        return found


def surroundings(new: Sequence[Document], existing: Iterable[Document], also: frozenset[str] = frozenset()) -> Surroundings:
    """Return what of a cluster the submission of some objects may touch."""
    found = Surroundings(frozenset(map(_namespace, new)), also)
    for document in existing:
        found.add(document)
    return found


def store_of(found: Surroundings, pods: Iterable[Document], now: float) -> MemoryStore:
    """Return a store with the objects of surroundings, and with some of their pods."""
    store = MemoryStore(lambda: now)
    store.numbers = FIRST_NUMBER
    for document in sorted((*found.others, *pods), key=lambda item: item["kind"] != "Namespace"):
        with suppress(ClusterError):  # a namespace that every cluster has, or the same object again
            store.load(document)
    for name in () if found.is_whole else sorted(found.namespaces):
        if store.find(NAMESPACE, "", name) is None:
            store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return store


def _is_near(found: Surroundings, document: Document) -> bool:
    return _namespace(document) in found.namespaces or object_key(document) in found.also


def _namespace(document: Document) -> str:
    meta: Any = document.get("metadata")
    return str((meta.get("namespace") if isinstance(meta, dict) else None) or "default")


def _uid(document: Document) -> str:
    return str(document["metadata"].get("uid") or "")


def owner_uids(document: Document) -> Iterator[str]:
    """Yield the uids of the owners of an object."""
    for owner in document["metadata"].get("ownerReferences") or ():
        yield str(owner.get("uid") or "?")
