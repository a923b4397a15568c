"""The part of a cluster that a submission touches: a store in memory into which objects come when somebody asks for them.

Of tens of thousands of objects few are needed, and to load one takes a hundred times as long as to note where it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from phalanx.errors import ClusterError
from phalanx.model.kinds import (
    LIMIT_RANGE,
    NAMESPACE,
    POD,
    PRIORITY,
    RESOURCE_QUOTA,
    RUNTIME_CLASS,
    SILENT,
    STORAGE_CLASS,
    Document,
    Kind,
    object_key,
)
from phalanx.store.completion import known_kind
from phalanx.store.memory import MemoryStore

CLUSTER_WIDE = frozenset({NAMESPACE, PRIORITY, RUNTIME_CLASS, STORAGE_CLASS})
LISTED = CLUSTER_WIDE | {LIMIT_RANGE, RESOURCE_QUOTA}
"""Kinds of which all objects are read, not single ones by their names."""
FIRST_NUMBER = 1 << 44
"""Uids that are given out to new objects begin here, far from those of an embedded cluster."""
ALWAYS_LISTED = "kube-system"
"""A namespace that every list of a real cluster has, and few manifests."""
Index = dict[Kind, dict[str, Document]]


class SubmissionStore(MemoryStore):
    """A store above objects of a cluster, which come into it one by one: when they are asked for by name."""

    def __init__(self, now: float) -> None:
        """Begin as every cluster does."""
        self._beneath: Index = {}
        super().__init__(lambda: now)
        self.numbers = FIRST_NUMBER

    def lay_above(self, beneath: Index) -> None:
        """Find these objects too."""
        self._beneath = beneath

    def around(self, kind: Kind) -> Iterable[Document]:
        """Return the objects of a kind in the namespaces of the submission that nobody has asked for yet."""
        return self._beneath.get(kind, {}).values()

    def find(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """Return one object, or None."""
        found = super().find(kind, namespace, name)
        return self._fetched(kind, namespace, name) if found is None else found

    def get(self, kind: Kind, namespace: str, name: str) -> Document:
        """Return one object."""
        self.find(kind, namespace, name)
        return super().get(kind, namespace, name)

    def _fetched(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """Take an object in from beneath; nobody hears of it, since nothing has changed."""
        document = self._beneath.get(kind, {}).pop(f"{namespace or 'default'}/{name}", None)
        if document is None:
            return None
        listeners, self._listeners = self._listeners, []
        try:
            return self.load(document)
        finally:
            self._listeners = listeners


def store_around(
    new: Sequence[Document], existing: Iterable[Document], *, also: frozenset[str] = frozenset(), now: float
) -> SubmissionStore:
    """Return a store with what of a cluster the submission of some objects may touch.

    `also` are the keys of ConfigMaps in other namespaces that are read. A cluster that lists all its namespaces has no others; of
    one that is described by a few manifests, those that the new objects name are taken to be there.
    """
    namespaces, store = frozenset(map(_namespace, new)), SubmissionStore(now)
    beneath: Index = {}
    listed = _sorted_in(existing, namespaces, also, beneath)
    _load(store, listed)
    is_whole = any(known_kind(document) is NAMESPACE and document["metadata"]["name"] == ALWAYS_LISTED for document in listed)
    for name in () if is_whole else sorted(namespaces):
        if store.find(NAMESPACE, "", name) is None:
            store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    _load(store, _below(new, beneath))
    store.lay_above(beneath)
    return store


def _sorted_in(existing: Iterable[Document], namespaces: frozenset[str], also: frozenset[str], beneath: Index) -> list[Document]:
    """Return the objects of which all are read; enter the others that may be needed into an index."""
    listed: list[Document] = []
    pods = beneath.setdefault(POD, {})
    for document in existing:
        if document.get("kind") == "Pod":
            namespace = _namespace(document)
            if namespace in namespaces:
                pods[f"{namespace}/{document['metadata'].get('name')}"] = document
            continue
        kind = known_kind(document)
        if kind is None or (kind.kind in SILENT and object_key(document) not in also):
            continue
        if kind in LISTED and (kind in CLUSTER_WIDE or _namespace(document) in namespaces):
            listed.append(document)
        elif kind.is_namespaced and (_namespace(document) in namespaces or object_key(document) in also):
            beneath.setdefault(kind, {})[object_key(document)] = document
    return listed


def _load(store: MemoryStore, documents: Iterable[Document]) -> None:
    """Load objects, namespaces first; those that every cluster has are there already, but perhaps not as they are here."""
    for document in sorted(documents, key=lambda item: bool(item["kind"] != "Namespace")):
        kind = _known(document)
        if kind in CLUSTER_WIDE and store.find(kind, "", document["metadata"]["name"]) is not None:
            own = {"uid": f"{kind.plural}-{document['metadata']['name']}", "resourceVersion": "1"}
            store.restore([{**document, "metadata": {**own, **document["metadata"]}}], version=0, numbers=0)
            continue
        with suppress(ClusterError):  # the same object again
            store.load(document)


def _below(new: Iterable[Document], beneath: Index) -> list[Document]:
    """Take the objects that are submitted again, and everything below them, out of the index."""
    kinds = ((known_kind(document), object_key(document)) for document in new)
    again = [beneath[kind][key] for kind, key in kinds if kind is not None and key in beneath.get(kind, {})]
    waiting = list(again)
    children = _by_owner(beneath) if waiting else {}
    while waiting:
        fresh = children.pop(str(waiting.pop()["metadata"].get("uid") or ""), [])
        again += fresh
        waiting += fresh
    for document in again:
        beneath[_known(document)].pop(object_key(document), None)
    return again


def _known(document: Document) -> Kind:
    kind = known_kind(document)
    assert kind is not None, "only objects of kinds that are known come into an index"
    return kind


def _by_owner(beneath: Index) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for document in (item for objects in beneath.values() for item in objects.values()):
        for owner in owner_uids(document):
            found.setdefault(owner, []).append(document)
    return found


def _namespace(document: Document) -> str:
    meta: Any = document.get("metadata")
    return str((meta.get("namespace") if isinstance(meta, dict) else None) or "default")


def owner_uids(document: Document) -> Iterator[str]:
    """Yield the uids of the owners of an object."""
    for owner in document["metadata"].get("ownerReferences") or ():
        yield str(owner.get("uid") or "?")
