"""Those who make gangs: they create groups and pods, replace what is lost, scale, suspend, finish and go, as operators do."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from phalanx.dialects.group_references import COSCHEDULING_GROUP, GROUP, KOORDINATOR_GANG
from phalanx.dialects.koordinator import MIN_AVAILABLE
from phalanx.errors import ClusterError
from phalanx.model.kinds import POD, Document, Kind, kind_at
from phalanx.model.moment import moment_of
from phalanx.model.task_status import ENDED
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.store.memory import MemoryStore
from phalanx.testing.storm.replica import SCHEDULER

NAMESPACE = "default"
VOLCANO, COSCHEDULING, JOB, BARE = "volcano", "coscheduling", "job", "bare"
NATIVE, KOORDINATOR = "native", "koordinator"
DIALECTS = (VOLCANO, VOLCANO, COSCHEDULING, COSCHEDULING, JOB, JOB, BARE, NATIVE, KOORDINATOR)
"""Some are drawn more often than others."""
OF_ONE_SIZE = (NATIVE, KOORDINATOR)
"""Gangs whose minimum stays when their owner scales them: it cannot be changed, or pods say it."""
VOLCANO_GROUP, COSCHEDULING_KIND = kind_at("scheduling.volcano.sh", "podgroups"), kind_at("scheduling.x-k8s.io", "podgroups")
BATCH_JOB, NATIVE_GROUP = kind_at("batch", "jobs"), kind_at("scheduling.k8s.io", "podgroups")
OBJECT_KINDS: dict[str, Kind] = {
    VOLCANO: VOLCANO_GROUP, COSCHEDULING: COSCHEDULING_KIND, JOB: BATCH_JOB, NATIVE: NATIVE_GROUP,
}  # fmt: skip
GATE = "storm/hold"
INDEX = "storm/index"
AFTERWARDS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody wants to run."""

    name: str
    dialect: str
    size: int
    gpus: int
    priority: str
    queue: str
    seconds: float
    """How long it works once all of it runs."""
    at: float
    """When it is submitted."""
    restarts_whole: bool = False
    """Its owner makes all of its pods anew when it loses one, as many operators do."""
    one_by_one: bool = False
    """Its owner makes the next pod a while after the one before, as those do that make a leader first and then its workers."""
    gated: float = 0.0
    """For so many seconds somebody holds each of its pods back by a scheduling gate, as quota controllers do."""


class Pods:
    """The pods of a store by the label `app`: those who look after gangs ask twice a second, and each for their own."""

    def __init__(self, store: MemoryStore) -> None:
        """Follow a store."""
        self.store = store
        self._by_app: dict[str, dict[str, Document]] = {}
        store.listen(self._hear)
        self.look_anew()

    def of(self, app: str) -> list[Document]:
        """Return the pods of an app in the order of their names."""
        found = self._by_app.get(app, {})
        return [found[name] for name in sorted(found)]

    def look_anew(self) -> None:
        """Take the store as it is: it was set back, and nobody told what changed by that."""
        self._by_app = {}
        for pod in self.store.items(POD):
            self._found(pod)[pod["metadata"]["name"]] = pod

    def _hear(self, event: WatchEvent) -> None:
        if event.kind is not POD:
            return
        if event.type == DELETED:
            self._found(event.object).pop(event.object["metadata"]["name"], None)
        else:
            self._found(event.object)[event.object["metadata"]["name"]] = event.object

    def _found(self, pod: Document) -> dict[str, Document]:
        return self._by_app.setdefault((pod["metadata"].get("labels") or {}).get("app", ""), {})


class Workload:
    """One gang and whoever looks after it."""

    def __init__(self, order: Order, pods: Pods, clock: Callable[[], float]) -> None:
        """Begin when the order says."""
        self.order, self._pods, self._store, self._clock = order, pods, pods.store, clock
        self.begins_at, self.restarts_whole = order.at, order.restarts_whole
        self.size = self.minimum = order.size
        self.is_suspended = self.is_gone = False
        self._number = 0
        self._works_since: float | None = None
        self._done_at: float | None = None
        self.never_ends = False
        self.changed_at = float("-inf")
        """When its owner last wanted something else of it."""

    # --- what it has ---------------------------------------------------------------------------------------------------

    def pods(self) -> list[Document]:
        """Return its pods."""
        return self._pods.of(self.order.name)

    @property
    def kind(self) -> Kind | None:
        """The kind of its object, if it has one."""
        return OBJECT_KINDS.get(self.order.dialect)

    def _object(self) -> Document | None:
        return None if self.kind is None else self._store.find(self.kind, NAMESPACE, self.order.name)

    # --- what it does --------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due; a refusal of the server is no fault, it is tried again."""
        if self.is_gone or self._clock() < self.begins_at:
            return
        with suppress(ClusterError):
            if self._done_at is not None:
                self._end_when_due()
                return
            self._ensure_object()
            self._ensure_pods()
            self._open_gates()
            self._work()

    def _end_when_due(self) -> None:
        if self._done_at is not None and self._clock() >= self._done_at + AFTERWARDS_SECONDS:
            self.remove()

    def remove(self) -> None:
        """Delete everything, in a random order of nobody's choosing: first the object, then the pods."""
        self.is_gone = True
        with suppress(ClusterError):
            if self.kind is not None:
                self._store.delete(self.kind, NAMESPACE, self.order.name)
        for pod in self.pods():
            with suppress(ClusterError):
                self._store.delete(POD, NAMESPACE, pod["metadata"]["name"])

    def forget_pods(self) -> None:
        """Delete its pods; they are made anew under the same names, or others."""
        for pod in self.pods():
            with suppress(ClusterError):
                if not _leaves(pod):
                    self._store.delete(POD, NAMESPACE, pod["metadata"]["name"])

    def delete_object(self) -> None:
        """Delete its object alone; it is made anew."""
        if self.kind is not None:
            self._store.delete(self.kind, NAMESPACE, self.order.name)

    def scale(self, size: int) -> None:
        """Want more or fewer, and need all of them."""
        self.size, self.changed_at = size, self._clock()
        if self.order.dialect in OF_ONE_SIZE:
            return
        self.minimum = size
        if self._object() is not None and self.kind is not None:
            self._store.patch(self.kind, NAMESPACE, self.order.name, {"spec": self._spec()})

    def _spec(self) -> dict[str, Any]:
        if self.order.dialect == JOB:
            return {"parallelism": self.size}
        if self.order.dialect == NATIVE:
            return {"schedulingPolicy": {"gang": {"minCount": self.minimum}}}
        return {"minMember": self.minimum}

    def _ensure_object(self) -> None:
        if self.kind is None or self._object() is not None:
            return
        meta = {"namespace": NAMESPACE, "name": self.order.name}
        spec: dict[str, Any] = {**self._spec(), "priorityClassName": self.order.priority, "queue": self.order.queue}
        if self.order.dialect in (COSCHEDULING, NATIVE):
            spec = self._spec()
        if self.order.dialect == JOB:
            template = {"metadata": {"labels": {"app": self.order.name}}, "spec": {**self._pod_spec(), "restartPolicy": "Never"}}
            spec = {**self._spec(), "completions": self.size, "template": template}
        self._store.create({"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": meta, "spec": spec})

    def _ensure_pods(self) -> None:
        if self.restarts_whole and any(_leaves(pod) for pod in self.pods()):
            self.forget_pods()
            return
        there: dict[int, Document] = {}
        for pod in self.pods():
            index = int(pod["metadata"]["annotations"][INDEX])
            if (pod.get("status") or {}).get("phase") == "Failed" and not pod["metadata"].get("deletionTimestamp"):
                self._store.delete(POD, NAMESPACE, pod["metadata"]["name"])
            if not pod["metadata"].get("deletionTimestamp") or index not in there:
                there[index] = pod
        wanted = 0 if self.is_suspended else self.size
        for index, pod in there.items():
            if index >= wanted and not pod["metadata"].get("deletionTimestamp"):
                self._store.delete(POD, NAMESPACE, pod["metadata"]["name"])
        for index in range(wanted):
            if index not in there or (self.order.dialect == JOB and there[index]["metadata"].get("deletionTimestamp")):
                self._make(index)
                if self.order.one_by_one:
                    return

    def _make(self, index: int) -> None:
        self._number += 1
        name = f"{self.order.name}-{index}-{self._number}" if self.order.dialect == JOB else f"{self.order.name}-{index}"
        meta: dict[str, Any] = {
            "namespace": NAMESPACE, "name": name, "labels": {"app": self.order.name}, "annotations": {INDEX: str(index)},
        }  # fmt: skip
        if self.order.dialect == VOLCANO:
            meta["annotations"][GROUP] = self.order.name
        if self.order.dialect == COSCHEDULING:
            meta["labels"][COSCHEDULING_GROUP] = self.order.name
        if self.order.dialect == KOORDINATOR:
            meta["annotations"] |= {KOORDINATOR_GANG: self.order.name, MIN_AVAILABLE: str(self.minimum)}
        found = self._object()
        if self.order.dialect == JOB and found is not None:
            reference = {"apiVersion": found["apiVersion"], "kind": "Job", "name": self.order.name, "uid": found["metadata"]["uid"]}
            meta["ownerReferences"] = [{**reference, "controller": True}]
        spec = {**self._pod_spec(), **({"schedulingGates": [{"name": GATE}]} if self.order.gated else {})}
        self._store.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    def _open_gates(self) -> None:
        """Let pods pass that were held back for long enough."""
        for pod in self.pods() if self.order.gated else ():
            meta = pod["metadata"]
            age = self._store.now - (moment_of(meta["creationTimestamp"]) or 0.0)
            if pod["spec"].get("schedulingGates") and age >= self.order.gated:
                self._store.patch(POD, NAMESPACE, meta["name"], {"spec": {"schedulingGates": None}})

    def _pod_spec(self) -> dict[str, Any]:
        asks = {"cpu": "1", "nvidia.com/gpu": str(self.order.gpus)}
        container = {"name": "main", "image": "train:1", "resources": {"requests": asks, "limits": asks}}
        group = {"schedulingGroup": {"podGroupName": self.order.name}} if self.order.dialect == NATIVE else {}
        return {
            "schedulerName": SCHEDULER, "containers": [container], "priorityClassName": self.order.priority,
            "terminationGracePeriodSeconds": 5, **group,
        }  # fmt: skip

    def _work(self) -> None:
        """Finish once everybody has run for long enough."""
        running = [pod for pod in self.pods() if (pod.get("status") or {}).get("phase") == "Running" and not _leaves(pod)]
        if self.never_ends or self.is_suspended or len(running) < self.size:
            self._works_since = None
            return
        self._works_since = self._works_since if self._works_since is not None else self._clock()
        if self._clock() - self._works_since >= self.order.seconds:
            for pod in running:
                self._store.patch(POD, NAMESPACE, pod["metadata"]["name"], {"status": {"phase": "Succeeded"}}, is_status=True)
            self._done_at = self._clock()

    def fail(self, index: int) -> None:
        """Let one of its pods fail."""
        for pod in self.pods():
            if int(pod["metadata"]["annotations"][INDEX]) == index and (pod.get("status") or {}).get("phase") == "Running":
                self._store.patch(POD, NAMESPACE, pod["metadata"]["name"], {"status": {"phase": "Failed"}}, is_status=True)

    def members(self) -> Iterator[Document]:
        """Yield those of its pods that hold a place."""
        for pod in self.pods():
            if pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in ENDED and not _leaves(pod):
                yield pod


def _leaves(pod: Document) -> bool:
    return "deletionTimestamp" in pod["metadata"]
