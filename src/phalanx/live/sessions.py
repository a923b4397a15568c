"""Sessions on a real cluster: one after every change that matters, with a gap between them, and what they decide is sent."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic, time

from phalanx.controllers.objects import controller_of, group_of
from phalanx.dialects.gates import came_to_gate
from phalanx.explain.gang_status import is_admitted
from phalanx.live.binding import Binding, Hands
from phalanx.live.cache import Urgency
from phalanx.live.evicting import Evicting
from phalanx.live.failing import Failures
from phalanx.live.outbox import Rank
from phalanx.live.requesting import Requesting
from phalanx.live.timing import Stopwatch, Times
from phalanx.model.kinds import BIND_REQUEST, POD, Kind, split_key
from phalanx.model.task import TaskKey
from phalanx.plugins.bindbackoff import shortest_wait
from phalanx.scheduling.bind_requests import request_writes
from phalanx.scheduling.pod_conditions import PodConditions
from phalanx.scheduling.status import StatusWriter
from phalanx.session.cycle import Decider, Profile
from phalanx.session.decision import Decisions, Outcome
from phalanx.session.policy import Policy
from phalanx.session.shards import seen_by
from phalanx.state.snapshot import Snapshot

SHORTEST_GAP = 0.02
"""Between two sessions; or as long as the last one took, if that is longer, so that a storm of events leaves time for answers."""
LATER_SECONDS = 1.0
HEARTBEAT_SECONDS = 60.0
"""Between two sessions, at most, while gangs wait: some decisions depend on time alone."""
AFTER_FAULT_SECONDS = 1.0
ARRIVAL_SECONDS = 3.0
"""After the last pod of a gang that lacks some has come, nobody is told for so long that they are missing."""


PoliciesOf = Callable[[Snapshot, Policy], Iterable[Policy]]
"""Returns the policy of each scheduler that a cluster asks for, given the one of the process."""


class Sessions:
    """Holds sessions while we lead."""

    def __init__(
        self,
        hands: Hands,
        profile: Profile,
        *,
        report: Callable[[str], None],
        policies_of: PoliciesOf = lambda _, policy: (policy,),
    ) -> None:
        """Hold none yet; `report` is told of sessions that failed, `policies_of` says which shards there are to decide for."""
        self._hands, self.profile, self._report, self._policies_of = hands, profile, report, policies_of
        self.binding = Binding(hands, wake=lambda: self.wake(Urgency.LATER))
        self.evicting = Evicting(hands, wake=lambda: self.wake(Urgency.LATER))
        self._requesting = Requesting(hands, wake=lambda: self.wake(Urgency.LATER), report=report)
        self._statuses, self._conditions = StatusWriter(hands.mirror), PodConditions(hands.mirror)
        self._bell = asyncio.Event()
        self._due = 0.0
        """When the next session is due, by the monotonic clock."""
        self._decider = Decider()
        self.followed: Callable[[], frozenset[Kind]] = frozenset
        """Returns the kinds that the server serves and we watch."""
        self.count = 0
        self.decided: list[Callable[[Snapshot, Decisions], None]] = []
        """Told of every session, before it is carried out."""
        self.timed: list[Callable[[float, float, Times], None]] = []
        """Told how long every session took, the snapshot of it, and its parts."""
        self.failures = Failures(monotonic)
        self.failed: list[Callable[[Exception], None]] = []
        """Told of every new way in which a session failed."""
        self.despaired: Callable[[str], None] = lambda reason: None
        """Told when sessions fail one after the other."""
        self.trace_level = 0
        """How much of the trace of sessions is recorded."""
        self._stopwatch = Stopwatch(monotonic)

    def wake(self, urgency: Urgency) -> None:
        """Something has changed: decide soon, or a while later."""
        if urgency is not Urgency.NEVER:
            self._plan(monotonic() + (LATER_SECONDS if urgency is Urgency.LATER else 0.0))

    def _plan(self, moment: float) -> None:
        if moment < self._due:
            self._due = moment
            self._bell.set()

    async def run(self, may_decide: Callable[[], bool]) -> None:
        """Hold sessions until cancelled, while `may_decide` says yes."""
        self._statuses.forget()
        self._due = monotonic()
        while True:
            await self._until_due()
            begun = monotonic()
            self._due = begun + HEARTBEAT_SECONDS
            if may_decide():
                self._hold()
            await asyncio.sleep(max(SHORTEST_GAP, monotonic() - begun))

    async def _until_due(self) -> None:
        while (wait := self._due - monotonic()) > 0:
            self._bell.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._bell.wait()

    def _hold(self) -> None:
        self.count += 1
        try:
            begun = monotonic()
            snapshot = self._hands.picture.snapshot(time())
            for policy in self._policies_of(snapshot, self.profile.policy):
                self._hold_one(seen_by(policy, snapshot), policy, begun)
                begun = monotonic()
        except Exception as problem:  # the scheduler stays up, whatever one session ran into
            self._note_failure(problem)
        else:
            self.failures.clear()

    def _note_failure(self, problem: Exception) -> None:
        self._report(f"session {self.count} failed, please report it: {type(problem).__name__}: {problem}")
        self._plan(monotonic() + AFTER_FAULT_SECONDS)
        for listener in self.failed if self.failures.note(problem) else ():
            listener(problem)
        if (reason := self.failures.check()) is not None:
            self.despaired(reason)

    def _hold_one(self, snapshot: Snapshot, policy: Policy, begun: float) -> None:
        """Decide for one scheduler: for the whole cluster, or for its shard."""
        taken = monotonic()
        catalogue, times = self._stopwatch.begin(self.profile.catalogue)
        decisions = self._decider.decide(snapshot, policy, catalogue, trace_level=self.trace_level)
        for watcher in self.timed:
            watcher(monotonic() - begun, taken - begun, times)
        arriving = self._take_out(decisions)
        for listener in self.decided:
            listener(snapshot, decisions)
        decisions.outcomes += (outcome for outcome in arriving if self._waits_for_admission(outcome))
        self._carry_out(snapshot, decisions)
        self._plan_next(snapshot.now, decisions)

    def _take_out(self, decisions: Decisions) -> list[Outcome]:
        """Say nothing of gangs that others look after, and of those that are still arriving, which are returned."""
        ours = [outcome for outcome in decisions.outcomes if not self._is_theirs(outcome)]
        arriving = [outcome for outcome in ours if _is_arriving(outcome)]
        decisions.outcomes = [outcome for outcome in ours if not _is_arriving(outcome)] if arriving else ours
        if arriving:
            self._plan(monotonic() + ARRIVAL_SECONDS)
        return arriving

    def _waits_for_admission(self, outcome: Outcome) -> bool:
        """Tell whether a gang without pods is admitted at once: somebody who makes them owns the group.

        Otherwise its pods are probably on their way, and only they tell which scheduler looks after it.
        """
        group = group_of(self._hands.mirror, outcome.state.gang)
        return is_admitted(outcome.state) and group is not None and controller_of(group) is not None

    def _is_theirs(self, outcome: Outcome) -> bool:
        """Tell whether another scheduler looks after a gang and writes its status: no pod is ours, or came to our gate."""
        ours, tasks = self._hands.picture.cluster.schedulers, [state.task for state in outcome.state.tasks]
        if not ours or not tasks or any(task.scheduler in ours for task in tasks):
            return False
        pod = self._hands.mirror.find(POD, *split_key(tasks[0].key))
        return pod is not None and not came_to_gate(pod)

    # --- carrying out ------------------------------------------------------------------------------------------------

    def _carry_out(self, snapshot: Snapshot, decisions: Decisions) -> None:
        for eviction in decisions.evictions.values():
            self.evicting.start(eviction)
        prepared = self._to_prepare(decisions)
        self.binding.start(decisions, prepared)
        writer = self._hands.writer
        for write in self._statuses.writes(snapshot, decisions):
            writer.leave(write)
        self._requesting.start(request_writes(snapshot, decisions, prepared))
        for write in self._conditions.writes(snapshot, decisions):
            writer.leave(write, Rank.NOTE)

    def _to_prepare(self, decisions: Decisions) -> frozenset[TaskKey]:
        """Return the pods of gangs that a binder has to prepare something for: volumes, claims, shared GPUs."""
        if BIND_REQUEST not in self.followed():
            return frozenset()
        if self.profile.policy.family == "kai":
            return frozenset(decisions.binds)
        tasks = [task for key in decisions.binds if (task := self._hands.picture.cluster.state.task(key)) is not None]
        gangs = {task.gang or task.key for task in tasks if task.shape.volume_claims or task.shape.resource_claims}
        return frozenset(task.key for task in tasks if (task.gang or task.key) in gangs)

    def _plan_next(self, now: float, decisions: Decisions) -> None:
        if decisions.again is not None:
            self._plan(monotonic() + max(decisions.again - now, SHORTEST_GAP))
        self._plan(monotonic() + shortest_wait(decisions))


def _is_arriving(outcome: Outcome) -> bool:
    """Tell whether pods of a gang are being made: it lacks some, and the last one has only just come."""
    state = outcome.state
    if len(state.tasks) >= state.gang.min_member:
        return False
    newest = max([state.gang.created, *(task.task.created for task in state.tasks)])
    return outcome.now - newest < ARRIVAL_SECONDS
