"""Events: what sessions say about gangs and pods, and how that becomes objects.

They are in the words that kube-scheduler uses, counted when they come again, and never in the way of a bind.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from phalanx.controllers.controller import Create, Patch, RecordEvent, View
from phalanx.controllers.objects import group_of
from phalanx.errors import ClusterError
from phalanx.explain.events import bind_text, gang_events
from phalanx.explain.gangs import GangBook
from phalanx.explain.recorded import REASON_CODE
from phalanx.model.gang import Gang
from phalanx.model.kinds import EVENT, POD, Document
from phalanx.model.moment import micro_text, moment_text
from phalanx.model.task import GangKey, Task
from phalanx.model.task_status import Status
from phalanx.scheduling.loop import SessionLoop
from phalanx.scheduling.port import ClusterPort, Effort
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot

REPORTER = "phalanx"
ACTIONS = {"Scheduled": "Binding", "FailedScheduling": "Scheduling", "Preempted": "Preempting"}
MOST_WAITING, MOST_KNOWN = 2000, 4096
"""Events that wait to be sent, and those of which we know that they were; beyond that new ones are left out, old ones forgotten."""
BETWEEN_COUNTS_SECONDS = 60.0
LONGEST_NOTE, LONGEST_NAME = 1024, 253
EventKey = tuple[str, str, str]


class SessionEvents:
    """Records what becomes of gangs in sessions, and keeps the book of gangs that `phalanx get gangs` shows."""

    def __init__(self, port: ClusterPort, loop: SessionLoop, *, behind_gates: Callable[[], Mapping[GangKey, str]]) -> None:
        """Listen to sessions; `behind_gates` says why gangs that our gate holds back have no room."""
        self._port, self._behind_gates, self.book = port, behind_gates, GangBook()
        loop.decided.append(self._decided)

    def record_binds(self, loop: SessionLoop) -> None:
        """Record every pod that is bound, too."""
        loop.binding.bound.append(self._bound)

    def _decided(self, snapshot: Snapshot, decisions: Decisions) -> None:
        events = gang_events(decisions)
        reported = {item.gang for item in events if item.gang is not None}
        for key, text in self.book.note(snapshot, decisions, self._behind_gates(), reported=reported).items():
            about = _spokesman(self._port.view, snapshot, key)
            if about is not None:  # to wait is nothing to mend
                code = self.book.code(key)
                self._port.send(RecordEvent(about, "FailedScheduling", text, is_warning=True, is_expected=True, code=code))
        for item in events:
            self._record(item.group, item.reason, item.message, is_warning=item.is_warning)

    def _record(self, gang: Gang, reason: str, text: str, *, is_warning: bool) -> None:
        group = group_of(self._port.view, gang)
        if group is not None:
            self._port.send(RecordEvent(group, reason, text, is_warning=is_warning))

    def _bound(self, task: Task, node: str, seconds: float) -> None:
        pod = self._port.view.find(POD, task.namespace, task.name)
        if pod is not None:
            self._port.send(RecordEvent(pod, "Scheduled", bind_text(task.key, node)))


def _spokesman(view: View, snapshot: Snapshot, key: GangKey) -> Document | None:
    """Return what an event about a gang is recorded on: its group, or the waiting pod that stands for a gang without one."""
    gang = snapshot.gangs[key]
    if gang.has_object:
        return group_of(view, gang)
    waiting = (task for task in snapshot.members_of(key).values() if task.status is Status.PENDING)
    task = min(waiting, key=lambda task: (task.uid != gang.uid, task.key), default=None)
    return None if task is None else view.find(POD, task.namespace, task.name)


@dataclass(slots=True)
class _Known:
    """An event that was written."""

    name: str
    namespace: str
    count: int
    written: float


class EventRecorder:
    """Writes events, or counts those that were written before."""

    def __init__(self, port: ClusterPort, *, instance: str) -> None:
        """`instance` names the one who reports, among several."""
        self._port, self._instance = port, instance
        self._known: OrderedDict[EventKey, _Known] = OrderedDict()
        self._waiting = 0
        self._numbers = 0

    def record(self, event: RecordEvent, now: float | None = None) -> None:
        """Write an event that happens now, or did; count it if it was written before; when too many wait it is left out."""
        key = (str(event.about["metadata"].get("uid", "")), event.reason, event.message)
        known, now = self._known.get(key), self._port.clock.now if now is None else now
        if known is None:
            self._create(key, event, now)
            return
        known.count += 1
        if now - known.written >= BETWEEN_COUNTS_SECONDS:
            known.written = now
            self._send(key, known, _count(known, now))

    def _create(self, key: EventKey, event: RecordEvent, now: float) -> None:
        if self._waiting >= MOST_WAITING:
            return
        self._numbers += 1
        meta = event.about["metadata"]
        name = _name(meta["name"], f".{int(now * 1e6):x}{self._numbers % 4096:03x}")
        known = self._known[key] = _Known(name, meta.get("namespace") or "default", 1, now)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        self._send(key, known, Create(_document(event, known, now, self._instance)))

    def _send(self, key: EventKey, known: _Known, write: Create | Patch) -> None:
        self._waiting += 1
        self._port.send(write, partial(self._sent, key, known), effort=Effort.ONCE, is_note=True)

    def _sent(self, key: EventKey, known: _Known, problem: ClusterError | None) -> None:
        """An event that is refused is not worth a second request; if it comes again it is a new one."""
        self._waiting -= 1
        if problem is not None and self._known.get(key) is known:
            del self._known[key]


def _count(known: _Known, now: float) -> Patch:
    """Say how often it has come; the server forgets events after an hour, and then this is refused."""
    series = {"count": known.count, "lastObservedTime": micro_text(now)}
    return Patch(EVENT, known.namespace, known.name, {"series": series, "lastTimestamp": moment_text(int(now))})


def _document(event: RecordEvent, known: _Known, now: float, instance: str) -> dict[str, Any]:
    meta = event.about["metadata"]
    about = {
        "apiVersion": event.about["apiVersion"], "kind": event.about["kind"], "name": meta["name"],
        "uid": meta.get("uid", ""), **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
    }  # fmt: skip
    stamp = moment_text(int(now))
    return {
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": known.name, "namespace": known.namespace, **_annotated(event)},
        "involvedObject": about, "reason": event.reason, "message": event.message[:LONGEST_NOTE],
        "type": "Warning" if event.is_warning else "Normal", "action": ACTIONS.get(event.reason, event.reason),
        "eventTime": micro_text(now), "firstTimestamp": stamp, "lastTimestamp": stamp, "count": 1,
        "source": {"component": REPORTER}, "reportingComponent": REPORTER, "reportingInstance": instance,
    }  # fmt: skip


def _annotated(event: RecordEvent) -> dict[str, Any]:
    return {"annotations": {REASON_CODE: event.code}} if event.code else {}


def _name(about: str, end: str) -> str:
    """Return the name of an event, no longer than names may be."""
    return about[: LONGEST_NAME - len(end)].rstrip(".-") + end
