"""Events on a real cluster: in the words that kube-scheduler uses, counted when they come again, and never in the way of a bind."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from phalanx.controllers.controller import RecordEvent
from phalanx.errors import ClusterError
from phalanx.live.outbox import Outbox, Rank, Send
from phalanx.model.kinds import EVENT
from phalanx.model.moment import micro_text, moment_text
from phalanx.store.kube.client import Client
from phalanx.store.kube.mirror import Mirror

REPORTER = "phalanx"
ACTIONS = {"Scheduled": "Binding", "FailedScheduling": "Scheduling", "Preempted": "Preempting"}
MOST_WAITING, MOST_KNOWN = 2000, 4096
"""Events that wait to be sent, and those of which we know that they were; beyond that new ones are left out, old ones forgotten."""
BETWEEN_COUNTS_SECONDS = 60.0
LONGEST_NOTE, LONGEST_NAME = 1024, 253
Key = tuple[str, str, str]


@dataclass(slots=True)
class _Known:
    """An event that was written."""

    name: str
    namespace: str
    count: int
    written: float


class EventSender:
    """Writes events."""

    def __init__(self, client: Client, outbox: Outbox, mirror: Mirror, *, instance: str) -> None:
        """Begin with nothing told; `instance` names the one who tells, among several."""
        self._client, self._outbox, self._mirror, self._instance = client, outbox, mirror, instance
        self._known: OrderedDict[Key, _Known] = OrderedDict()
        self._waiting = 0
        self._numbers = 0

    def tell(self, event: RecordEvent) -> None:
        """Write an event, or count it if it was written before; when too many wait it is left out."""
        key = (str(event.about["metadata"].get("uid", "")), event.reason, event.message)
        known, now = self._known.get(key), self._mirror.now
        if known is None:
            self._create(key, event, now)
            return
        known.count += 1
        if now - known.written >= BETWEEN_COUNTS_SECONDS:
            known.written = now
            self._put(key, known, lambda: self._count(known, now))

    def _create(self, key: Key, event: RecordEvent, now: float) -> None:
        if self._waiting >= MOST_WAITING:
            return
        self._numbers += 1
        meta = event.about["metadata"]
        name = _name(meta["name"], f".{int(now * 1e6):x}{self._numbers % 4096:03x}")
        known = self._known[key] = _Known(name, meta.get("namespace") or "default", 1, now)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        self._put(key, known, lambda: self._client.create(_document(event, known, now, self._instance)))

    def _put(self, key: Key, known: _Known, send: Send) -> None:
        def done(problem: ClusterError | None) -> None:
            """An event that is refused is not worth a second request; if it comes again it is a new one."""
            self._waiting -= 1
            if problem is not None and self._known.get(key) is known:
                del self._known[key]

        self._waiting += 1
        self._outbox.put(Rank.NOTE, (EVENT, known.namespace, known.name), send, done, is_patient=False)

    async def _count(self, known: _Known, now: float) -> None:
        """Tell how often it has come; the server forgets events after an hour, and then this is refused."""
        series = {"count": known.count, "lastObservedTime": micro_text(now)}
        await self._client.patch(EVENT, known.namespace, known.name, {"series": series, "lastTimestamp": moment_text(int(now))})


def _document(event: RecordEvent, known: _Known, now: float, instance: str) -> dict[str, Any]:
    meta = event.about["metadata"]
    about = {
        "apiVersion": event.about["apiVersion"], "kind": event.about["kind"], "name": meta["name"],
        "uid": meta.get("uid", ""), **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
    }  # fmt: skip
    stamp = moment_text(int(now))
    return {
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": known.name, "namespace": known.namespace},
        "involvedObject": about, "reason": event.reason, "message": event.message[:LONGEST_NOTE],
        "type": "Warning" if event.is_warning else "Normal", "action": ACTIONS.get(event.reason, event.reason),
        "eventTime": micro_text(now), "firstTimestamp": stamp, "lastTimestamp": stamp, "count": 1,
        "source": {"component": REPORTER}, "reportingComponent": REPORTER, "reportingInstance": instance,
    }  # fmt: skip


def _name(about: str, end: str) -> str:
    """Return the name of an event, no longer than names may be."""
    return about[: LONGEST_NAME - len(end)].rstrip(".-") + end
