"""Those who make gangs: they create groups and pods, replace what is lost, scale, suspend, finish and go, as operators do."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

from phalanx.errors import ClusterError
from phalanx.model.kinds import POD, VOLUME_CLAIM, Document, Kind, kind_at
from phalanx.model.moment import moment_of
from phalanx.model.task_status import ENDED
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.store.memory import MemoryStore
from phalanx.testing.storm.orders import (
    GATE,
    INDEX,
    JOB,
    KAI_GROUP,
    NAMESPACE,
    OBJECT_KINDS,
    OF_ONE_SIZE,
    OWNING,
    SIZED_WHEN_MADE,
    VOLCANO_JOB,
    Order,
    claim_name,
    claim_of,
    object_of,
    pod_of,
    spec_of,
)

AFTERWARDS_SECONDS = 5.0
NOT_ADMITTED = ("", "Pending")
COMMAND = kind_at("bus.volcano.sh", "commands")
ABORT, RESUME = "AbortJob", "ResumeJob"
ABORTED, AT_WORK = "Aborted", ("Pending", "Running", "Restarting")


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

    def object(self) -> Document | None:
        """Return its object, if it is there."""
        return None if self.kind is None else self._store.find(self.kind, NAMESPACE, self.order.name)

    def group(self) -> Document | None:
        """Return the group of its pods: its object, or what the pod grouper made for that."""
        found = self.object()
        if found is None or self.order.dialect not in OWNING:
            return found
        return next(iter(self._store.owned(found["metadata"]["uid"], KAI_GROUP)), None)

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
        for index in range(self.size) if self.order.has_claims else ():
            with suppress(ClusterError):
                self._store.delete(VOLUME_CLAIM, NAMESPACE, claim_name(self.order, index))

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
        if self.object() is not None and self.kind is not None:
            self._store.patch(self.kind, NAMESPACE, self.order.name, {"spec": spec_of(self.order, self.size, self.minimum)})

    def _ensure_object(self) -> None:
        if self.kind is not None and self.object() is None:
            if self.order.dialect in SIZED_WHEN_MADE:
                self.minimum = self.size
            self._store.create(object_of(self.order, self.size, self.minimum))

    def _ensure_pods(self) -> None:
        if self.restarts_whole and any(_leaves(pod) for pod in self.pods()):
            self.forget_pods()
            return
        there: dict[int, Document] = {}
        for pod in self.pods():
            index = int(pod["metadata"]["annotations"][INDEX])
            if _phase(pod) == "Failed" and not pod["metadata"].get("deletionTimestamp"):
                self._store.delete(POD, NAMESPACE, pod["metadata"]["name"])
            if not pod["metadata"].get("deletionTimestamp") or index not in there:
                there[index] = pod
        wanted = 0 if self.is_suspended else self.size
        for index, pod in there.items():
            if index >= wanted and not pod["metadata"].get("deletionTimestamp"):
                self._store.delete(POD, NAMESPACE, pod["metadata"]["name"])
        for index in range(wanted) if self._may_make() else ():
            if index not in there or (self.order.dialect == JOB and there[index]["metadata"].get("deletionTimestamp")):
                self._make(index)
                if self.order.one_by_one:
                    return

    def _may_make(self) -> bool:
        """Tell whether pods may be made: some owners wait until their group is admitted."""
        group = self.object() if self.order.after_admission else None
        return group is None or (group.get("status") or {}).get("phase", "") not in NOT_ADMITTED

    def _make(self, index: int) -> None:
        self._number += 1
        if self.order.has_claims and self._store.find(VOLUME_CLAIM, NAMESPACE, claim_name(self.order, index)) is None:
            self._store.create(claim_of(self.order, index))
        self._store.create(pod_of(self.order, index, number=self._number, minimum=self.minimum, owner=self.object()))

    def _open_gates(self) -> None:
        """Let pods pass that were held back for long enough."""
        for pod in self.pods() if self.order.gated else ():
            meta = pod["metadata"]
            age = self._store.now - (moment_of(meta["creationTimestamp"]) or 0.0)
            gates = pod["spec"].get("schedulingGates") or []
            if {"name": GATE} in gates and age >= self.order.gated:
                left = [gate for gate in gates if gate != {"name": GATE}]
                self._store.patch(POD, NAMESPACE, meta["name"], {"spec": {"schedulingGates": left}})

    def _work(self) -> None:
        """Let pods be done that have run for long enough while everybody was there; once all are, it is over."""
        running = [pod for pod in self.pods() if _phase(pod) == "Running" and not _leaves(pod)]
        if self.never_ends or self.is_suspended or len(running) + self.done() < self.size:
            self._works_since = None
            return
        self._works_since = self._works_since if self._works_since is not None else self._clock()
        worked = self._clock() - self._works_since
        for pod in running:
            if worked >= self.order.seconds * self._share_of(pod):
                self._store.patch(POD, NAMESPACE, pod["metadata"]["name"], {"status": {"phase": "Succeeded"}}, is_status=True)
        if worked >= self.order.seconds:
            self._done_at = self._clock()

    def _share_of(self, pod: Document) -> float:
        """Return after which share of the time a pod is done."""
        return Random(f"{self.order.seconds} {pod['metadata']['name']}").random() if self.order.ends_apart else 1.0

    def done(self) -> int:
        """Return how many of its pods have ended well."""
        return sum(_phase(pod) == "Succeeded" and not _leaves(pod) for pod in self.pods())

    def fail(self, index: int) -> None:
        """Let one of its pods fail."""
        for pod in self.pods():
            if int(pod["metadata"]["annotations"][INDEX]) == index and _phase(pod) == "Running":
                self._store.patch(POD, NAMESPACE, pod["metadata"]["name"], {"status": {"phase": "Failed"}}, is_status=True)

    def members(self) -> Iterator[Document]:
        """Yield those of its pods that hold a place."""
        for pod in self.pods():
            if pod["spec"].get("nodeName") and _phase(pod) not in ENDED and not _leaves(pod):
                yield pod


class ControlledWorkload(Workload):
    """A Job of Volcano's: Phalanx's own controller makes its pods, and commands suspend it."""

    def _ensure_pods(self) -> None:
        found = self.object() or {}
        phase = ((found.get("status") or {}).get("state") or {}).get("phase", "")
        wanted = (ABORT if phase in AT_WORK else "") if self.is_suspended else (RESUME if phase == ABORTED else "")
        is_said = any(item["target"]["name"] == self.order.name for item in self._store.items(COMMAND))
        if wanted and not is_said:
            self._number += 1
            self._store.create(self._command(found, wanted))

    def _command(self, job: Document, action: str) -> Document:
        target = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": self.order.name, "uid": job["metadata"]["uid"]}
        meta = {"namespace": NAMESPACE, "name": f"{self.order.name}-{self._number}"}
        return {"apiVersion": COMMAND.api_version, "kind": COMMAND.kind, "metadata": meta, "action": action, "target": target}

    def fail(self, index: int) -> None:
        """Let one of its pods fail; the job begins anew then."""
        running = [pod for pod in self.pods() if _phase(pod) == "Running"]
        for pod in running[index : index + 1]:
            self._store.patch(POD, NAMESPACE, pod["metadata"]["name"], {"status": {"phase": "Failed"}}, is_status=True)


def workload_of(order: Order, pods: Pods, clock: Callable[[], float]) -> Workload:
    """Return who looks after a gang."""
    return (ControlledWorkload if order.dialect == VOLCANO_JOB else Workload)(order, pods, clock)


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _leaves(pod: Document) -> bool:
    return "deletionTimestamp" in pod["metadata"]
