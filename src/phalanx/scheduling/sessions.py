"""Sessions one after the other: which gangs each looks at, what it decides, and of which gangs it speaks.

What a session decides depends on the cache and on a little that is carried over from earlier ones: gangs that nothing could be done
for, pods that came and went a moment ago. All of that is here, and time comes in from outside, so whoever feeds the same changes in
the same order gets the same decisions: the loop of a running scheduler does, and so does a replay of what it recorded.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from phalanx.controllers.controller import View
from phalanx.dialects.gates import GangGates
from phalanx.model.kinds import POD, split_key
from phalanx.model.task import GangKey
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.pod_counts import PodCounts
from phalanx.scheduling.shards import decide
from phalanx.scheduling.unschedulable import UnschedulableGangs
from phalanx.session.cycle import Decider, Profile
from phalanx.session.decision import Outcome
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.state.snapshot import Snapshot
from phalanx.state.staleness import stale_verdict


@dataclass(frozen=True, slots=True)
class HeldSession:
    """One session, before anything of it is carried out."""

    whole: Snapshot
    """The cluster, with the gangs that the session left out."""
    snapshot: Snapshot
    parts: list[ShardDecisions]
    changing: list[list[Outcome]]
    """For each part the gangs whose pods come or go just now, of which nothing is said."""
    asks_all: bool
    """No gang was left out."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom sessions look at, for as long as the process runs."""

    wakes_all: bool = True
    """Whatever may help any gang lets a session look at all that wait; simulations of weeks ask only when their time has come."""
    arrival: float = 3.0
    """After the last pod of a gang that lacks some has come or gone, nothing is said about missing ones for so many seconds."""
    isolates: bool = True
    """A session goes on without a gang on which it fails."""
    longest_rest: float | None = None
    """Gangs for which a session could do nothing are left out for so many seconds, at most; None: nobody is left out."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What one session carries over to the next, besides the cache."""

    resting: list[tuple[str, float, float]] = field(default_factory=list)
    """Gangs that are left out, until when, and how long that is."""
    pod_counts: list[tuple[str, int, float]] = field(default_factory=list)
    """Gangs that lack pods, how many they have, and since when."""
    is_guarded: bool | None = None
    """A plugin holds gangs to their minima; None before the first session."""
    reserved: list[str] = field(default_factory=list)
    """Gangs with a reserved start."""
    short_since: list[tuple[str, float]] = field(default_factory=list)
    """Gangs of pods alone that are stale, and since when."""


def is_for_all(parts: Sequence[ShardDecisions]) -> bool:
    """Tell whether a session has to look at everybody: for whoever it evicts, a gang that was left out may come first.

    That gang would get the room in the next session, and the other one would have evicted in vain.
    """
    return any(part.decisions.evictions for part in parts)


class Sessions:
    """Holds sessions on a cache."""

    def __init__(self, cache: SchedulerCache, view: View, scope: Scope) -> None:
        """Begin before the first session; `view` shows the objects behind the cache."""
        self._cache, self._view, self._scope = cache, view, scope
        self.unschedulable = None if scope.longest_rest is None else UnschedulableGangs(scope.longest_rest)
        """Gangs that are left out."""
        self._pod_counts = PodCounts(scope.arrival)
        self._decider = Decider(isolates=scope.isolates)
        self._reserved: tuple[GangKey, ...] = ()
        """Gangs with a reserved start, who had one first first."""
        self._short_since: dict[GangKey, float] = {}
        """Gangs of pods alone that are stale, and since when: no object says it."""

    def remembered(self, now: float) -> Remembered:
        """Return what is carried over to the next session."""
        resting = [] if self.unschedulable is None else self.unschedulable.remembered(self._cache.snapshot(now))
        return Remembered(
            resting, self._pod_counts.remembered(), self._decider.is_guarded, list(self._reserved), list(self._short_since.items())
        )

    def remember(self, found: Remembered, now: float) -> None:
        """Go on with what was carried over by somebody else, on the same cluster."""
        if self.unschedulable is not None:
            self.unschedulable.remember(self._cache.snapshot(now), found.resting)
        self._pod_counts.remember(found.pod_counts)
        self._decider.is_guarded = found.is_guarded
        self._reserved = tuple(map(GangKey, found.reserved))
        self._short_since = {GangKey(key): since for key, since in found.short_since}

    def leaves_out(self, profile: Profile) -> bool:
        """Tell whether gangs may be left out: where all are counted, in the shares of queues, each one matters to others."""
        return self.unschedulable is not None and not profile.policy.counts_all_gangs

    def hold(
        self, profile: Profile, now: float, *, asks_all: bool = False, trace_level: int = 0, traced_gangs: Collection[str] = (),
        begun: Callable[[], None] = lambda: None,
    ) -> HeldSession:  # fmt: skip
        """Hold a session; with `asks_all` nobody is left out. `begun` is called when its snapshot has been taken."""
        self._cache.cluster.attach = profile.policy.attach_rules
        whole = self._cache.snapshot(now)
        if self._reserved or self._short_since:
            whole = replace(whole, reserved=self._reserved, short_since=self._short_since)
        snapshot = self._without_unschedulable(profile, whole, asks_all=asks_all)
        begun()
        run = partial(decide, profile=profile, trace_level=trace_level, traced_gangs=traced_gangs, run=self._decider.decide)
        parts = run(snapshot)
        if snapshot is not whole and is_for_all(parts):
            snapshot, parts = whole, run(whole)
        self._short_since = self._stale_alone(whole, snapshot, parts)
        changing = [self._take_out(profile, part) for part in parts]
        if self.unschedulable is not None and self.leaves_out(profile):
            self.unschedulable.note(snapshot, parts[0].decisions)
        self._reserved = tuple(each.gang for part in parts for each in part.decisions.reservations)
        return HeldSession(whole, snapshot, parts, changing, asks_all)

    def _without_unschedulable(self, profile: Profile, snapshot: Snapshot, *, asks_all: bool) -> Snapshot:
        if self.unschedulable is None or not self.leaves_out(profile):
            return snapshot
        if self._scope.wakes_all:
            self.unschedulable.keep(frozenset(snapshot.active))
        if asks_all:
            self.unschedulable.forget()
        return self.unschedulable.without(snapshot)

    def _stale_alone(self, whole: Snapshot, snapshot: Snapshot, parts: Sequence[ShardDecisions]) -> dict[GangKey, float]:
        """Return since when gangs of pods alone are stale; of those that were left out it stays as it was."""
        left_out = self._short_since.keys() & (frozenset(whole.active) - frozenset(snapshot.active)) if self._short_since else ()
        found = {key: self._short_since[key] for key in left_out}
        for outcome in (outcome for part in parts for outcome in part.decisions.outcomes if not outcome.state.gang.has_object):
            verdict = stale_verdict(outcome.state)
            if verdict is not None:
                found[outcome.state.gang.key] = float(verdict.numbers["since"])
        return found

    def _take_out(self, profile: Profile, part: ShardDecisions) -> list[Outcome]:
        """Say nothing of gangs that others look after, nor of those whose pods come or go just now; the latter are returned."""
        if not self._cache.cluster.schedulers and not self._scope.arrival:
            return []
        gates = GangGates(profile.policy.flags.gates)
        ours = [outcome for outcome in part.decisions.outcomes if not self._is_theirs(outcome, gates)]
        self._pod_counts.keep(part.snapshot.gangs)
        changing = [outcome for outcome in ours if self._pod_counts.is_changing(outcome)]
        left_out = set(map(id, changing))
        part.decisions.outcomes = [outcome for outcome in ours if id(outcome) not in left_out] if changing else ours
        return changing

    def _is_theirs(self, outcome: Outcome, gates: GangGates) -> bool:
        """Tell whether another scheduler looks after a gang and writes its status: no pod is ours, or came to our gate."""
        ours = self._cache.cluster.schedulers
        if not ours:
            return False
        tasks = [state.task for state in outcome.state.tasks]
        if not tasks or any(task.scheduler in ours for task in tasks):
            return False
        pod = self._view.find(POD, *split_key(tasks[0].key))
        return pod is not None and not gates.concern(pod)
