"""Objects as the API server completes them when they are created, for whoever makes objects: the store in memory, and manifests.

A pod gets the defaults of its fields and what admission plugins add, a volume claim the default class, an object of a custom kind
the defaults of its schema, and pods and custom objects what our mutating policies change. Nothing is refused here but a new pod
whose priority class does not exist.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from phalanx.dialects.pod_defaults import SYSTEM_CLASSES, completed_pod
from phalanx.dialects.supporting import LEGACY_CLASS
from phalanx.errors import ClusterError, Forbidden
from phalanx.model.kinds import (
    GROUP_KINDS,
    LIMIT_RANGE,
    NAMESPACE,
    POD,
    PRIORITY,
    RUNTIME_CLASS,
    STORAGE_CLASS,
    VOLUME_CLAIM,
    Document,
    Kind,
    kind_at,
    kind_of,
    object_key,
)
from phalanx.store import admission
from phalanx.store.missing_references import MissingReference, Naming, gathered

READ = (NAMESPACE, PRIORITY, LIMIT_RANGE, RUNTIME_CLASS, STORAGE_CLASS)
"""Kinds that decide how others are completed."""
USUAL_CLASS, KAI_GROUP = "train", kind_at("scheduling.run.ai", "podgroups")
"""The class that our grouper and KAI's write into groups, with the priority that a group has without any: nothing is missing."""
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NOT_UNDERSTOOD = (TypeError, AttributeError, KeyError, ValueError)
"""What comes of completing an object of which not even the outlines are right."""


class ClusterObjects(Protocol):
    """The objects of a cluster."""

    def within(self, kind: Kind, namespace: str = "") -> Iterable[Document]: ...

    def find(self, kind: Kind, namespace: str, name: str) -> Document | None: ...


def completed(kind: Kind, document: Document, objects: ClusterObjects) -> Document:
    """Return a new object as it is stored, before it is checked."""
    made: Document = completed_pod(document, objects) if kind is POD else document
    if kind is VOLUME_CLAIM:
        made = completed_claim(document, objects)
    if not admission.has_rules(kind, is_new=True):
        return made
    name = str(made["metadata"].get("namespace") or "default")
    return admission.completed_by_rules(kind, made, objects.find(NAMESPACE, "", name) if kind.is_namespaced else None)


def completed_claim(claim: Document, objects: ClusterObjects) -> Document:
    """Return a volume claim that names no class with the default class of the cluster; an empty name asks for none."""
    spec = claim.get("spec") or {}
    if spec.get("storageClassName") is not None or LEGACY_CLASS in ((claim.get("metadata") or {}).get("annotations") or {}):
        return claim
    defaults = [item for item in objects.within(STORAGE_CLASS) if _is_default(item)]
    if not defaults:
        return claim
    newest = max(defaults, key=lambda item: (str(item["metadata"].get("creationTimestamp") or ""), _name(item)))
    return {**claim, "spec": {**spec, "storageClassName": _name(newest)}}


def _is_default(storage_class: Document) -> bool:
    return ((storage_class.get("metadata") or {}).get("annotations") or {}).get(DEFAULT_CLASS) == "true"


class ManifestObjects:
    """The objects of manifests, in whatever order, that decide how the others are completed."""

    def __init__(self, documents: Iterable[Any]) -> None:  # Any: as found in a file
        """Keep what is needed; what is no such object is left to others."""
        self._classes_of_pods: list[Naming] = []
        """Priority classes that are not among the objects, and the pods that name them."""
        self._classes_of_groups: list[Naming] = []
        """The same of PodGroups."""
        self._items: dict[Kind, list[Document]] = {kind: [] for kind in READ}
        for document in documents:
            kind = known_kind(document)
            if kind in self._items and _name(document):
                self._items[kind].append(document)

    def within(self, kind: Kind, namespace: str = "") -> Iterable[Document]:
        """Return the objects of a kind."""
        return [item for item in self._items.get(kind, ()) if not namespace or _namespace(item) == namespace]

    def find(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """Return an object of no namespace."""
        return next((item for item in self._items.get(kind, ()) if _name(item) == name), None)

    def complete(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return an object of a manifest as it would be stored. One with a uid was stored before, and is complete."""
        kind = known_kind(document)
        if kind in GROUP_KINDS:
            self._note_class(document)
        if kind is None or not _name(document) or document["metadata"].get("uid"):
            return document
        try:
            return dict(self._completed(kind, document))
        except (*NOT_UNDERSTOOD, ClusterError):
            return document  # whoever reads it says what is wrong with it

    def _note_class(self, group: Document) -> None:
        spec = group.get("spec")
        name = spec.get("priorityClassName") if isinstance(spec, Mapping) and spec.get("priority") is None else None
        if name == USUAL_CLASS and known_kind(group) is KAI_GROUP:
            return
        if isinstance(name, str) and name and name not in SYSTEM_CLASSES and self.find(PRIORITY, "", name) is None:
            self._classes_of_groups.append((PRIORITY.kind, name, f"PodGroup {object_key(group)}"))

    def _completed(self, kind: Kind, document: Document) -> Document:
        """Complete an object; a pod whose priority class is missing has priority 0, as its class may be in the cluster."""
        if kind is POD and not isinstance(document.get("spec"), Mapping):
            return document
        try:
            return completed(kind, document, self)
        except Forbidden:
            self._classes_of_pods.append((PRIORITY.kind, document["spec"]["priorityClassName"], f"Pod {object_key(document)}"))
            return completed(kind, {**document, "spec": {**document["spec"], "priority": 0}}, self)

    def missing(self) -> list[MissingReference]:
        """Return the priority classes that are missing, those of pods before those of PodGroups."""
        return [*gathered(sorted(self._classes_of_pods)), *gathered(sorted(self._classes_of_groups))]


def known_kind(document: Any) -> Kind | None:
    """Return the kind of an object; None if it is none, or nobody serves it."""
    try:
        return kind_of(document) if isinstance(document, Mapping) else None
    except ClusterError:
        return None


def _name(document: Document) -> str:
    meta = document.get("metadata")
    return str(meta.get("name") or "") if isinstance(meta, Mapping) else ""


def _namespace(document: Document) -> str:
    return str(document["metadata"].get("namespace") or "default")
