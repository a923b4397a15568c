"""Consolidation, reclaim, preempt, and the eviction of gangs that are broken for too long."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from phalanx.actions.kai.failed_jobs import FailedJobs
from phalanx.actions.kai.job_order import JobLine, WaitingOrder, waiting_jobs
from phalanx.actions.kai.solver import Solver, gone, uprooted
from phalanx.actions.kai.victim_order import VictimLine, VictimOrder, VictimUnit, holders
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
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import Verdict


class _SearchAction:
    """What the three searches share: job after job, each once."""

    name = ""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        Arguments(self.name, arguments).done()

    def run(self, session: Session) -> None:
        """Try every waiting job in order."""
        line = JobLine(session, waiting_jobs(session, self.name))
        order, waiting = VictimOrder(session, _active(session)), WaitingOrder(session)
        failed = FailedJobs(session, partial(_active, session), waiting)
        while (gang := line.pop()) is not None:
            if self.may_try(session, gang):
                failed.attempt(gang, partial(self.solve, session, gang, order, waiting))

    def may_try(self, session: Session, gang: GangState) -> bool:
        """Tell whether the job may search at all: one that cannot be preempted stays within the quotas."""
        shares = session.read_state(FairShares)
        return shares is None or shares.within_quota(gang, next_tasks(session, gang))

    def may_give(self, session: Session, gang: GangState, victim: GangState) -> bool:
        """Tell whether a job may give to another."""
        raise NotImplementedError

    def judge(self, session: Session, units: list[VictimUnit], tasks: list[TaskState]) -> bool:
        """Tell whether a scenario that evicts these units for these tasks is fair."""
        return True

    def message(self, gang: GangState, task: TaskState) -> str:
        """Say why a task has to go."""
        raise NotImplementedError

    def prepare(self, session: Session, gang: GangState) -> None:
        """Note the state in which the search begins."""

    def queues(self, session: Session, gang: GangState, order: VictimOrder) -> list[str]:
        """Return the queues whose jobs may give."""
        return list(order.by_queue)

    def solve(self, session: Session, gang: GangState, order: VictimOrder, waiting: WaitingOrder) -> bool:
        """Search victims for one job and carry out what is found; tell whether anything was."""
        self.prepare(session, gang)
        solver = Solver(session, gang, self.name, lambda task: self.message(gang, task), waiting)
        statement = solver.solve(
            lambda: VictimLine(
                session, order, lambda victim: self._is_allowed(session, gang, victim), self.queues(session, gang, order)
            ),
            lambda units, tasks: self._spares_cores(session, gang, units) and self.judge(session, units, tasks),
        )
        if statement is None:
            gang.verdicts.append(Verdict.refuse(self.name, "NoVictims", f"no victims for {self.name}"))
            return False
        statement.commit()
        changed = {operation.gang.key: operation.gang for operation in statement.operations}
        order.update({key: victim for key, victim in changed.items() if victim is not gang})
        waiting.update(changed)
        return True

    def _is_allowed(self, session: Session, gang: GangState, victim: GangState) -> bool:
        if victim is gang or not self.may_give(session, gang, victim):
            return False
        runtime = self._min_runtime(session)
        return runtime is None or is_elastic(victim) or not runtime.protects(gang, victim, self.name)

    def _spares_cores(self, session: Session, gang: GangState, units: list[VictimUnit]) -> bool:
        """Tell whether jobs that have just started keep their core where it is."""
        runtime = self._min_runtime(session)
        return runtime is None or runtime.spares(gang, [task for unit in units for task in unit], self.name)

    def _min_runtime(self, session: Session) -> MinRuntimes | None:
        """Return what protects young jobs; None when nothing does or the action does not ask."""
        return session.read_state(MinRuntimes) if self.name in ("reclaim", "preempt") else None


def _active(session: Session) -> list[GangState]:
    return [gang for gang in session.gangs.values() if is_preemptible(gang) and holders(gang)]


class ConsolidationAction(_SearchAction):
    """Moves running jobs together so that a waiting one fits; nobody loses a place."""

    name = "consolidation"

    def may_try(self, session: Session, gang: GangState) -> bool:
        """Only jobs that may be preempted themselves, and only if there are enough GPUs in total."""
        if not _most_moved(session) or not is_preemptible(gang) or not super().may_try(session, gang):
            return False
        shares = session.read_state(FairShares)
        wanted = shares.next_chunk(gang)[2] if shares is not None else 0.0
        return bool(session.book(SharedGpus).free() + 1e-6 >= wanted)

    def prepare(self, session: Session, gang: GangState) -> None:
        """Count the jobs that are moved: not more than a number."""
        self._moved: set[str] = set()
        self._most = _most_moved(session)

    def may_give(self, session: Session, gang: GangState, victim: GangState) -> bool:
        """Every job that may be preempted, up to a number."""
        if self._most < 0 or victim.key in self._moved:
            return True
        if len(self._moved) > self._most:
            return False
        self._moved.add(victim.key)
        return True

    def judge(self, session: Session, units: list[VictimUnit], tasks: list[TaskState]) -> bool:
        """Everybody must have found a new place."""
        return not gone(units)

    def message(self, gang: GangState, task: TaskState) -> str:
        """In KAI's words."""
        key = task.task.key
        return f"Pod {key} was preempted and rescheduled due to bin packing (resource consolidation) procedure"


def _most_moved(session: Session) -> int:
    """Return how many jobs may be moved for one: none for 0, any number for -1."""
    return int(str(session.policy.options.get("maxConsolidationPreemptees", 16)))


class PreemptAction(_SearchAction):
    """Takes room from less important jobs of the same queue."""

    name = "preempt"

    def queues(self, session: Session, gang: GangState, order: VictimOrder) -> list[str]:
        """Only its own."""
        return [gang.gang.queue]

    def may_give(self, session: Session, gang: GangState, victim: GangState) -> bool:
        """Jobs of strictly lower priority in the same queue."""
        return victim.gang.queue == gang.gang.queue and victim.gang.priority < gang.gang.priority

    def message(self, gang: GangState, task: TaskState) -> str:
        """In KAI's words."""
        return f"Pod {task.task.key} was preempted by higher priority workload {gang.key}"


class ReclaimAction(_SearchAction):
    """Takes room back from queues that have more than their share."""

    name = "reclaim"

    def may_try(self, session: Session, gang: GangState) -> bool:
        """The job's queue must stay within its fair share."""
        shares = session.read_state(FairShares)
        if shares is None or not super().may_try(session, gang):
            return False
        reclaimer = _reclaimer(shares, gang)
        if reclaimer is None:
            return False
        verdict = gate_verdict(reclaimer)
        if not verdict.ok:
            gang.verdicts.append(verdict)
        return verdict.ok

    def queues(self, session: Session, gang: GangState, order: VictimOrder) -> list[str]:
        """All others."""
        return [name for name in order.by_queue if name != gang.gang.queue]

    def may_give(self, session: Session, gang: GangState, victim: GangState) -> bool:
        """Jobs of other queues."""
        return victim.gang.queue != gang.gang.queue

    def prepare(self, session: Session, gang: GangState) -> None:
        """Fairness is judged by the state in which the search begins."""
        shares = session.read_state(FairShares)
        assert shares is not None, "no job searches without shares"
        self._shares, self._standing, self._asking = shares, shares.tree.standing(), _reclaimer(shares, gang)

    def judge(self, session: Session, units: list[VictimUnit], tasks: list[TaskState]) -> bool:
        """Ask the arithmetic of queues; who is moved has lost nothing, unless the option says otherwise."""
        may_move = session.policy.options.get("allowConsolidatingReclaim", True)
        released: dict[QueueShare, list[Figures]] = {}
        for unit in gone(units) if may_move else uprooted(units):
            leaf = self._shares.tree.leaf(unit[0].gang.gang.queue)
            if leaf is not None:
                released.setdefault(leaf, []).append(self._shares.held_by(unit))
        if self._asking is None:
            return False
        asking = replace(self._asking, chunk=self._shares.chunk(tasks))
        return victims_verdict(asking, released, self._standing, multiplier=self._shares.multiplier).ok

    def message(self, gang: GangState, task: TaskState) -> str:
        """In KAI's words."""
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
        """Look at every gang once."""
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
