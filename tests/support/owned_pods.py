"""Owners of other projects and their pods in a few words, for tests of grouping.

store = workloads.store(job, *workloads.pods(job, 4))
group = workloads.grouped(store, "train-0")
"""

from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.controllers.controller import Create, Key, Patch, Result, Write
from phalanx.controllers.grouper.controller import PodGrouper
from phalanx.controllers.grouper.settings import GrouperSettings
from phalanx.controllers.objects import owner_reference
from phalanx.model.kinds import Document
from phalanx.store.memory import MemoryStore
from phalanx.testing import build

NAMESPACE, KAI = "default", "kai-scheduler"
Texts = Mapping[str, str]


def owner(
    api_version: str, kind: str, name: str = "train", *, spec: Any = None, by: Document | None = None, labels: Texts | None = None,
    annotations: Texts | None = None, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return an object that owns pods, or others who do; `by` is its own owner, `more` are its other fields."""
    meta: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "uid": f"{kind.lower()}-{name}"}
    meta |= {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
    if by is not None:
        meta["ownerReferences"] = [owner_reference(by)]
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": {} if spec is None else spec, **more}


def pod(
    name: str = "train-0", *, by: Document | None = None, labels: Texts | None = None, annotations: Texts | None = None,
    scheduler: str = KAI, **asks: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return a pod of an owner; it asks for one cpu unless said otherwise."""
    found = build.pod(name, spec={"schedulerName": scheduler}, **{"cpu": 1, **asks})
    found["metadata"] |= {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
    if by is not None:
        found["metadata"]["ownerReferences"] = [owner_reference(by)]
    return found


def store(*documents: Document) -> MemoryStore:
    """Return a store with these objects."""
    found = MemoryStore(lambda: 1000.0)
    for document in documents:
        found.load(document)
    return found


def asked(store: MemoryStore, pod: str = "train-0", settings: GrouperSettings | None = None) -> Result:
    """Ask the grouper about a pod."""
    return PodGrouper(settings).reconcile(store, Key(NAMESPACE, pod))


def grouped(store: MemoryStore, pod: str = "train-0", settings: GrouperSettings | None = None) -> dict[str, Any]:
    """Let a pod be grouped; return its group. The grouper must then have nothing left to say."""
    result = asked(store, pod, settings)
    carry_out(store, result.writes)
    assert not asked(store, pod, settings).writes, "the grouper does not converge"
    return dict(next(write.document for write in result.writes if isinstance(write, Create)))


def carry_out(store: MemoryStore, writes: Sequence[Write]) -> None:
    """Write what a controller said; events are left out."""
    for write in writes:
        if isinstance(write, Create):
            store.create(write.document)
        elif isinstance(write, Patch):
            store.patch(write.kind, write.namespace, write.name, write.patch, is_status=write.is_status)
