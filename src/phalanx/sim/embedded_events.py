"""Events of a running cluster: what happened to pods and groups, in the words that kube-scheduler uses."""

from collections import deque

from phalanx.controllers.controller import RecordEvent
from phalanx.controllers.objects import group_of
from phalanx.errors import ClusterError
from phalanx.explain.event_text import GangEvent, bind_text, eviction_text
from phalanx.model.gang import Gang
from phalanx.model.kinds import EVENT, POD, Document, Kind, kind_of, object_key
from phalanx.model.moment import moment_text
from phalanx.model.watch_event import MODIFIED, WatchEvent
from phalanx.session.decision import Eviction
from phalanx.store.memory import MemoryStore

KEPT_SECONDS = 3600.0
"""As long as a real API server keeps them."""


class EventWriter:
    """Writes events to a store and removes old ones."""

    def __init__(self, store: MemoryStore) -> None:
        """Begin to listen."""
        self._store = store
        self._written: deque[tuple[float, str, str]] = deque(
            (store.now, item["metadata"]["namespace"], item["metadata"]["name"]) for item in store.items(EVENT)
        )
        store.listen(self._hear)

    def _hear(self, event: WatchEvent) -> None:
        if event.kind is not POD or event.type != MODIFIED or event.before is None:
            return
        node = event.object["spec"].get("nodeName")
        if node and not event.before["spec"].get("nodeName"):
            self._write(POD, event.object, "Scheduled", bind_text(object_key(event.object), node))

    def evicted(self, eviction: Eviction) -> None:
        """A pod has to go."""
        pod = self._store.find(POD, eviction.task.namespace, eviction.task.name)
        if pod is not None:
            self._write(POD, pod, "Preempted", eviction_text(eviction))

    def waits(self, gang: Gang, why: str) -> None:
        """A gang waits, for a reason that was not known before."""
        self._on_group(gang, "FailedScheduling", why, is_warning=True)

    def happened(self, item: GangEvent) -> None:
        """A gang starts, or its time is up."""
        self._on_group(item.group, item.reason, item.message, is_warning=item.is_warning)

    def _on_group(self, gang: Gang, reason: str, message: str, *, is_warning: bool) -> None:
        group = group_of(self._store, gang)
        if group is not None:
            self.tell(RecordEvent(group, reason, message, is_warning=is_warning))

    def tell(self, event: RecordEvent) -> None:
        """A controller wants something to be known."""
        self._write(
            kind_of(event.about), event.about, event.reason, event.message, type_="Warning" if event.is_warning else "Normal"
        )

    def _write(self, kind: Kind, about: Document, reason: str, message: str, *, type_: str = "Normal") -> None:
        meta, moment = about["metadata"], moment_text(int(self._store.now))
        namespace = meta.get("namespace") or "default"
        involved = {
            "apiVersion": kind.api_version, "kind": kind.kind,
            "namespace": meta.get("namespace", ""), "name": meta["name"], "uid": meta.get("uid", ""),
        }  # fmt: skip
        try:
            made = self._store.create({
                "apiVersion": "v1", "kind": "Event", "type": type_, "reason": reason, "message": message, "count": 1,
                "metadata": {"namespace": namespace, "generateName": f"{meta['name']}."}, "involvedObject": involved,
                "firstTimestamp": moment, "lastTimestamp": moment, "source": {"component": "phalanx"},
                "reportingComponent": "phalanx",
            })  # fmt: skip
        except ClusterError:
            return  # its namespace is being deleted: nobody will ask
        self._written.append((self._store.now, namespace, made["metadata"]["name"]))
        self._forget_old()

    def _forget_old(self) -> None:
        while self._written and self._written[0][0] < self._store.now - KEPT_SECONDS:
            _, namespace, name = self._written.popleft()
            if self._store.find(EVENT, namespace, name) is not None:
                self._store.delete(EVENT, namespace, name)
