"""Feeds a recording to sessions again, and compares what they decide with what was decided then.

The same classes do the work as in the process that was recorded: the mirror of objects, the scheduler's cache, the sessions. Only
writes are missing: what became of them is in the recording, as it was heard.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_gates, policy_of_profile, policy_of_text, with_gates
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import POD, Kind, kind_of, split_key
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.recording import entries
from phalanx.recording.decision_record import GATES, DecisionRecords, Record, encoded, plan_record, sealed
from phalanx.recording.entries import AnyEntry
from phalanx.recording.extender_answers import with_answers
from phalanx.scheduling.cache import AssumedPod, SchedulerCache
from phalanx.scheduling.gates import GatePlanner, PlannedSession
from phalanx.scheduling.sessions import HeldSession, Remembered, Scope, Sessions
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.store.kube.mirror import Mirror


@dataclass(frozen=True, slots=True)
class ReplayedSession:
    """One session, as it was recorded and as it was decided again."""

    number: int
    now: float
    recorded: Record
    decided: Record
    session: HeldSession
    profile: Profile
    """Who decides it once more, with the answers that extenders gave."""

    @property
    def is_same(self) -> bool:
        """Tell whether both are the same byte for byte."""
        return encoded(self.recorded) == encoded(self.decided)

    def differences(self) -> Iterator[str]:
        """Yield what differs, in a sentence each."""
        for shard in sorted({*self.recorded, *self.decided}):
            then, now = self.recorded.get(shard, {}), self.decided.get(shard, {})
            place = "behind gates: " if shard == GATES else f"shard {shard}: " if shard else ""
            for part in sorted({*then, *now}):
                yield from (f"{place}{text}" for text in _differences(part, then.get(part), now.get(part)))


def _differences(part: str, then: Any, now: Any) -> Iterator[str]:  # Any: parts of records
    if then == now and encoded({part: then}) == encoded({part: now}):
        return
    if isinstance(then or now, dict):
        then, now = then or {}, now or {}
        for key in sorted({*then, *now}):
            if then.get(key) != now.get(key):
                yield f"{part}: {key}: recorded {_text(then.get(key))}, decided {_text(now.get(key))}"
        return
    yield f"{part}: recorded {_text(then)}, decided {_text(now)}"


def _text(value: Any) -> str:  # Any: as above
    if value is None:
        return "nothing"
    return value.hex() if isinstance(value, bytes) else str(value)


def policy_of_config(config: entries.Config) -> Policy:
    """Return the policy of a configuration in a recording."""
    policy = (
        policy_of_profile(config.profile) if config.profile else policy_of_text(config.text.encode(), "the recorded configuration")
    )
    return with_gates(policy, config.gates)


class RecordedCluster:
    """The cluster of a recording, brought up to date entry by entry."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.now = 0.0
        self._binds: Iterator[tuple[str, str]] = iter(())
        """Those of the last session, as far as they are not assumed."""
        self._reset(())

    def _reset(self, schedulers: tuple[str, ...]) -> None:
        self.mirror = Mirror(lambda: self.now)
        self.cache = SchedulerCache(ObjectCluster(schedulers=frozenset(schedulers)), report=lambda text: None)
        self.mirror.listen(self._notice)
        self.noticed: Callable[[WatchEvent], object] = lambda event: None
        """Called with every change, until the cluster begins anew."""

    def _notice(self, event: WatchEvent) -> None:
        self.cache.notice(event)
        self.noticed(event)

    def enter(self, entry: AnyEntry) -> None:
        """Take in what was heard; sessions are left to others."""
        match entry:
            case entries.Header():
                self._reset(tuple(entry.schedulers))
                self.now = entry.now
            case entries.Moment() | entries.Planned() | entries.Checkpoint():
                self.now = entry.now
            case entries.Decided():
                self.now = entry.now
                self._binds = chain.from_iterable(part.get("binds", {}).items() for part in entry.decisions.values())
            case entries.AsDecided():
                self._assume(islice(self._binds, entry.count))
            case entries.Put():
                self._put(entry.object)
            case entries.Gone():
                self._remove(entry)
            case entries.Assumed():
                self.cache.assume_pod(TaskKey(entry.key), AssumedPod(entry.uid, Status[entry.status], entry.node))
            case entries.Forgotten():
                self._forget(entry)
            case entries.RequestAssumed():
                self.cache.assume_request(entry.object)
            case entries.RequestConfirmed():
                self.cache.confirm_request(entry.object, entry.found)
            case _:
                pass

    def _assume(self, binds: Iterable[tuple[str, str]]) -> None:
        for key, node in binds:
            task = self.cache.cluster.state.task(TaskKey(key))
            if task is not None:
                self.cache.assume(task, Status.BINDING, node)

    def _put(self, document: dict[str, Any]) -> None:  # Any: as JSON has it
        kind, meta = kind_of(document), document["metadata"]
        namespace = str(meta.get("namespace", "")) if kind.is_namespaced else ""
        self.mirror.replace_one(kind, (namespace, str(meta["name"])), [document])

    def _remove(self, entry: entries.Gone) -> None:
        kind: Kind = kind_of({"apiVersion": entry.api_version, "kind": entry.kind})
        known = self.mirror.find(kind, entry.namespace, entry.name)
        if known is not None:
            self.mirror.remove(kind, known)

    def _forget(self, entry: entries.Forgotten) -> None:
        if not entry.key:
            self.cache.forget_all(lambda key: self.mirror.find(POD, *split_key(key)))
        else:
            self.cache.forget_pod(TaskKey(entry.key), entry.uid, self.mirror.find(POD, *split_key(entry.key)))


class Replay:
    """Decides everything of a recording again."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.cluster = RecordedCluster()
        self.profile: Profile | None = None
        self._sessions: Sessions | None = None
        self._planner: GatePlanner | None = None
        self._records = DecisionRecords()
        self.count = 0

    def enter(self, entry: AnyEntry) -> ReplayedSession | None:
        """Take in an entry; return the session if it is one."""
        self.cluster.enter(entry)
        if isinstance(entry, entries.Decided):
            return self._decide(entry)
        if isinstance(entry, entries.Planned):
            return self._plan(entry)
        match entry:
            case entries.Header():
                self._begin(entry)
            case entries.Config():
                self.profile = _profile(entry)
            case entries.Checkpoint():
                self._records.forget()
            case entries.Carried():
                self._remember(entry)
            case _:
                pass
        return None

    def _begin(self, header: entries.Header) -> None:
        self.profile = _profile(header.config)
        self._sessions = Sessions(self.cluster.cache, self.cluster.mirror, Scope(**header.scope))
        gates = policy_of_gates(self.profile.policy)
        planner = GatePlanner(Profile(gates, catalogue_of(gates.catalogue)), self.cluster.mirror.everything)
        self.cluster.noticed = lambda event: planner.notice(event.kind, event.object, is_gone=event.type == DELETED)
        self._planner = planner

    def _remember(self, carried: entries.Carried) -> None:
        """Go on with what sessions carried over; the objects of the checkpoint are there by now."""
        assert self._sessions is not None, "a header comes first"
        found = Remembered(carried.resting, carried.pod_counts, carried.is_guarded, carried.reserved, carried.short_since)
        self._sessions.remember(found, self.cluster.now)

    def _decide(self, entry: entries.Decided) -> ReplayedSession:
        assert self._sessions is not None, "a header comes first"
        assert self.profile is not None, "a header comes first"
        self.count += 1
        session = self._sessions.hold(with_answers(self.profile, entry.answers), entry.now, asks_all=entry.asks_all)
        decided = self._records.record(sealed(session.parts))
        return ReplayedSession(self.count, entry.now, entry.decisions, decided, session, with_answers(self.profile, entry.answers))

    def _plan(self, entry: entries.Planned) -> ReplayedSession:
        assert self._planner is not None, "a header comes first"
        self.count += 1
        found: list[PlannedSession] = []
        self._planner.planned = [found.append]
        self._planner.plan(entry.now)
        snapshot = found[0].snapshot if found else self.cluster.cache.snapshot(entry.now)
        decided: Record = plan_record(found[0]) if found else {}
        session = HeldSession(snapshot, snapshot, [], [], asks_all=True)
        return ReplayedSession(self.count, entry.now, entry.plans, decided, session, self._planner.profile)


def _profile(config: entries.Config) -> Profile:
    policy = policy_of_config(config)
    return Profile(policy, catalogue_of(policy.catalogue))
