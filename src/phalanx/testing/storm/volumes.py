"""Who makes the volumes of a storm: a claim gets one a while after it is known on which node its pod is to run."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from phalanx.dialects.supporting import BOUND, SELECTED_NODE
from phalanx.errors import ClusterError
from phalanx.model.kinds import VOLUME, VOLUME_CLAIM, Document
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.store.memory import MemoryStore
from phalanx.testing.storm.orders import STORAGE_CLASS

PROVISIONER = "storm.phalanx.dev"


class Volumes:
    """Makes volumes, and deletes them with their claims."""

    def __init__(self, store: MemoryStore, chance: Random, later: Callable[[float, Callable[[], None]], Any]) -> None:
        """Listen; `later` calls something after some seconds."""
        self._store, self._chance, self._later = store, chance, later
        meta = {"metadata": {"name": STORAGE_CLASS}, "provisioner": PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer"}
        store.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **meta})
        store.listen(self._hear)

    def look_anew(self) -> None:
        """Go by what the store says now that it was set back."""
        for claim in self._store.items(VOLUME_CLAIM):
            self._take_in(claim)

    def _hear(self, event: WatchEvent) -> None:
        if event.kind is not VOLUME_CLAIM:
            return
        if event.type == DELETED:
            with suppress(ClusterError):
                self._store.delete(VOLUME, "", _volume_of(event.object))
        else:
            self._take_in(event.object)

    def _take_in(self, claim: Document) -> None:
        if SELECTED_NODE in (claim["metadata"].get("annotations") or {}) and not claim["spec"].get("volumeName"):
            self._later(
                self._chance.uniform(0.1, 2.0), lambda: self._make(claim["metadata"]["namespace"], claim["metadata"]["name"])
            )

    def _make(self, namespace: str, name: str) -> None:
        claim = self._store.find(VOLUME_CLAIM, namespace, name)
        if claim is None or claim["spec"].get("volumeName"):
            return
        volume, spec = _volume_of(claim), claim["spec"]
        named = {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
        made = {
            "storageClassName": STORAGE_CLASS, "accessModes": spec["accessModes"], "capacity": spec["resources"]["requests"],
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named},
        }  # fmt: skip
        with suppress(ClusterError):
            if self._store.find(VOLUME, "", volume) is None:
                self._store.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": made})
            bound = {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": volume}}
            self._store.patch(VOLUME_CLAIM, namespace, name, bound)
            self._store.patch(VOLUME_CLAIM, namespace, name, {"status": {"phase": "Bound"}}, is_status=True)


def _volume_of(claim: Document) -> str:
    return f"pv-{claim['metadata']['uid']}"
