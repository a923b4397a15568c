"""Groups for the pods of manifests that name none, made by the controllers that make them on a running cluster.

Such a pod is a gang of one, or of the pods of its owner. The controllers see the manifests through a store in memory.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from phalanx.controllers.controller import Controller, Create, Patch, RecordEvent, Write
from phalanx.errors import ClusterError
from phalanx.model.kinds import POD, Document, object_key, split_key
from phalanx.store.memory import MemoryStore


@dataclass(slots=True)
class GroupedPods:
    """Groups that were made, pods that name them now, and what was wrong."""

    documents: list[Document] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def grouped_pods(documents: Iterable[Document], pods: Sequence[str], controllers: Sequence[Controller], now: float) -> GroupedPods:
    """Let controllers group the pods with these keys; `documents` are all objects."""
    store, found = MemoryStore(lambda: now), GroupedPods()
    for document in documents:
        with suppress(ClusterError):  # a kind that nobody serves, or the same object again
            store.load(_with_uid(document))
    for key in pods:
        for controller in controllers:
            _group(store, controller, key, found)
    return found


def _with_uid(document: Document) -> Document:
    """Return a pod with a uid, which its group is named after: its own, or its name."""
    meta = document["metadata"]
    return {**document, "metadata": {"uid": meta["name"], **meta}} if document["kind"] == "Pod" else document


def _group(store: MemoryStore, controller: Controller, key: str, found: GroupedPods) -> None:
    pod = store.find(POD, *split_key(key))
    for concerned in controller.concerns(store, POD, pod) if pod is not None else ():
        for write in controller.reconcile(store, concerned).writes:
            try:
                _carry_out(store, write, found)
            except ClusterError as problem:
                found.problems.append(f"Pod {key}: {problem}")
                return


def _carry_out(store: MemoryStore, write: Write, found: GroupedPods) -> None:
    match write:
        case Create(document):
            found.documents.append(store.create(document))
        case Patch(kind, namespace, name, patch, is_status):
            found.documents.append(store.patch(kind, namespace, name, patch, is_status=is_status))
        case RecordEvent(about, _, message, is_warning) if is_warning:
            found.problems.append(f"{about.get('kind', 'Pod')} {object_key(about)}: {message}")
