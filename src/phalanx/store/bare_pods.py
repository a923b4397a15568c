"""Groups for the pods of manifests that name none, made by the controllers that make them on a running cluster.

Such a pod is a gang of one, or of the pods of its owner. The controllers see the manifests through a store in memory.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from phalanx.controllers.controller import Controller
from phalanx.errors import ClusterError
from phalanx.model.kinds import POD, Document, split_key
from phalanx.store.memory import MemoryStore
from phalanx.store.reconciliation import Reconciliation


@dataclass(slots=True)
class GroupedPods:
    """Groups that were made, pods that name them now, and what was wrong."""

    documents: list[Document] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def grouped_pods(documents: Iterable[Document], pods: Sequence[str], controllers: Sequence[Controller], now: float) -> GroupedPods:
    """Let controllers group the pods with these keys; `documents` are all objects."""
    store = MemoryStore(lambda: now)
    for document in documents:
        with suppress(ClusterError):  # a kind that nobody serves, or the same object again
            store.load(_with_uid(document))
    run = Reconciliation(store, controllers)
    for key in pods:
        pod = store.find(POD, *split_key(key))
        if pod is not None:
            run.look_at(POD, pod)
    run.run()
    refused = [f"{name}: {answer}" for name, answer in run.refused.items()]
    return GroupedPods(list(run.documents()), [*run.problems, *refused])


def _with_uid(document: Document) -> Document:
    """Return a pod with a uid, which its group is named after: its own, or its name."""
    meta = document["metadata"]
    return {**document, "metadata": {"uid": meta["name"], **meta}} if document["kind"] == "Pod" else document
