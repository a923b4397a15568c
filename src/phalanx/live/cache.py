"""The cluster as sessions see it: what watches tell, and binds and evictions that were asked for and not told of yet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.model.kinds import BIND_REQUEST, POD, SILENT, Document, object_key
from phalanx.model.status import COMPLETED, Status
from phalanx.model.task import Task, TaskKey
from phalanx.model.watch_event import DELETED, MODIFIED, WatchEvent
from phalanx.state.quorum import are_same_but_for_minima, minima_of
from phalanx.state.snapshot import Snapshot

MEASUREMENTS = "NodeMetrics"
"""They come every few seconds; the session that is held next looks at them."""
TOPOLOGY = "topology.kubernetes.io/"
DECISIVE = ("labels", "annotations", "deletionTimestamp")


class Urgency(IntEnum):
    """How soon a session should look at a change."""

    NEVER = 0
    LATER = 1
    SOON = 2


@dataclass(frozen=True, slots=True)
class Guess:
    """What will become of a pod if all goes well."""

    uid: str
    status: Status
    node: str

    def fits(self, task: Task) -> bool:
        """Tell whether the cluster has not told yet what became of the pod."""
        if task.uid != self.uid or task.status in COMPLETED:
            return False
        return task.status is Status.PENDING if self.status is Status.BINDING else task.status is not Status.RELEASING

    def applied(self, task: Task) -> Task:
        """Return the pod as it will be."""
        return replace(task, status=self.status, node=self.node)


class Picture:
    """Objects in, snapshots out; pods stand where they were sent."""

    def __init__(self, cluster: ObjectCluster, *, report: Callable[[str], None]) -> None:
        """Begin with an empty cluster; `report` is told of objects that cannot be understood."""
        self._cluster, self._report = cluster, report
        cluster.foreseen = self._foreseen
        self._guesses: dict[TaskKey, Guess] = {}
        self._requests: set[str] = set()
        """Bind requests that were asked for and not told of yet."""
        self._faults: dict[str, str] = {}

    @property
    def cluster(self) -> ObjectCluster:
        """The objects as they are understood."""
        return self._cluster

    def snapshot(self, now: float) -> Snapshot:
        """Return the cluster as it is now."""
        return self._cluster.snapshot(now)

    # --- what is told ------------------------------------------------------------------------------------------------

    def hear(self, event: WatchEvent) -> Urgency:
        """Enter a change; a broken object is told of once, and the rest goes on."""
        if event.kind is POD:
            return self._hear_pod(event)
        self._enter(event)
        if event.kind is BIND_REQUEST:
            self._requests.discard(object_key(event.object))
        return _urgency(event)

    def _hear_pod(self, event: WatchEvent) -> Urgency:
        key = TaskKey(object_key(event.object))
        guess = self._guesses.get(key)
        if guess is not None and self._has_only_landed(event, key, guess):
            return Urgency.NEVER
        self._enter(event)
        if guess is None:
            return _pod_urgency(event)
        task = self._cluster.state.task(key)
        if task is not None and key in self._guesses:
            return Urgency.NEVER
        self._guesses.pop(key, None)
        is_as_expected = task is not None and task.node == guess.node and task.uid == guess.uid and task.status not in COMPLETED
        return Urgency.NEVER if is_as_expected else Urgency.SOON

    def _has_only_landed(self, event: WatchEvent, key: TaskKey, guess: Guess) -> bool:
        """Enter a bind of ours that has come through, without reading the pod again; tell whether nothing else has changed."""
        before, task = event.before, self._cluster.state.task(key)
        if event.type != MODIFIED or before is None or task is None or guess.status is not Status.BINDING:
            return False
        if task.uid != guess.uid or not self._cluster.stands_alone(task):
            return False
        if event.object["spec"] != {**before["spec"], "nodeName": guess.node} or _is_other(before, event.object):
            return False
        del self._guesses[key]
        minima = minima_of(event.object["metadata"].get("annotations") or {})
        self._cluster.state.put_task(replace(task, status=Status.BOUND, node=guess.node, minima=minima))
        return True

    def _enter(self, event: WatchEvent) -> None:
        place = f"{event.kind.resource} {object_key(event.object)}"
        try:
            if event.type == DELETED:
                self._cluster.remove(event.object)
            else:
                self._cluster.put(event.object)
        except SnapshotError as problem:
            if self._faults.get(place) != str(problem):
                self._report(str(problem))
            self._faults[place] = str(problem)
        else:
            self._faults.pop(place, None)

    # --- what is guessed ---------------------------------------------------------------------------------------------

    def _foreseen(self, task: Task) -> Task:
        """Return a pod that was read as it will be; a guess that the cluster has overtaken falls."""
        guess = self._guesses.get(task.key)
        if guess is None:
            return task
        if guess.fits(task):
            return guess.applied(task)
        del self._guesses[task.key]
        return task

    def expect(self, task: Task, status: Status, node: str) -> None:
        """Let sessions see a pod as it will be once what was asked for is done."""
        known = self._cluster.state.task(task.key)
        guess = Guess(task.uid, status, node)
        if known is not None and guess.fits(known):
            self._guesses[task.key] = guess
            self._cluster.state.put_task(guess.applied(known))

    def foresee(self, request: Document) -> None:
        """Let sessions see a bind request that is on its way to the server."""
        self._requests.add(object_key(request))
        self._cluster.put(request)

    def settle(self, request: Document, found: Document | None) -> bool:
        """Let sessions see a bind request as it is now that the server has answered; tell whether that is as foreseen."""
        key = object_key(request)
        if key not in self._requests:
            return True
        self._requests.discard(key)
        if found is None:
            self._cluster.remove(request)
        else:
            self._cluster.put(found)
        return False

    def give_up(self, task: Task, document: Document | None) -> None:
        """Let sessions see a pod as it is: what was asked for did not come about."""
        guess = self._guesses.get(task.key)
        if guess is not None and guess.uid == task.uid:
            del self._guesses[task.key]
            if document is not None:
                self._cluster.put(document)

    def give_up_all(self, find: Callable[[TaskKey], Document | None]) -> None:
        """Let sessions see everything as it is."""
        keys, self._guesses = list(self._guesses), {}
        for document in filter(None, map(find, keys)):
            self._cluster.put(document)


# --- how soon ------------------------------------------------------------------------------------------------------------


def _urgency(event: WatchEvent) -> Urgency:
    if event.kind.kind in SILENT or event.kind.kind == MEASUREMENTS:
        return Urgency.NEVER
    if event.type != MODIFIED or event.before is None:
        return Urgency.SOON
    return Urgency.SOON if _marks(event.before) != _marks(event.object) else Urgency.NEVER


def _marks(document: Document) -> tuple[object, ...]:
    """Return the parts of an object that sessions look at, besides counts and messages in its status."""
    meta, status = document["metadata"], document.get("status")
    found: Mapping[str, object] = status if isinstance(status, Mapping) else {}
    own = tuple(value for key, value in document.items() if key not in ("metadata", "status", "apiVersion", "kind"))
    if document.get("kind") == "Node":
        return *own, meta.get("labels"), meta.get("annotations"), found.get("allocatable"), _readiness(found)
    if document.get("kind") == "PodDisruptionBudget" or document.get("kind", "").startswith("Resource"):
        return *own, found
    return *own, *(meta.get(name) for name in DECISIVE), found.get("phase"), found.get("state")


def _readiness(status: Mapping[str, object]) -> list[tuple[object, object]]:
    conditions = status.get("conditions")
    return [(item.get("type"), item.get("status")) for item in conditions] if isinstance(conditions, list) else []


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
    """Tell whether a pod has changed in more than its spec, its conditions and what binding puts on it."""
    old, new = before["metadata"], after["metadata"]
    added = {name: text for name, text in (new.get("labels") or {}).items() if not name.startswith(TOPOLOGY)}
    if added != {name: text for name, text in (old.get("labels") or {}).items() if not name.startswith(TOPOLOGY)}:
        return True
    is_same = are_same_but_for_minima(old.get("annotations"), new.get("annotations"))
    return (
        not is_same
        or old.get("deletionTimestamp") != new.get("deletionTimestamp")
        or before.get("status", {}).get("phase") != after.get("status", {}).get("phase")
    )


def _pod_marks(pod: Document) -> tuple[object, ...]:
    meta, spec = pod["metadata"], pod["spec"]
    marks = tuple(meta.get(name) for name in DECISIVE)
    return *marks, spec.get("nodeName"), spec.get("schedulingGates"), spec.get("priority"), pod.get("status", {}).get("phase")
