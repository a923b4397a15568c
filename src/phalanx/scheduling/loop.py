"""The session loop: when sessions are held, and what becomes of what they decide.

A session is held after every change that matters, with a gap between two of them, and now and then because some decisions depend on
time alone. What it decides is sent in the order of its urgency: victims first, so that their room gets free, then binds, then what
people and controllers read. Nothing here waits for an answer: the next session sees what was sent as if it had come through
(`cache.py`), and is corrected when it has not.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TypeVar

from phalanx.controllers.controller import Patch, RecordEvent
from phalanx.controllers.objects import controller_of, group_of
from phalanx.errors import ClusterError
from phalanx.explain.gang_status import is_admitted
from phalanx.model.bounds import SESSION_SECONDS
from phalanx.model.kinds import POD
from phalanx.model.task import GangKey, TaskKey
from phalanx.model.task_status import Status
from phalanx.model.watch_event import WatchEvent
from phalanx.plugins.bindbackoff import shortest_wait
from phalanx.scheduling.annotator import Annotator
from phalanx.scheduling.bind_requests import BindRequester
from phalanx.scheduling.binding import Binding
from phalanx.scheduling.cache import SchedulerCache, Urgency
from phalanx.scheduling.eviction import Evictor
from phalanx.scheduling.failures import Failures
from phalanx.scheduling.kept_nodes import KeptNodes
from phalanx.scheduling.nominator import Nominator
from phalanx.scheduling.pod_conditions import PodConditions
from phalanx.scheduling.port import ClusterPort, Effort, Report, Timer
from phalanx.scheduling.session_listeners import SessionListeners
from phalanx.scheduling.sessions import HeldSession, Scope, Sessions
from phalanx.scheduling.status_writer import StatusWriter
from phalanx.scheduling.timing import Stopwatch, Times
from phalanx.session.cycle import Profile
from phalanx.session.decision import Decisions, Fault, Outcome
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import ShardDecisions, as_one
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

Told = TypeVar("Told")
NEVER = float("inf")
BETWEEN_WARNINGS_SECONDS = 60.0
"""One warning of sessions that take too long in so many seconds is enough."""


class BinderUse(Enum):
    """Which pods a binder binds, by BindRequests; all others are bound at once."""

    NOBODY = "nobody"
    WITH_CLAIMS = "gangs with volumes or resource claims, for which something has to be prepared"
    EVERYBODY = "every pod, as in KAI"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often sessions are held; all in seconds."""

    gap: float = 0.02
    """Between two sessions, at least; or as long as the last one took: a storm of events leaves time for answers."""
    later: float = 1.0
    """From a change that leaves room as it was, such as a pod that starts, to the session that looks at it."""
    heartbeat: float = 60.0
    """Between two sessions, at most: some decisions depend on time alone."""
    rests: bool = False
    """No heartbeat while nobody waits and nobody may have to move: a simulation is over when nothing is planned."""
    wakes_all: bool = True
    """Whatever may help any gang lets a session look at all that wait; simulations of weeks ask only when their time has come."""
    arrival: float = 3.0
    """After the last pod of a gang that lacks some has come or gone, nothing is said about missing ones for so long."""
    after_fault: float = 1.0
    is_resilient: bool = True
    """A session that raises is reported and the loop goes on; in a simulation it raises to whoever runs that."""
    isolates: bool = True
    """A session goes on without a gang or a listener on which it fails, which is reported; tests rather see it raise."""
    writes_pod_conditions: bool = True
    """Pods say why they wait; simulations save that, because nobody reads it."""
    says_why: bool = True
    """Groups do; simulations of weeks save that too, unless their sessions are traced or recorded."""


class SessionLoop(SessionListeners):
    """Holds sessions and carries them out, from `start` to `stop`."""

    def __init__(
        self, port: ClusterPort, cache: SchedulerCache, profile: Profile, pace: Pace, *, report: Report,
        longest_rest: float | None = None,
    ) -> None:  # fmt: skip
        """`report` is called with sessions that failed; see `Scope` for `longest_rest`."""
        super().__init__()
        self._port, self._cache, self.profile, self._pace, self._report = port, cache, profile, pace, report
        self._clock, self.scope = port.clock, Scope(pace.wakes_all, pace.arrival, pace.isolates, longest_rest)
        self.sessions = Sessions(cache, port.view, self.scope)
        self._annotator = Annotator(port, cache)
        self.binding = Binding(port, cache, self._annotator, wake=self._wake_later)
        self.evictor = Evictor(port, cache, wake=self._wake_later)
        self.evictor.settled.append(self._evictions_settled)
        self._terms: tuple[object, ...] = ()
        """What gangs that are left out waited under: when that changes, a session looks at all of them."""
        self._ask_all_at = NEVER
        self._held_back: set[str] = set()
        """Gangs and pods that could be bound, were it not for those who are still to go for them."""
        self._requester = BindRequester(port, cache, wake=self._wake_later, report=report)
        self._statuses = StatusWriter(port.view, self._failed_in_part)
        self._nominator = Nominator(port, cache)
        self._conditions: dict[str, PodConditions] = {}
        """By shard: each remembers the pods of its own last session, and forgets all others."""
        self._timer: Timer | None = None
        self._due, self._earliest = NEVER, 0.0
        """When the next session is held, and the first moment at which one may be, by the elapsed time."""
        self._is_running = self._is_carrying_out = False
        self._stopwatch = Stopwatch(lambda: self._clock.elapsed)
        self._kept_nodes = KeptNodes(port, cache, self._annotator)
        self.keeps_nodes = False
        """Nodes that gangs are nominated to are kept from autoscalers."""
        self.requests_nodes: Callable[[GangState], bool] = lambda state: False
        """Nodes for a gang are asked for by a controller, as a whole."""
        self.may_decide: Callable[[], bool] = lambda: True
        self.binder_use: Callable[[], BinderUse] = lambda: BinderUse.NOBODY
        self._next_warning = 0.0
        self.count = 0
        """How many sessions were held."""
        self._faults: Mapping[GangKey, Fault] = {}
        self.trace_level = 0
        self.traced_gangs: Collection[str] = ()
        """Only steps that concern these gangs are traced; all if there are none."""
        self.failures = Failures(lambda: self._clock.elapsed)

    # --- when --------------------------------------------------------------------------------------------------------

    @property
    def pace(self) -> Pace:
        """How often sessions are held."""
        return self._pace

    def start(self) -> None:
        """Hold sessions from now on, after the first change; another process may have written statuses and conditions before."""
        self._held_back.clear()
        self._kept_nodes.forget()
        self._is_running, self._due = True, NEVER
        self.doubt_writes()

    def doubt_writes(self) -> None:
        """Go by what objects say of statuses and conditions: what was written may be undone, and nobody reports that."""
        self._statuses.forget()
        self._nominator.forget()
        self._requester.forget()
        self._conditions.clear()
        self._write_again()

    def stop(self) -> None:
        """Hold no sessions until the next start."""
        self._is_running, self._due = False, NEVER
        if self._timer is not None:
            self._timer.cancel()

    def notice(self, urgency: Urgency) -> None:
        """Something has changed in the cluster; what a session changes itself needs no other session."""
        if not self._is_carrying_out:
            self.wake(urgency)

    def wake(self, urgency: Urgency) -> None:
        """Hold a session soon, or a while later."""
        if urgency is not Urgency.NEVER:
            self._plan(self._clock.elapsed + (self._pace.later if urgency is Urgency.LATER else 0.0))

    def _wake_later(self) -> None:
        self.wake(Urgency.LATER)

    def _plan(self, moment: float) -> None:
        moment = max(moment, self._earliest)
        if not self._is_running or moment >= self._due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = moment
        self._timer = self._clock.after(max(moment - self._clock.elapsed, 0.0), self._hold)

    # --- one session -------------------------------------------------------------------------------------------------

    def _hold(self) -> None:
        begun, self._due, self._timer = self._clock.elapsed, NEVER, None
        self._earliest = begun + self._pace.gap
        if not self._pace.rests:
            self._plan(begun + self._pace.heartbeat)
        if not self.may_decide() or self._is_idle():
            return
        self.count += 1
        try:
            self._decide(begun)
        except Exception as problem:  # the scheduler stays up, whatever one session ran into
            if not self._pace.is_resilient:
                raise
            self._note_failure(problem)
        else:
            self.failures.clear()
        ended = self._clock.elapsed
        self._postpone(ended + max(self._pace.gap, ended - begun) if ended > begun else self._earliest)

    def _is_idle(self) -> bool:
        """Tell whether no gang could be in the session, where that is known without a snapshot."""
        is_known = self._pace.rests and self.sessions.unschedulable is not None and not self.profile.policy.moves_running
        return is_known and not self._cache.cluster.state.has_active()

    def _postpone(self, earliest: float) -> None:
        """Let the next session wait for its gap, though one was asked for meanwhile."""
        due, self._earliest = self._due, earliest
        if due < earliest and self._timer is not None:
            self._timer.cancel()
            self._due = NEVER
            self._plan(earliest)

    def _note_failure(self, problem: Exception) -> None:
        self._report(f"session {self.count} failed, please report it: {type(problem).__name__}: {problem}")
        self._plan(self._clock.elapsed + self._pace.after_fault)
        self._ask_all()  # it may have been asked in the session that failed, which nobody remembers
        for listener in self.failed if self.failures.note(problem) else ():
            listener(problem)
        if (reason := self.failures.check()) is not None:
            self.despaired(reason)

    def _failed_in_part(self, problem: Exception) -> None:
        """Go on with the rest of a session, where one gang or one listener failed."""
        if not self._pace.isolates:
            raise problem
        if self.failures.is_new(problem):
            self._report(f"part of session {self.count} failed, please report it: {type(problem).__name__}: {problem}")
            for listener in self.failed:
                listener(problem)

    def _decide(self, begun: float) -> None:
        session = self._held(begun)
        for listener in self.held:
            self._tell(listener, session)
        for part in session.parts:
            self._hold_back(part.decisions)
        self.evictor.hold_back(part.decisions for part in session.parts)
        self._announce(session)
        self._is_carrying_out = True
        try:
            for part, outcomes in zip(session.parts, session.changing, strict=True):
                part.decisions.outcomes.extend(outcome for outcome in outcomes if self._waits_for_admission(outcome))
                self._carry_out(part)
            if self.keeps_nodes:
                self._tell(self._kept_nodes.update, session.parts)
        finally:
            self._is_carrying_out = False
        self._plan_next(session.snapshot, session.parts)

    def _held(self, begun: float) -> HeldSession:
        """Hold a session, and say how long it took."""
        now, taken = self._clock.now, [begun]
        catalogue, times = self._stopwatch.begin(self.profile.catalogue, samples=bool(self.timed))
        session = self.sessions.hold(
            Profile(self._policy(), catalogue), now, asks_all=self._asks_all(now), trace_level=self.trace_level,
            traced_gangs=self.traced_gangs, begun=lambda: taken.append(self._clock.elapsed),
        )  # fmt: skip
        for watcher in self.timed:
            watcher(self._clock.elapsed - begun, taken[-1] - begun, times)
        self._warn_of_length(self._clock.elapsed - begun, times)
        if any(session.changing):
            self._plan(self._clock.elapsed + self._pace.arrival)
        again = session.parts[0].decisions.again
        if again is not None and self.sessions.leaves_out(
            self.profile
        ):  # something depends on time, and nobody says for which gang
            self._ask_all_at = min(self._ask_all_at, again)
        return session

    def _policy(self) -> Policy:
        """Return the policy of the next session, which finds no reasons where nobody reads any."""
        says_why = self._pace.says_why or self.trace_level > 0 or bool(self.held)
        return self.profile.policy if says_why else replace(self.profile.policy, says_why=False)

    def _asks_all(self, now: float) -> bool:
        """Tell whether the next session looks at gangs too that were left out so far."""
        terms = (self._cache.terms, self.profile.policy)
        is_due = self._pace.wakes_all and (terms != self._terms or now >= self._ask_all_at)
        self._terms, self._ask_all_at = terms, NEVER if is_due else self._ask_all_at
        return is_due

    def _ask_all(self) -> None:
        """Let the next session look at all gangs: one that is left out has something to say that did not come through."""
        self._ask_all_at = 0.0

    def _warn_of_length(self, seconds: float, times: Times) -> None:
        """Report a session that took too long, with what took longest; the plugins of the next one are measured in any case."""
        if seconds <= SESSION_SECONDS.most:
            return
        self._stopwatch.look_closely()
        if self._clock.elapsed >= self._next_warning:
            self._next_warning = self._clock.elapsed + BETWEEN_WARNINGS_SECONDS
            longest = f": {text}" if (text := times.longest()) else ""
            most = f"{SESSION_SECONDS.most} s ({SESSION_SECONDS.variable})"
            self._report(f"session {self.count} took {seconds:.1f} s, more than {most}{longest}")

    def _announce(self, session: HeldSession) -> None:
        snapshot, decisions = as_one(session.whole, session.parts)
        self._report_faults(decisions)
        for listener in self.decided:
            self._tell(partial(listener, snapshot), decisions)

    def _tell(self, listener: Callable[[Told], None], what: Told) -> None:
        try:
            listener(what)
        except Exception as problem:  # what is decided is carried out all the same
            self._failed_in_part(problem)

    def _report_faults(self, decisions: Decisions) -> None:
        """Report gangs on which sessions fail, each once for as long as they do."""
        for key, fault in decisions.faults.items():
            if self._faults.get(key) != fault:
                self._report(f"gang {key}: {fault.sentence}")
        self._faults = decisions.faults

    # --- whom it concerns --------------------------------------------------------------------------------------------

    def _hold_back(self, decisions: Decisions) -> None:
        """Bind nobody as long as those who are to go for it may stay: the limits of its queue would not hold then."""
        if not self.evictor.awaited_by:
            return
        tasks = [task for key in decisions.binds if (task := self._cache.cluster.state.task(key)) is not None]
        held = {task.key: name for task in tasks if (name := task.gang or task.key) in self.evictor.awaited_by}
        for key in held:
            del decisions.binds[key]
        self._held_back.update(held.values())
        decisions.outcomes = [outcome for outcome in decisions.outcomes if outcome.state.key not in self._held_back]

    def _evictions_settled(self, preemptor: str) -> None:
        if preemptor in self._held_back:
            self._held_back.discard(preemptor)
            self.wake(Urgency.SOON)

    def _waits_for_admission(self, outcome: Outcome) -> bool:
        """Tell whether a gang without pods is admitted at once: somebody who makes them owns the group.

        Otherwise its pods are probably on their way, and only they tell which scheduler looks after it.
        """
        group = group_of(self._port.view, outcome.state.gang)
        return is_admitted(outcome.state) and group is not None and controller_of(group) is not None

    # --- carrying out ------------------------------------------------------------------------------------------------

    def _carry_out(self, part: ShardDecisions) -> None:
        snapshot, decisions = part.snapshot, part.decisions
        for eviction in decisions.evictions.values():
            self.evictor.start(eviction)
        self._plan_write(self.evictor.due, snapshot.now)
        use = self.binder_use()
        prepared = self._to_prepare(decisions, use)
        self.binding.start(decisions, prepared)
        for status in self._statuses.writes(snapshot, decisions):
            self._port.send(status, partial(self._status_answered, status), effort=Effort.JOINED)
        self._nominator.write(snapshot, decisions)
        self._plan_write(self._nominator.due, snapshot.now)
        self._stamp(decisions)
        if use is not BinderUse.NOBODY:
            self._requester.start(snapshot, decisions, prepared)
            self._plan_write(self._requester.due, snapshot.now)
        if self._pace.writes_pod_conditions:
            told = PodConditions(self._port.view, self._failed_in_part, self.requests_nodes)
            conditions = self._conditions.setdefault(part.shard, told)
            for uid, condition in conditions.writes(snapshot, decisions):
                answered = partial(self._condition_answered, conditions, uid)
                self._port.send(condition, answered, effort=Effort.JOINED, is_note=True)
            self._plan_write(conditions.due, snapshot.now)
            if conditions.due is not None:
                self._ask_all()
        if self._statuses.has_admitted:  # the next session builds on it
            self.wake(Urgency.SOON)
        self._plan_write(self._statuses.due, snapshot.now)
        if self._statuses.has_refused or self._nominator.due is not None:
            self._ask_all()

    def _stamp(self, decisions: Decisions) -> None:
        """Let groups remember what sessions build on."""
        for gang in (outcome.state.gang for outcome in decisions.outcomes):
            texts = decisions.stamps.get(gang.key)
            if texts and (group := group_of(self._port.view, gang)) is not None:
                self._annotator.write(group, texts)

    def _plan_write(self, due: float | None, now: float) -> None:
        """Hold a session when something may be written that was held back."""
        if due is not None and not self._pace.rests:
            self._plan(self._clock.elapsed + due - now)

    def _status_answered(self, write: Patch | RecordEvent, problem: ClusterError | None) -> None:
        if self._statuses.answered(write, problem):
            self._write_again()

    def _condition_answered(self, conditions: PodConditions, uid: str, problem: ClusterError | None) -> None:
        if conditions.answered(uid, problem):
            self._write_again()

    def _write_again(self) -> None:
        self._ask_all()
        self._wake_later()

    def noticed(self, event: WatchEvent) -> None:
        """Look whether somebody has overwritten what sessions wrote."""
        if event.kind is POD:
            is_gone = sum(conditions.noticed(event) for conditions in self._conditions.values()) > 0
        else:
            is_gone = self._statuses.noticed(event)
        if is_gone:
            self._write_again()

    def _to_prepare(self, decisions: Decisions, use: BinderUse) -> frozenset[TaskKey]:
        """Return the pods that a binder binds; a gang goes to it as a whole, so that one place judges whether it is whole."""
        if use is BinderUse.NOBODY:
            return frozenset()
        if use is BinderUse.EVERYBODY:
            return frozenset(decisions.binds)
        tasks = [task for key in decisions.binds if (task := self._cache.cluster.state.task(key)) is not None]
        gangs = {task.gang or task.key for task in tasks if task.shape.volume_claims or task.shape.resource_claims}
        return frozenset(task.key for task in tasks if (task.gang or task.key) in gangs)

    def _plan_next(self, snapshot: Snapshot, parts: list[ShardDecisions]) -> None:
        elapsed, now = self._clock.elapsed, snapshot.now
        if snapshot.next_due < NEVER:  # a gang has run as long as it may, and its group has to say so
            self._plan(elapsed + max(snapshot.next_due - now, self._pace.gap))
        for decisions in (part.decisions for part in parts):
            if decisions.again is not None:
                self._plan(elapsed + max(decisions.again - now, self._pace.gap))
            if self._pace.rests and not self._is_awaited(snapshot, decisions):
                self._plan_retry(now)
            else:
                self._plan(elapsed + min(self._pace.heartbeat, shortest_wait(decisions), self._next_question(now)))
        if self._pace.wakes_all and self._ask_all_at < NEVER:  # a session in between may know nothing of it
            self._plan(elapsed + max(self._ask_all_at - now, self._pace.gap))

    def _is_awaited(self, snapshot: Snapshot, decisions: Decisions) -> bool:
        """Tell whether somebody waits, or runs and may have to go elsewhere as time passes."""
        if any(_is_waiting(outcome) for outcome in decisions.outcomes):
            return True
        members = (task for key in snapshot.gangs for task in snapshot.members_of(key).values())
        return self.profile.policy.moves_running and any(task.status is Status.RUNNING for task in members)

    def _next_question(self, now: float) -> float:
        """Return after how many seconds a gang that is left out wants to be asked again."""
        resting = self.sessions.unschedulable
        moment = resting.next_time() if resting is not None and self.sessions.leaves_out(self.profile) else None
        return NEVER if moment is None else max(moment - now, self._pace.later)

    def _plan_retry(self, now: float) -> None:
        moment = self.sessions.unschedulable.next_time() if self.sessions.unschedulable is not None else None
        if moment is not None:
            self._plan(self._clock.elapsed + max(moment - now, self._pace.heartbeat))


def _is_waiting(outcome: Outcome) -> bool:
    return any(task.status is Status.PENDING or task.status is Status.PIPELINED for task in outcome.state.tasks)
