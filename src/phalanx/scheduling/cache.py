"""What the scheduler believes of the cluster: what watches report, and binds and evictions that were sent and not reported yet.

A session must not give a node away twice, nor wait for an echo after each bind. So a pod that was sent to a node is *assumed* to be
there, in every snapshot from then on, until the watch reports what became of it. If the bind is refused the pod is *forgotten*: it
stands where the API server last had it. An assumption that the cluster has overtaken (the pod was deleted, bound elsewhere, ended)
falls by itself. Nominations, bind requests and annotations on their way to the server are assumed in the same way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple, Protocol

from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.pods import scheduled_at
from phalanx.errors import SnapshotError
from phalanx.model.kinds import BIND_REQUEST, GROUP_BY_DIALECT, POD, SILENT, WORKLOADS, Document, Kind, kind_of, object_key
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import COMPLETED, Status
from phalanx.model.watch_event import DELETED, MODIFIED, WatchEvent
from phalanx.model.work_annotations import LAST_CHECKPOINT
from phalanx.scheduling.object_notes import ObjectNotes, Texts
from phalanx.state.quorum import are_same_but_for_minima, minima_of
from phalanx.state.snapshot import Snapshot

MEASUREMENTS = "NodeMetrics"
"""They come every few seconds; the session that is held next looks at them."""
TOPOLOGY = "topology.kubernetes.io/"
GROUPS = frozenset(GROUP_BY_DIALECT.values())


class Urgency(IntEnum):
    """How soon a session should look at a change."""

    NEVER = 0
    LATER = 1
    SOON = 2


@dataclass(frozen=True, slots=True)
class AssumedPod:
    """Where a pod is, or that it goes, if what was sent comes through; of a pending one, the node that is nominated for it."""

    uid: str
    status: Status
    node: str

    @property
    def is_nominated(self) -> bool:
        """Tell whether it is a nomination alone that was sent."""
        return self.status is Status.PENDING

    def fits(self, task: Task) -> bool:
        """Tell whether the cluster has not reported yet what became of the pod."""
        if task.uid != self.uid or task.status in COMPLETED:
            return False
        if self.is_nominated:
            return task.status is Status.PENDING and task.nominated_node != self.node
        return task.status is Status.PENDING if self.status is Status.BINDING else task.status is not Status.RELEASING

    def applied(self, task: Task) -> Task:
        """Return the pod as it will be."""
        return replace(task, nominated_node=self.node) if self.is_nominated else replace(task, status=self.status, node=self.node)


class QuarantinedObject(NamedTuple):
    """An object that cannot be understood, and why."""

    kind: Kind
    object: Document
    problem: str


class LandedPod(NamedTuple):
    """A pod that a bind of ours has brought to its node."""

    task: Task
    has_same_labels: bool
    """The bind has written no labels of the topology."""


class Journal(Protocol):
    """Is told of every change of a cache, before it is made, so that somebody can make the same changes again."""

    def noticed(self, event: WatchEvent, landed: LandedPod | None = None) -> None:
        """A change was reported; of a pod that has landed, only its status changed, and what a bind of ours writes."""
        ...

    def assumed(self, key: TaskKey, pod: "AssumedPod") -> None:
        """A pod is taken for what it will be."""
        ...

    def forgotten(self, key: TaskKey, uid: str) -> None:
        """A pod is taken for what its object says; every pod, if there is no key."""
        ...

    def request_assumed(self, request: Document) -> None:
        """A bind request is on its way."""
        ...

    def request_confirmed(self, request: Document, found: Document | None) -> None:
        """A bind request was answered."""
        ...


class SchedulerCache:
    """Changes of objects in, snapshots out; assumed pods stand where they were sent."""

    def __init__(self, cluster: ObjectCluster, *, report: Callable[[str], None]) -> None:
        """Begin with an empty cluster; `report` is called for objects that cannot be understood."""
        self._cluster, self._report = cluster, report
        cluster.as_assumed = self._with_assumed
        self._assumed: dict[TaskKey, AssumedPod] = {}
        self._notes = ObjectNotes()
        self._requests: dict[str, tuple[Document, str]] = {}
        """Bind requests that were asked for and not reported yet, each with the uid of the one that had its name before."""
        self._request_uids: dict[str, str] = {}
        self.journal: Journal | None = None
        self.quarantined: dict[str, QuarantinedObject] = {}
        """Objects that cannot be understood, by kind and name."""
        self.refused: list[Callable[[QuarantinedObject, SnapshotError], None]] = []
        """Called with each of them when it is found, and again when something else is wrong with it."""
        self.terms = 0
        """A number for what gangs wait under: it grows with whatever may help a gang that has not changed itself, but for pods."""

    @property
    def assumptions(self) -> tuple[dict[TaskKey, AssumedPod], list[Document]]:
        """The pods that are assumed, and the bind requests."""
        return dict(self._assumed), [request for request, _ in self._requests.values()]

    @property
    def cluster(self) -> ObjectCluster:
        """The objects as they are understood."""
        return self._cluster

    def snapshot(self, now: float) -> Snapshot:
        """Return the cluster as it is now."""
        return self._cluster.snapshot(now)

    # --- what is reported ---------------------------------------------------------------------------------------------

    def notice(self, event: WatchEvent) -> Urgency:
        """Enter a change; a broken object is reported once, and the rest goes on."""
        return self._take_in(self._notes.on(event) if self._notes else event)

    def _take_in(self, event: WatchEvent) -> Urgency:
        if event.kind is POD:
            return self._notice_pod(event)
        if self.journal is not None:
            self.journal.noticed(event)
        self._enter(event)
        if event.kind is BIND_REQUEST:
            self._notice_request(event)
        urgency = _urgency(event)
        if urgency is not Urgency.NEVER and _changes_terms(event):
            self.terms += 1
        return urgency

    def _notice_request(self, event: WatchEvent) -> None:
        """Take a bind request that was asked for as reported, unless the event is about the one before it, which goes first."""
        key, uid = object_key(event.object), str(event.object["metadata"].get("uid", ""))
        if event.type == DELETED:
            self._request_uids.pop(key, None)
        else:
            self._request_uids[key] = uid
        request, before = self._requests.get(key, (None, ""))
        if request is not None and before and uid == before:
            self._cluster.put(request)
        elif request is not None:
            del self._requests[key]

    def _notice_pod(self, event: WatchEvent) -> Urgency:
        key = TaskKey(object_key(event.object)) if self._assumed else TaskKey("")
        assumed = self._assumed.get(key)
        landed = self._landed(event, key, assumed) if assumed is not None else None
        if self.journal is not None:
            self.journal.noticed(event, landed)
        if landed is not None:
            del self._assumed[key]
            self._cluster.state.put_task(landed.task)
            return Urgency.NEVER
        self._enter(event)
        if event.type == DELETED:
            self._assumed.pop(key, None)
        if assumed is None or assumed.is_nominated:
            return _pod_urgency(event)
        task = self._cluster.state.task(key)
        if task is not None and key in self._assumed:
            return Urgency.NEVER
        self._assumed.pop(key, None)
        is_as_expected = task is not None and task.node == assumed.node and task.uid == assumed.uid and task.status not in COMPLETED
        return Urgency.NEVER if is_as_expected else Urgency.SOON

    def _landed(self, event: WatchEvent, key: TaskKey, assumed: AssumedPod) -> LandedPod | None:
        """Return the pod of a bind of ours that has come through, without reading it again; None if more has changed."""
        before, task = event.before, self._cluster.state.task(key)
        if event.type != MODIFIED or before is None or task is None or assumed.status is not Status.BINDING:
            return None
        if task.uid != assumed.uid or not self._cluster.stands_alone(task):
            return None
        if event.object["spec"] != {**before["spec"], "nodeName": assumed.node} or _is_other(before, event.object):
            return None
        old, new = before["metadata"].get("labels"), event.object["metadata"].get("labels")
        if (has_other_labels := old != new) and _own_labels(old) != _own_labels(new):
            return None
        minima = minima_of(event.object["metadata"].get("annotations") or {})
        found = replace(task, status=Status.BOUND, node=assumed.node, minima=minima, scheduled=scheduled_at(event.object))
        return LandedPod(found, not has_other_labels)

    def _enter(self, event: WatchEvent) -> None:
        try:
            if event.type == DELETED:
                self._cluster.remove(event.object)
            else:
                self._cluster.put(event.object)
        except SnapshotError as problem:
            self._quarantine(event, problem)
        else:
            if self.quarantined:
                self.quarantined.pop(_place(event), None)

    def _quarantine(self, event: WatchEvent, problem: SnapshotError) -> None:
        place, found = _place(event), QuarantinedObject(event.kind, event.object, str(problem))
        before, self.quarantined[place] = self.quarantined.get(place), found
        if before is None or before.problem != found.problem:
            self._report(found.problem)
            for listener in self.refused:
                listener(found, problem)

    # --- what is assumed --------------------------------------------------------------------------------------------

    def _with_assumed(self, task: Task) -> Task:
        """Return a pod that was read as it is assumed to be; an assumption that the cluster has overtaken falls."""
        if task.status is Status.RUNNING and not task.node:
            # Whoever wrote that meant the pod which had this name before. Snapshots of files are trusted, as Volcano trusts them.
            task = replace(task, status=Status.PENDING)
        assumed = self._assumed.get(task.key)
        if assumed is None:
            return task
        if assumed.fits(task):
            return assumed.applied(task)
        del self._assumed[task.key]
        return task

    def assume(self, task: Task, status: Status, node: str) -> None:
        """Let sessions see a pod as it will be once what was asked for is done."""
        self.assume_pod(task.key, AssumedPod(task.uid, status, node))

    def assume_pod(self, key: TaskKey, assumed: AssumedPod) -> None:
        """Do the same for a pod of which only this is known."""
        known = self._cluster.state.task(key)
        if self.journal is not None:
            self.journal.assumed(key, assumed)
        if known is not None and assumed.fits(known):
            self._assumed[key] = assumed
            self._cluster.state.put_task(assumed.applied(known))

    def note(self, document: Document, texts: Texts) -> None:
        """Let sessions see an object with the annotations that are on their way to the server, or without some."""
        kind = kind_of(document)
        before = self._notes.applied(kind, document)
        self._notes.put(kind, document, texts)
        self._take_in(WatchEvent(0, MODIFIED, kind, self._notes.applied(kind, document), before))

    def settle(self, kind: Kind, key: str, document: Document | None) -> None:
        """Let sessions see an object as it is: what was on its way has come, or never will."""
        before = None if document is None else self._notes.applied(kind, document)
        self._notes.drop(kind, key)
        if document is not None and before is not document:
            self._take_in(WatchEvent(0, MODIFIED, kind, document, before))

    def as_noted(self, document: Document) -> Document:
        """Return an object as sessions see it."""
        return self._notes.applied(kind_of(document), document) if self._notes else document

    def assume_request(self, request: Document) -> None:
        """Let sessions see a bind request that is on its way to the server."""
        if self.journal is not None:
            self.journal.request_assumed(request)
        key = object_key(request)
        self._requests[key] = request, self._request_uids.get(key, "")
        self._cluster.put(request)

    def confirm_request(self, request: Document, found: Document | None) -> bool:
        """Let sessions see a bind request as it is now that the server has answered; tell whether that is as assumed."""
        if self.journal is not None:
            self.journal.request_confirmed(request, found)
        key = object_key(request)
        if key not in self._requests:
            return True
        del self._requests[key]
        if found is None:
            self._cluster.remove(request)
        else:
            self._cluster.put(found)
        return False

    def forget(self, task: Task, document: Document | None) -> None:
        """Let sessions see a pod as it is: what was asked for did not come about."""
        self.forget_pod(task.key, task.uid, document)

    def forget_pod(self, key: TaskKey, uid: str, document: Document | None) -> None:
        """Do the same for a pod of which only this is known."""
        if self.journal is not None:
            self.journal.forgotten(key, uid)
        assumed = self._assumed.get(key)
        if assumed is not None and assumed.uid == uid:
            del self._assumed[key]
            if document is not None:
                self._cluster.put(document)

    def forget_nomination(self, key: TaskKey, uid: str, document: Document | None) -> None:
        """Let sessions see a pod with the nomination that its object shows: the request is answered."""
        assumed = self._assumed.get(key)
        if assumed is not None and assumed.is_nominated:
            self.forget_pod(key, uid, document)

    def forget_all(self, find: Callable[[TaskKey], Document | None]) -> None:
        """Forget every assumption: let sessions see everything as it is."""
        if self.journal is not None:
            self.journal.forgotten(TaskKey(""), "")
        keys, self._assumed = list(self._assumed), {}
        for document in filter(None, map(find, keys)):
            self._cluster.put(document)


def _place(event: WatchEvent) -> str:
    return f"{event.kind.resource} {object_key(event.object)}"


# --- how soon ------------------------------------------------------------------------------------------------------------


def _urgency(event: WatchEvent) -> Urgency:
    if event.kind.kind in SILENT or event.kind.kind == MEASUREMENTS:
        return Urgency.NEVER
    if event.type != MODIFIED or event.before is None:
        return Urgency.SOON
    return Urgency.SOON if _marks(event.before) != _marks(event.object) else Urgency.NEVER


def _changes_terms(event: WatchEvent) -> bool:
    """Tell whether a change may help gangs that have not changed; workloads and groups that come or go help by their pods."""
    if event.kind in WORKLOADS:
        return False
    if event.kind not in GROUPS:
        return True
    return event.type == MODIFIED and event.before is not None and event.before.get("spec") != event.object.get("spec")


def _marks(document: Document) -> tuple[object, ...]:
    """Return the parts of an object that sessions look at, besides counts and messages in its status."""
    meta, status = document["metadata"], document.get("status")
    found: Mapping[str, object] = status if isinstance(status, Mapping) else {}
    own = tuple(value for key, value in document.items() if key not in ("metadata", "status", "apiVersion", "kind"))
    if document.get("kind") == "Node":
        return *own, meta.get("labels"), meta.get("annotations"), found.get("allocatable"), _readiness(found)
    if document.get("kind") == "PodDisruptionBudget" or document.get("kind", "").startswith("Resource"):
        return *own, found
    return *own, meta.get("labels"), _annotations(meta), meta.get("deletionTimestamp"), found.get("phase"), found.get("state")


def _annotations(meta: Document) -> object:
    """Return the annotations of an object without its checkpoints: many jobs write some, and the next session looks at them."""
    found = meta.get("annotations")
    if not isinstance(found, Mapping) or LAST_CHECKPOINT not in found:
        return found or None
    return {name: text for name, text in found.items() if name != LAST_CHECKPOINT} or None


def _readiness(status: Mapping[str, object]) -> list[tuple[object, object]]:
    conditions = status.get("conditions")
    items = conditions if isinstance(conditions, list) else ()
    return [(item.get("type"), item.get("status")) for item in items if isinstance(item, Mapping)]


def _pod_urgency(event: WatchEvent) -> Urgency:
    """A pod that starts leaves room as it was; one that waits, ends or goes is another matter."""
    if event.type != MODIFIED or event.before is None:
        return Urgency.SOON
    before, after = _pod_marks(event.before), _pod_marks(event.object)
    if before == after:
        return Urgency.NEVER
    is_start = before[:-1] == after[:-1] and after[-1] == "Running"
    return Urgency.LATER if is_start else Urgency.SOON


def _is_other(before: Document, after: Document) -> bool:
    """Tell whether a pod has changed in more than its spec, its labels, its conditions and what binding writes into annotations."""
    old, new = before["metadata"], after["metadata"]
    if old.get("ownerReferences") != new.get("ownerReferences"):
        return True
    is_same = are_same_but_for_minima(old.get("annotations"), new.get("annotations"))
    return not is_same or old.get("deletionTimestamp") != new.get("deletionTimestamp") or _phase(before) != _phase(after)


def _own_labels(labels: Mapping[str, object] | None) -> dict[str, object]:
    """Return the labels that binding does not write."""
    return {name: text for name, text in (labels or {}).items() if not name.startswith(TOPOLOGY)}


def _phase(pod: Document) -> object:
    status = pod.get("status")
    return status.get("phase") if isinstance(status, Mapping) else None


def _pod_marks(pod: Document) -> tuple[object, ...]:
    meta, spec = pod["metadata"], pod.get("spec")
    if not isinstance(spec, Mapping):
        return (meta.get("labels"), spec)
    return (
        meta.get("labels"), _annotations(meta), meta.get("deletionTimestamp"), spec.get("nodeName"),
        spec.get("schedulingGates"), spec.get("priority"), _phase(pod),
    )  # fmt: skip
