"""Watches the API server directly, past every proxy, and judges each event: who is bound where, and whether a node or a queue
holds too much.

Room counts as taken from the bind until the pod has ended or is gone. A node that holds too much for a moment is counted when a new
leader came shortly before: what the old one had on the wire may still land, and is rolled back within seconds. Everything else is a
violation: one that lasts, and one that no change of leaders explains. A bind that takes a queue beyond its limit is one likewise.
"""

import http.client
import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from phalanx.model.kinds import Document
from phalanx.model.resources import read_resources
from phalanx.testing.storm.invariants import QueueUse, excess, has_place, holds_room
from tests.chaos.gangs import LABEL, QUEUE, QUEUES
from tests.chaos.kubelet import Kubelet
from tests.chaos.violations import Findings
from tests.support.http_api import Connection

PODS, LEASES = "/api/v1/pods", "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
LASTING_SECONDS = 20.0
"""Beyond this a node that holds too much is a violation, whoever leads."""
EXPLAINED_SECONDS = 20.0
"""For so long after a change of leaders a passing one is explained."""
LIMITS = {name: read_resources(spec["capability"], where="capability") for name, spec in QUEUES.items()}


class Follower:
    """Follows a path of the API server in a thread: a list, then watches, for as long as the server is there or comes back."""

    def __init__(self, connection: Connection, path: str, notice: Callable[[str, dict[str, Any]], None]) -> None:
        """Call `notice` with the type of each event and its object; what a list does not have any more is DELETED."""
        self._connection, self._path, self._notice = connection, path, notice
        self._known: dict[str, dict[str, Any]] = {}
        self.is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._version = ""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        while not self.is_over.is_set():
            try:
                self._list()
                self._watch()
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                self.is_over.wait(0.2)

    def _list(self) -> None:
        if self._version:
            return
        found = self._connection.ask("GET", self._path)
        if found.code != 200:
            raise OSError(f"{self._path}: {found.code}")
        items = {item["metadata"]["uid"]: item for item in found.body["items"]}
        for uid in [uid for uid in self._known if uid not in items]:
            self._take("DELETED", self._known[uid])
        for item in sorted(items.values(), key=_takes_room):  # in which order it changed, a list does not tell
            self._take("MODIFIED", item)
        self._version = found.body["metadata"]["resourceVersion"]

    def _watch(self) -> None:
        for event in self._connection.watch(self._path, seconds=25, resourceVersion=self._version):
            if self.is_over.is_set():
                return
            if event["type"] == "ERROR":
                self._version = ""  # whatever it is, a list knows what is so now
                raise OSError(str(event["object"].get("message")))
            self._version = event["object"]["metadata"]["resourceVersion"]
            self._take(event["type"], event["object"])

    def _take(self, type_: str, item: dict[str, Any]) -> None:
        uid = item["metadata"]["uid"]
        if type_ == "DELETED":
            self._known.pop(uid, None)
        else:
            self._known[uid] = item
        self._notice(type_, item)


def _takes_room(item: Document) -> tuple[bool, bool]:
    return holds_room(item), has_place(item)


@dataclass(slots=True)
class Excess:
    """A node that holds more than it has."""

    began: float
    text: str
    is_explained: bool
    is_told: bool = False


@dataclass(slots=True)
class Ledger:
    """What each node and queue holds, judged at every event. Only one thread may note events of pods."""

    nodes: Mapping[str, Document]
    findings: Findings
    clock: Callable[[], float] = time.monotonic
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    """All pods that are there, by uid."""
    seen: dict[str, float] = field(default_factory=dict)
    """When each pod was seen first, by uid."""
    left_at: dict[str, float] = field(default_factory=dict)
    """When each pod was seen leaving first, by uid."""
    bound_at: dict[str, float] = field(default_factory=dict)
    """When a pod of a gang was bound last."""
    use: QueueUse = field(default_factory=lambda: QueueUse(LIMITS))
    withdrawn: set[str] = field(default_factory=set)
    """Gangs that are being deleted: without its group nobody knows any more in which queue a pod is."""
    nodes_of: dict[str, str] = field(default_factory=dict)
    """The node of each pod that ever had one, by uid."""
    changed: float = 0.0
    """When a pod changed last."""
    leader_since: float = float("-inf")
    _members: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    """The same by gang."""
    _held: dict[str, dict[str, Document]] = field(default_factory=lambda: defaultdict(dict))
    _excess: dict[str, Excess] = field(default_factory=dict)

    def note(self, type_: str, pod: dict[str, Any]) -> None:
        """Take an event in, and judge its node."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        self.changed = self.clock()
        self.seen.setdefault(uid, self.changed)
        if type_ == "DELETED" or pod["metadata"].get("deletionTimestamp"):
            self.left_at.setdefault(uid, self.changed)
        for known in (self.pods, self._members[_gang(pod)]):
            if type_ == "DELETED":
                known.pop(uid, None)
            else:
                known[uid] = pod
        if node:
            self._note_node(uid, node, pod, is_there=type_ != "DELETED" and holds_room(pod))

    def _note_node(self, uid: str, node: str, pod: dict[str, Any], *, is_there: bool) -> None:
        if is_bind := uid not in self.nodes_of:
            self.bound_at[_gang(pod)] = self.changed
        self._note_queue(pod, is_there=is_there, is_bind=is_bind)
        before = self.nodes_of.setdefault(uid, node)
        if before != node:
            self.findings.violate("pod bound twice", f"{_name(pod)} ({uid}) was on {before} and is on {node}")
        if is_there:
            self._held[node][uid] = pod
        else:
            self._held[node].pop(uid, None)
        self._judge(node)

    def _note_queue(self, pod: dict[str, Any], *, is_there: bool, is_bind: bool) -> None:
        if not (queue := pod["metadata"].get("labels", {}).get(QUEUE, "")):
            return
        for held in [held for held in self.use.pods[queue].values() if _gang(held) in self.withdrawn]:
            self.use.note(queue, held, is_there=False)
        self.use.note(queue, pod, is_there=is_there and _gang(pod) not in self.withdrawn)
        if is_bind and _gang(pod) not in self.withdrawn and (found := self.use.beyond(queue)) is not None:
            seconds = self.clock() - self.leader_since
            if seconds <= EXPLAINED_SECONDS:
                self.findings.count("binds beyond a limit that a change of leaders explains")
            else:
                self.findings.violate(found.invariant, f"{found.text}; no leader has changed for {seconds:.0f} s")

    def _judge(self, node: str) -> None:
        now, held = self.clock(), self._held[node].values()
        over = list(excess(self.nodes[node], held)) if node in self.nodes else []
        found = self._excess.get(node)
        if over and found is None:
            text = f"{node} holds {', '.join(over)}: {', '.join(sorted(map(_name, held)))}"
            self._excess[node] = Excess(now, text, now - self.leader_since <= EXPLAINED_SECONDS)
            if not self._excess[node].is_explained:
                self.findings.violate("node over-committed", f"{text}; no leader has changed for {now - self.leader_since:.0f} s")
        elif not over and found is not None:
            del self._excess[node]
            if not found.is_told:
                self.findings.say(f"for {now - found.began:.1f} s {found.text}")
                self.findings.count("passing over-commitments")

    def look(self) -> None:
        """Tell of nodes that have held too much for too long."""
        for found in list(self._excess.values()):
            if not found.is_told and self.clock() - found.began > LASTING_SECONDS:
                found.is_told = True
                self.findings.violate("node over-committed for long", f"{found.text}; for more than {LASTING_SECONDS:.0f} s")

    def gang(self, name: str) -> Counter[str]:
        """Return how many pods of a gang there are, have a node, and have ended well."""
        found: Counter[str] = Counter()
        for pod in list(self._members[name].values()):
            found["all"] += 1
            found["bound"] += bool(pod["spec"].get("nodeName"))
            found["succeeded"] += pod["status"].get("phase") == "Succeeded"
        return found


class Recorder:
    """Use it in ``with``."""

    def __init__(self, connection: Connection, namespace: str, findings: Findings, kubelet: Kubelet) -> None:
        """Watch everything that matters, and let a kubelet know of pods."""
        self._findings, self._kubelet = findings, kubelet
        nodes = connection.ask("GET", "/api/v1/nodes").body["items"]
        self.ledger = Ledger({node["metadata"]["name"]: node for node in nodes}, findings)
        self._holder = ""
        lease = LEASES.format(namespace)
        self._followers = [Follower(connection, PODS, self._note_pod), Follower(connection, lease, self._note_lease)]

    def _note_pod(self, type_: str, pod: dict[str, Any]) -> None:
        self.ledger.note(type_, pod)
        self._kubelet.notice(type_, pod)

    def _note_lease(self, type_: str, lease: dict[str, Any]) -> None:
        holder = str(lease["spec"].get("holderIdentity") or "")
        if holder != self._holder:
            self._findings.count("changes of the leader")
            self.ledger.leader_since, self._holder = time.monotonic(), holder

    @property
    def leader(self) -> str:
        """The name of the replica that leads."""
        return self._holder.partition("_")[0]

    def __enter__(self) -> Self:
        """Begin."""
        for follower in self._followers:
            follower.start()
        return self

    def __exit__(self, *problem: object) -> None:
        """End."""
        for follower in self._followers:
            follower.is_over.set()


def _gang(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get(LABEL, ""))


def _name(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["name"])
