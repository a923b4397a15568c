"""Consolidation, reclaim, preempt, and the eviction of gangs that are broken for too long."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial

from phalanx.actions.kai.failed_jobs import FailedJobs
from phalanx.actions.kai.hopeless import RoomWithoutVictims
from phalanx.actions.kai.job_order import JobLine, WaitingOrder, waiting_jobs
from phalanx.actions.kai.no_victims import FailedSearch, SteadyJobs
from phalanx.actions.kai.solver import Solver, displaced, gone
from phalanx.actions.kai.victim_order import JobVictims, VictimLine, VictimOrder, holders
from phalanx.kai.amounts import Figures
from phalanx.kai.fair_shares import FairShares
from phalanx.kai.min_runtimes import MinRuntimes
from phalanx.kai.podsets import is_elastic, is_preemptible, next_tasks
from phalanx.kai.reclaim import Reclaimer, gate_verdict, victims_verdict
from phalanx.kai.shares import QueueShare
from phalanx.kai.stamps import stamp_staleness
from phalanx.kubernetes.shared_gpus import SharedGpus
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.spared import Spared
from phalanx.session.statement import Statement
from phalanx.session.trace_searches import JobLeft, JobNotTried, JobSpared, JobTried, NoVictimsFound
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import YES, Verdict


class _SearchAction:
    """The loop that consolidation, reclaim and preempt share: each waiting job searches once, in order."""

    name = ""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        Arguments(self.name, arguments).done()

    def run(self, session: Session) -> None:
        """Try every waiting job in order."""
        line = JobLine(session, waiting_jobs(session, self.name))
        order, waiting = VictimOrder(session, _possible_victims(session)), WaitingOrder(session)
        self._steady, self._room = SteadyJobs(session), RoomWithoutVictims(session)
        failed = FailedJobs(session, partial(_possible_victims, session), waiting)
        while (gang := line.pop()) is not None:
            reason = self.why_not_tried(session, gang)
            if reason:
                session.trace.note(JobNotTried, gang.key, self.name, reason)
            else:
                failed.attempt(gang, partial(self.solve, session, gang, order, waiting))

    def why_not_tried(self, session: Session, gang: GangState) -> str:
        """Say why the job may not search: one that cannot be preempted stays within the quotas; empty if it may."""
        shares = session.read_state(FairShares)
        is_within = shares is None or shares.within_quota(gang, next_tasks(session, gang))
        return "" if is_within else "it cannot be preempted, and its queue would exceed its quota"

    def why_spared(self, session: Session, gang: GangState, victim: GangState) -> Spared | None:
        """Say why a job gives nothing to another; None if it may give."""
        raise NotImplementedError

    def why_unfair(self, session: Session, units: list[JobVictims], tasks: list[TaskState]) -> str:
        """Say why a scenario that evicts these units for these tasks is not fair; empty if it is."""
        return ""

    def message(self, gang: GangState, task: TaskState) -> str:
        """Say why a task has to go."""
        raise NotImplementedError

    def prepare(self, session: Session, gang: GangState) -> None:
        """Keep what the search of this job is judged by; called before it begins."""

    def queues(self, session: Session, gang: GangState, order: VictimOrder) -> list[str]:
        """Return the queues whose jobs may give."""
        return list(order.by_queue)

    def solve(self, session: Session, gang: GangState, order: VictimOrder, waiting: WaitingOrder) -> bool:
        """Search victims for one job and commit the scenario that works; tell whether one did."""
        self.prepare(session, gang)
        self._stays: dict[Spared, GangState] = {}
        session.trace.note(JobTried, gang.key, gang.gang.queue, self.name, len(next_tasks(session, gang)))
        statement, refusal = self._search(session, gang, order, waiting)
        if statement is None:
            self._record_no_victims(session, gang, order, refusal)
            session.trace.note(JobLeft, gang.key, self.name, "no scenario works")
            return False
        statement.commit()
        changed = {operation.gang.key: operation.gang for operation in statement.operations}
        order.update({key: victim for key, victim in changed.items() if victim is not gang})
        waiting.update(changed)
        return True

    def _search(self, session: Session, gang: GangState, order: VictimOrder, waiting: WaitingOrder) -> tuple[Statement | None, str]:
        """Return the scenario that works, or None and why the last one was refused."""
        refusal = self._why_hopeless(session, gang, order)
        if refusal:
            return None, refusal
        solver = Solver(session, gang, self.name, lambda task: self.message(gang, task), waiting)
        statement = solver.solve(
            lambda: VictimLine(
                session, order, lambda victim: self._is_allowed(session, gang, victim), self.queues(session, gang, order)
            ),
            lambda units, tasks: self._why_unfair(session, gang, units, tasks),
        )
        if statement is None:
            self._room.note_failure(self.victims_of(gang))
        return statement, solver.refusal

    def _why_hopeless(self, session: Session, gang: GangState, order: VictimOrder) -> str:
        """Say why not even all who may give together make room for a job; empty if they may, or if nobody may give."""
        victims = partial(self.possible_victims, session, gang, order)
        refusal = self._room.why_hopeless(next_tasks(session, gang), self.victims_of(gang), victims)
        return refusal if refusal and any(self._is_allowed(session, gang, victim) for victim in victims()) else ""

    def victims_of(self, gang: GangState) -> Hashable:
        """Return what jobs have in common that have the same possible victims."""
        return gang.gang.queue

    def possible_victims(self, session: Session, gang: GangState, order: VictimOrder) -> list[GangState]:
        """Return all jobs of which some may give to this one."""
        return [victim for name in self.queues(session, gang, order) for _, victim in order.by_queue.get(name, ())]

    def _is_allowed(self, session: Session, gang: GangState, victim: GangState) -> bool:
        if victim is gang:
            return False
        reason = self.why_spared(session, gang, victim) or self._why_protected(session, gang, victim)
        if reason:
            self._stays.setdefault(reason, victim)
            session.trace.note(JobSpared, gang.key, victim.key, self.name, f"it {reason.of_gang}")
        return not reason

    def _record_no_victims(self, session: Session, gang: GangState, order: VictimOrder, refusal: str) -> None:
        """Leave on a job why its search was in vain: why the last scenario was refused, or why nobody may give."""
        search = FailedSearch(session, gang, self.name, self._steady, self.queues(session, gang, order))
        cause = search.cause(self._stays, self.unfair() if refusal else YES, refusal)
        gang.verdicts.append(search.verdict(cause))
        if session.trace.wants(NoVictimsFound.at_level, gang.key):
            search.note(cause, lambda victim: self.why_spared(session, gang, victim) or self._why_protected(session, gang, victim))

    def unfair(self) -> Verdict:
        """Return what was unfair about the last scenario, if that was it."""
        return YES

    def _why_protected(self, session: Session, gang: GangState, victim: GangState) -> Spared | None:
        runtime = self._min_runtime(session)
        is_free = runtime is None or is_elastic(victim) or not runtime.protects(gang, victim, self.name)
        return None if is_free else Spared.TOO_YOUNG

    def _why_unfair(self, session: Session, gang: GangState, units: list[JobVictims], tasks: list[TaskState]) -> str:
        """Judge a scenario; jobs that have just started keep their core where it is."""
        runtime = self._min_runtime(session)
        if runtime is None or runtime.spares(gang, [task for unit in units for task in unit], self.name):
            return self.why_unfair(session, units, tasks)
        return "a job would lose its core before its minimum runtime"

    def _min_runtime(self, session: Session) -> MinRuntimes | None:
        """Return what protects young jobs; None when nothing does or the action does not ask."""
        return session.read_state(MinRuntimes) if self.name in ("reclaim", "preempt") else None


def _possible_victims(session: Session) -> list[GangState]:
    return [gang for gang in session.gangs.values() if is_preemptible(gang) and holders(gang)]


class ConsolidationAction(_SearchAction):
    """Moves running jobs together so that a waiting one fits; nobody loses a place."""

    name = "consolidation"

    def why_not_tried(self, session: Session, gang: GangState) -> str:
        """Say whether the job is preemptible itself and the cluster has enough GPUs in total: consolidation adds none."""
        if not _most_moved(session):
            return "maxConsolidationPreemptees is 0"
        if not is_preemptible(gang):
            return "it cannot be preempted itself"
        if reason := super().why_not_tried(session, gang):
            return reason
        shares = session.read_state(FairShares)
        wanted = shares.next_chunk(gang)[2] if shares is not None else 0.0
        free = session.book(SharedGpus).free()
        return "" if free + 1e-6 >= wanted else f"{free:g} GPU(s) are free in all, and it needs {wanted:g}"

    def prepare(self, session: Session, gang: GangState) -> None:
        """Start counting the jobs that may be moved for this one."""
        self._moved: set[str] = set()
        self._most = _most_moved(session)

    def why_spared(self, session: Session, gang: GangState, victim: GangState) -> Spared | None:
        """Let a preemptible job be moved; one job more than the limit may be, as in KAI."""
        if self._most < 0 or victim.key in self._moved:
            return None
        if len(self._moved) > self._most:
            return Spared.ENOUGH_MOVED
        self._moved.add(victim.key)
        return None

    def why_unfair(self, session: Session, units: list[JobVictims], tasks: list[TaskState]) -> str:
        """Refuse unless every task that was evicted has a place again."""
        return "a task that would be moved has no other place" if gone(units) else ""

    def message(self, gang: GangState, task: TaskState) -> str:
        """Return the message of the eviction, in KAI's words."""
        key = task.task.key
        return f"Pod {key} was preempted and rescheduled due to bin packing (resource consolidation) procedure"


def _most_moved(session: Session) -> int:
    """Return how many jobs may be moved for one: none for 0, any number for -1."""
    return int(str(session.policy.options.get("maxConsolidationPreemptees", 16)))


class KaiPreemptAction(_SearchAction):
    """Takes room from less important jobs of the same queue."""

    name = "preempt"

    def queues(self, session: Session, gang: GangState, order: VictimOrder) -> list[str]:
        """Return the queue of the job: preemption stays inside it."""
        return [gang.gang.queue]

    def victims_of(self, gang: GangState) -> Hashable:
        """Return the queue and the priority."""
        return gang.gang.queue, gang.gang.priority

    def possible_victims(self, session: Session, gang: GangState, order: VictimOrder) -> list[GangState]:
        """Return the less important jobs of the queue."""
        return [victim for victim in super().possible_victims(session, gang, order) if victim.gang.priority < gang.gang.priority]

    def why_spared(self, session: Session, gang: GangState, victim: GangState) -> Spared | None:
        """Let jobs of the same queue give that have a strictly lower priority."""
        if victim.gang.queue != gang.gang.queue:
            return Spared.OTHER_QUEUE
        return None if victim.gang.priority < gang.gang.priority else Spared.NOT_LOWER

    def message(self, gang: GangState, task: TaskState) -> str:
        """Return the message of the eviction, in KAI's words."""
        return f"Pod {task.task.key} was preempted by higher priority workload {gang.key}"


class KaiReclaimAction(_SearchAction):
    """Takes room back from queues that have more than their share."""

    name = "reclaim"

    def why_not_tried(self, session: Session, gang: GangState) -> str:
        """Say whether the job's queue would stay within its fair share; records why not."""
        shares = session.read_state(FairShares)
        if shares is None:
            return "no plugin divides the cluster"
        if reason := super().why_not_tried(session, gang):
            return reason
        reclaimer = _reclaimer(shares, gang)
        if reclaimer is None:
            return "its queue has no share"
        verdict = gate_verdict(reclaimer)
        if not verdict.ok:
            gang.verdicts.append(verdict)
        return verdict.message

    def queues(self, session: Session, gang: GangState, order: VictimOrder) -> list[str]:
        """Return all queues but that of the job."""
        return [name for name in order.by_queue if name != gang.gang.queue]

    def why_spared(self, session: Session, gang: GangState, victim: GangState) -> Spared | None:
        """Let jobs of other queues give."""
        return None if victim.gang.queue != gang.gang.queue else Spared.SAME_QUEUE

    def prepare(self, session: Session, gang: GangState) -> None:
        """Keep what queues hold now: fairness is judged by the state in which the search begins."""
        shares = session.read_state(FairShares)
        assert shares is not None, "no job searches without shares"
        self._shares, self._allocations_at_start = shares, shares.tree.allocations()
        self._reclaimer_at_start = _reclaimer(shares, gang)
        self._unfair = YES

    def unfair(self) -> Verdict:
        """Return why the victims' queues may not lose what the last scenario took from them."""
        return self._unfair

    def why_unfair(self, session: Session, units: list[JobVictims], tasks: list[TaskState]) -> str:
        """Say why the victims' queues may not lose this; tasks that are only moved count as no loss, unless an option says so."""
        may_move = session.policy.options.get("allowConsolidatingReclaim", True)
        released: dict[QueueShare, list[Figures]] = {}
        for unit in gone(units) if may_move else displaced(units):
            leaf = self._shares.tree.leaf(unit[0].gang.gang.queue)
            if leaf is not None:
                released.setdefault(leaf, []).append(self._shares.held_by(unit))
        if self._reclaimer_at_start is None:
            return "the queue of the job has no share"
        reclaimer = replace(self._reclaimer_at_start, chunk=self._shares.chunk(tasks))
        self._unfair = victims_verdict(reclaimer, released, self._allocations_at_start, multiplier=self._shares.multiplier)
        return self._unfair.message

    def message(self, gang: GangState, task: TaskState) -> str:
        """Return the message of the eviction, in KAI's words."""
        return f"Pod {task.task.key} was preempted by workload {gang.key}."


def _reclaimer(shares: FairShares, gang: GangState) -> Reclaimer | None:
    leaf = shares.tree.leaf(gang.gang.queue)
    return None if leaf is None else Reclaimer(leaf, shares.next_chunk(gang), is_preemptible(gang))


class StaleGangEvictionAction:
    """Evicts what is left of gangs that have been below their minimum for too long."""

    name = "stalegangeviction"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, arguments).done()

    def run(self, session: Session) -> None:
        """Evict gangs whose grace is over, and ask for another session when the grace of others ends."""
        grace = float(str(session.policy.options.get("stalenessGracePeriodSeconds", 60)))
        for gang in session.gangs.values():
            since = stamp_staleness(session.decisions, gang, session.now) if grace >= 0 else None
            if since is not None and session.now - since >= grace:
                self._evict(session, gang)
            elif since is not None:
                session.decisions.look_again(since + grace)

    def _evict(self, session: Session, gang: GangState) -> None:
        statement = session.statement()
        for task in holders(gang):
            text = "Workload doesn't meet the minimum required number of pods"
            reason = f"{text} ({gang.gang.min_member}), evicting remaining pod: {task.task.key}"
            statement.evict(task, action=self.name, preemptor="", reason=reason)
        statement.commit()
