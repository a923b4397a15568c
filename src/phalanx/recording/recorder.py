"""Listens to a scheduler, and lets everything be written down that its decisions depend on, and what they were.

On the side of the scheduler this costs one append per change: what is kept of an object, and how it is encoded, is found out in the
thread of the writer. Objects are never changed once the scheduler has heard of them, so they may be looked at later. Only pods that
have landed are looked at on the way, since little is kept of them, and the scheduler has it at hand.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from uuid import uuid4

from msgspec.structs import replace

from phalanx import __version__
from phalanx.dialects.recorded_fields import is_recorded, recorded_all
from phalanx.errors import ClusterError
from phalanx.model.kinds import Document
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.recording import entries
from phalanx.recording.decision_record import DecisionRecords, plan_record, sealed
from phalanx.recording.entries import AnyEntry, Config
from phalanx.recording.extender_answers import HeardAnswers
from phalanx.recording.log_writer import Item, LogWriter, together
from phalanx.recording.object_changes import LandedEntries, entry_of
from phalanx.scheduling.cache import AssumedPod, LandedPod, SchedulerCache
from phalanx.scheduling.gates import GatePlanner, PlannedSession
from phalanx.scheduling.loop import SessionLoop
from phalanx.scheduling.sessions import HeldSession, Remembered, Scope
from phalanx.session.decision import Eviction

TIME_STEP_SECONDS = 0.1
"""Changes that are heard within so long of each other have one time."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is recorded: a cache and the objects behind it, heard at the times of a clock."""

    source: str
    cache: SchedulerCache
    objects: Callable[[], Iterable[Document]]
    now: Callable[[], float]
    is_known: Callable[[], bool] = lambda: True
    """The objects are all there. Before that nothing is recorded: who is not listed yet would be taken for gone."""
    hidden: Callable[[], list[str]] = list
    """Names the kinds that nobody lets us read."""


class Recorder:
    """Writes down what a scheduler hears and decides."""

    def __init__(self, what: Recorded, writer: LogWriter, config: Config, scope: Scope | None = None) -> None:
        """Begin with the first `turn`."""
        self._what, self.writer, self._config, self._scope = what, writer, config, scope or Scope()
        self._process = uuid4().hex
        self._segment = 0
        self._remembered: Callable[[float], Remembered] = lambda now: Remembered()
        self._pace: dict[str, float] = {}
        self._records, self._answers, self._landed = DecisionRecords(), HeardAnswers(), LandedEntries()
        self._last = 0.0
        self._binds: Iterator[tuple[TaskKey, str]] = iter(())
        """Those of the last session that are still to be assumed."""
        self._as_decided = 0
        """How many of them were, since the last entry: most are, and a count takes no time to write."""
        what.cache.journal = self

    def follow(self, loop: SessionLoop) -> None:
        """Record the sessions of a loop too, and what becomes of them."""
        self._scope, self._remembered = loop.scope, loop.sessions.remembered
        self._pace = {"gap": loop.pace.gap, "later": loop.pace.later, "heartbeat": loop.pace.heartbeat}
        loop.profile = self._answers.over(loop.profile)
        loop.held.append(self.held)
        loop.binding.bound.append(self.bound)
        loop.binding.refused.append(self._refused)
        loop.binding.rolled_back.append(lambda task, text: self._carried_out("rolled-back", task, text))
        loop.evictor.evicted.append(self._evicted)
        loop.evictor.refused.append(self._not_evicted)

    def follow_gates(self, planner: GatePlanner) -> None:
        """Record the plans behind scheduling gates too."""
        planner.planned.append(self._planned)

    def configure(self, config: Config) -> None:
        """Record that another configuration is in force from now on."""
        self._config = config
        self._add(config)

    def turn(self) -> None:
        """Begin a new segment if it is time for one, and leave nothing behind."""
        self._add_assumed()
        if self.writer.wants_checkpoint and self._what.is_known():
            self._check()

    def close(self) -> None:
        """Write everything, and end."""
        now = self._what.now()
        self._what.cache.journal = None
        self._add(entries.Ended(now))
        self.writer.close()

    def _add(self, item: Item) -> None:
        self._add_assumed()
        self.writer.add(item)

    def _add_assumed(self) -> None:
        if self._as_decided:
            count, self._as_decided = self._as_decided, 0
            self.writer.add(entries.AsDecided(count))

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        self._last = now = self._what.now()
        self._landed.forget()
        objects = list(map(self._what.cache.as_noted, self._what.objects()))
        assumed, requests = self._what.cache.assumptions
        remembered = self._remembered(now)
        self._segment += 1
        self._binds = iter(())  # whoever reads from here on does not know the last session
        header = self._header(now)
        self.writer.add_checkpoint(lambda: self._checkpoint(header, objects, assumed, requests, remembered))

    def _header(self, now: float) -> entries.Header:
        schedulers = sorted(self._what.cache.cluster.schedulers)
        return entries.Header(
            entries.FORMAT, __version__, self._process, self._what.source, self._segment, now, schedulers, asdict(self._scope),
            self._config, self._pace, self._what.hidden(),
        )  # fmt: skip

    def _checkpoint(
        self, header: entries.Header, objects: list[Document], assumed: dict[TaskKey, AssumedPod], requests: list[Document],
        remembered: Remembered,
    ) -> Iterator[list[AnyEntry]]:  # fmt: skip
        self._records.forget()
        header = replace(header, segment=header.segment + self.writer.gaps)  # as now: what the thread has lost meanwhile counts too
        yield [header, entries.Checkpoint(header.now)]
        for some in recorded_all(objects):
            yield [*map(entries.Put, some)]
        yield from together(entries.RequestAssumed(dict(item)) for item in requests)
        yield from together(_assumed(key, pod) for key, pod in assumed.items())
        yield [
            entries.Carried(
                remembered.resting, remembered.pod_counts, remembered.is_guarded, remembered.reserved, remembered.short_since
            )
        ]

    # --- what the cache hears ----------------------------------------------------------------------------------------

    def noticed(self, event: WatchEvent, landed: LandedPod | None = None) -> None:
        """A change was reported; what the cache knows of it need not be found out again."""
        if not is_recorded(event.kind.group, event.kind.kind):
            return
        now = self._what.now()
        if abs(now - self._last) >= TIME_STEP_SECONDS:
            self._last = now
            self._add(entries.Moment(now))
        if landed is None:
            self._add(lambda: _change(event))
        else:  # the cache has just looked at it: a microsecond now, or seven when the thread comes to it
            self._add(self._landed.entry(event.object, has_same_labels=landed.has_same_labels))

    def assumed(self, key: TaskKey, pod: AssumedPod) -> None:
        """A pod is taken for what it will be."""
        if pod.status is Status.BINDING and next(self._binds, None) == (key, pod.node):
            self._as_decided += 1
            return
        self._binds = iter(())
        self._add(_assumed(key, pod))

    def forgotten(self, key: TaskKey, uid: str) -> None:
        """A pod is taken for what its object says."""
        self._add(entries.Forgotten(key, uid))

    def request_assumed(self, request: Document) -> None:
        """A bind request is on its way."""
        self._add(entries.RequestAssumed(dict(request)))

    def request_confirmed(self, request: Document, found: Document | None) -> None:
        """A bind request was answered."""
        self._add(entries.RequestConfirmed(dict(request), None if found is None else dict(found)))

    # --- what sessions decide ----------------------------------------------------------------------------------------

    def held(self, session: HeldSession) -> None:
        """Record a session, before anything of it is carried out."""
        parts, now, asks_all = sealed(session.parts), session.whole.now, session.asks_all
        answers, self._last = self._answers.taken(now), now
        self._add(lambda: [entries.Decided(now, asks_all, self._records.record(parts), answers)])
        self._binds = chain.from_iterable(part.decisions.binds.items() for part in parts)
        self.turn()

    def _planned(self, session: PlannedSession) -> None:
        self._last = session.snapshot.now
        self._add(entries.Planned(self._last, plan_record(session)))

    def bound(self, task: Task, node: str, seconds: float) -> None:
        """Record that a pod was bound."""
        self._carried_out("bound", task, node)

    def _refused(self, task: Task, problem: ClusterError, seconds: float) -> None:
        self._carried_out("refused", task, str(problem))

    def _evicted(self, eviction: Eviction) -> None:
        self._carried_out("evicted", eviction.task, eviction.preemptor)

    def _not_evicted(self, eviction: Eviction, reason: str) -> None:
        self._carried_out("not-evicted", eviction.task, reason)

    def _carried_out(self, what: str, task: Task, detail: str) -> None:
        self._add(entries.CarriedOut(what, task.key, detail))


def _change(event: WatchEvent) -> list[AnyEntry]:
    if event.type == DELETED:
        kind, meta = event.kind, event.object["metadata"]
        return [entries.Gone(kind.api_version, kind.kind, meta.get("namespace", ""), meta["name"])]
    entry = entry_of(event.before, event.object)
    return [] if entry is None else [entry]


def _assumed(key: TaskKey, pod: AssumedPod) -> AnyEntry:
    return entries.Assumed(key, pod.uid, pod.status.name, pod.node)
