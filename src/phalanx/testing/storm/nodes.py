"""The nodes of a storm and their kubelets: pods start and stop after a while, nodes die, come back, are drained and renamed."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from phalanx.errors import ClusterError
from phalanx.model.kinds import NODE, POD, Document
from phalanx.model.task_status import ENDED
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.store.memory import MemoryStore
from phalanx.testing.build import node
from phalanx.testing.storm.invariants import excess

DEAD = "node.kubernetes.io/unreachable"
GPUS, CPU = 4, 16
REFUSED = {"phase": "Failed", "reason": "OutOfnvidia.com/gpu", "message": "Pod was rejected: Node didn't have enough resource"}


class Nodes:
    """Plays all nodes."""

    def __init__(self, store: MemoryStore, chance: Random, later: Callable[[float, Callable[[], None]], Any]) -> None:
        """Listen; `later` calls something after some seconds."""
        self._store, self._chance, self._later = store, chance, later
        self._seen: dict[str, str] = {}
        self.dead: set[str] = set()
        self.admits_all = False
        self.refusing: set[str] = set()
        """Nodes to which binds are refused, and pods: the name of their workload, and their index."""
        store.listen(self._hear)
        store.binding.append(self._judge)

    def add(self, name: str) -> None:
        """Add a node."""
        self.dead.discard(name)
        if self._store.find(NODE, "", name) is None:
            self._store.create(node(name, gpus=GPUS, cpu=CPU))

    def names(self) -> list[str]:
        """Return who is there."""
        return [item["metadata"]["name"] for item in self._store.items(NODE)]

    def _judge(self, pod: Document, name: str) -> None:
        meta = pod["metadata"]
        who = f"{(meta.get('labels') or {}).get('app')} {(meta.get('annotations') or {}).get('storm/index')}"
        if name in self.refusing or who in self.refusing:
            raise ClusterError(f"node {name} refuses pod {meta['name']}")

    # --- kubelets ------------------------------------------------------------------------------------------------------

    def _hear(self, event: WatchEvent) -> None:
        if event.kind is POD and event.type == DELETED:
            self._seen[event.object["metadata"]["uid"]] = "gone"
        elif event.kind is POD:
            self._take_in(event.object)

    def _take_in(self, pod: Document) -> None:
        uid, state = pod["metadata"]["uid"], _state(pod)
        if self._seen.get(uid) == state:
            return
        self._seen[uid] = state
        if state == "bound":
            self._later(self._chance.uniform(0.1, 3.0), lambda: self._start(pod))
        elif state == "leaving":
            self._later(self._chance.uniform(0.1, 5.0), lambda: self._stop(pod))

    def look_anew(self) -> None:
        """Go by what the store says now that it was set back: who is there works, unless his node says that it does not."""
        self._seen = {}
        alive = {item["metadata"]["name"] for item in self._store.items(NODE) if not _is_dead(item)}
        self.dead -= alive
        for pod in self._store.items(POD):
            self._take_in(pod)

    def _start(self, pod: Document) -> None:
        if self._seen.get(pod["metadata"]["uid"]) == "bound" and pod["spec"]["nodeName"] not in self.dead:
            with suppress(ClusterError):
                self._patch(pod, {"phase": "Running"} if self._admits(pod) else REFUSED)

    def _admits(self, pod: Document) -> bool:
        """Tell whether a kubelet lets a pod start: with what runs there it has to fit."""
        name = pod["spec"]["nodeName"]
        running = [item for item in self._store.items(POD) if item["spec"].get("nodeName") == name and _runs(item)]
        machine = self._store.find(NODE, "", name)
        return self.admits_all or machine is None or not any(excess(machine, [*running, pod]))

    def _stop(self, pod: Document) -> None:
        """End a pod that leaves; on a dead node nobody does, until it is back or deleted."""
        if self._seen.get(pod["metadata"]["uid"]) != "leaving":
            return
        if pod["spec"].get("nodeName") in self.dead:
            self._later(2.0, lambda: self._stop(pod))
            return
        self._remove(pod)

    def _remove(self, pod: Document) -> None:
        meta = pod["metadata"]
        with suppress(ClusterError):
            self._store.delete(POD, meta["namespace"], meta["name"], grace=0, uid=meta["uid"])

    def _patch(self, pod: Document, status: Document) -> None:
        self._store.patch(POD, pod["metadata"]["namespace"], pod["metadata"]["name"], {"status": status}, is_status=True)

    def pods_on(self, name: str) -> list[Document]:
        """Return the pods of a node that have not ended."""
        pods = self._store.items(POD)
        return [pod for pod in pods if pod["spec"].get("nodeName") == name and _state(pod) not in ("ended", "waiting")]

    # --- what happens to nodes -------------------------------------------------------------------------------------------

    def die(self, name: str) -> None:
        """Let a node stop; what runs there is lost, and is told to leave after a while."""
        self.dead.add(name)
        taints = [{"key": DEAD, "effect": "NoSchedule"}, {"key": DEAD, "effect": "NoExecute"}]
        self._store.patch(NODE, "", name, {"spec": {"taints": taints}})
        self._ready(name, is_ready=False)
        self._later(self._chance.uniform(1.0, 10.0), lambda: self._evict_from_dead(name))

    def _evict_from_dead(self, name: str) -> None:
        for pod in self.pods_on(name) if name in self.dead else ():
            with suppress(ClusterError):
                self._store.delete(POD, pod["metadata"]["namespace"], pod["metadata"]["name"])

    def come_back(self, name: str) -> None:
        """Let a node work again, as it was or as a new one of the same name."""
        self.add(name)
        with suppress(ClusterError):
            self._store.patch(NODE, "", name, {"spec": {"taints": None, "unschedulable": None}})
            self._ready(name, is_ready=True)
        for pod in self.pods_on(name):
            if _state(pod) == "leaving":
                self._remove(pod)
            elif _state(pod) == "bound":
                self._later(self._chance.uniform(0.1, 3.0), partial(self._start, pod))

    def _ready(self, name: str, *, is_ready: bool) -> None:
        ready = {"type": "Ready", "status": "True" if is_ready else "Unknown"}
        self._store.patch(NODE, "", name, {"status": {"conditions": [ready]}}, is_status=True)

    def cordon(self, name: str) -> None:
        """Let a node take no more pods."""
        self._store.patch(NODE, "", name, {"spec": {"unschedulable": True}})

    def taint(self, name: str) -> None:
        """Keep a node for others."""
        self._store.patch(NODE, "", name, {"spec": {"taints": [{"key": "storm/kept", "effect": "NoSchedule"}]}})

    def drain(self, name: str) -> None:
        """Cordon a node and evict its pods."""
        self.cordon(name)
        for pod in self.pods_on(name):
            with suppress(ClusterError):
                self._store.evict(pod["metadata"]["namespace"], pod["metadata"]["name"])

    def delete(self, name: str) -> None:
        """Take a node away; the collector of pods removes what was on it."""
        self._store.delete(NODE, "", name)
        self.dead.add(name)
        for pod in self.pods_on(name):
            self._later(self._chance.uniform(0.0, 3.0), partial(self._remove, pod))


def _is_dead(machine: Document) -> bool:
    return any(taint["key"] == DEAD for taint in machine["spec"].get("taints") or ())


def _runs(pod: Document) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"


def _state(pod: Document) -> str:
    phase = (pod.get("status") or {}).get("phase", "Pending")
    if phase in ENDED:
        return "ended"
    if "deletionTimestamp" in pod["metadata"]:
        return "leaving"
    return "running" if phase == "Running" else "bound" if pod["spec"].get("nodeName") else "waiting"
