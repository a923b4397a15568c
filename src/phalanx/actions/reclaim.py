"""Let queues that have less than they deserve take it back from queues that have more.

This is Volcano's action, with its corners: nodes come in their order and not by score, a node without anybody to reclaim from is
passed over even if it has room, and filters are not asked again once victims are gone. `gangreclaim` with fewest victims has none
of them.
"""

from collections.abc import Mapping
from heapq import heappop

from phalanx.actions.dry_run import (
    TOO_LITTLE_ROOM,
    VICTIMS_NOT_ENOUGH,
    DryRun,
    Running,
    calm_gangs,
    candidates_on,
    gang_heap,
    note_no_room,
    note_room,
    refuse_line,
    starving_gangs,
    victim_reason,
    waiting_tasks,
    why_refused,
)
from phalanx.actions.queue_heap import Heap
from phalanx.actions.victim_survey import NEVER_PREEMPTS, SearchRule, record_no_victims
from phalanx.model.queue import Queue
from phalanx.model.task_status import Status
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.spared import Spared
from phalanx.session.statement import Statement
from phalanx.session.trace_events import NoPreemptors, QueueNext, QueueOverused
from phalanx.session.trace_searches import MayNotEvict, NoTaskLeft
from phalanx.session.victim_order import victims_in_order
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import Verdict


class ReclaimAction:
    """Evicts between queues."""

    name = "reclaim"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings."""
        settings = Arguments(self.name, arguments)
        settings.switch("predicateErrorCacheEnable", True)
        settings.switch("enablePredicateErrorCache", True)
        settings.done()

    def run(self, session: Session) -> None:
        """Work through the queues in order; an overused one takes nothing."""
        heaps = gang_heap(session, starving_gangs(session, self.name, skips_topology=False))
        queues = Heap[Queue](session.queue_comes_first)
        for name in sorted({gang.gang.queue for gang in session.gangs.values()}):
            queues.push(session.queues[name])
        for gang in calm_gangs(session):
            _Reclaim(session, gang, session.queues[gang.gang.queue]).record_no_victims()
        while len(queues):
            queue = queues.pop()
            overused = session.queue_overused(queue)
            if not overused.ok:
                session.trace.note(QueueOverused, queue.name, overused.plugin, overused.message)
                refuse_line(heaps.get(queue.name, []), self.name, overused)
                continue
            gangs = heaps.get(queue.name, [])
            if gangs:
                session.trace.note(QueueNext, self.name, queue.name, len(gangs))
            while gangs:
                _Reclaim(session, heappop(gangs)[-1], queue).run()
            session.trace.note(NoPreemptors, queue.name)


class _Reclaim:
    """Reclaims for the tasks of one gang."""

    def __init__(self, session: Session, gang: GangState, queue: Queue) -> None:
        self._session, self._gang, self._queue = session, gang, queue

    def run(self) -> None:
        """Find a place for each task; evict only if the gang then has enough."""
        session = self._session
        with session.statement() as statement:
            tasks = waiting_tasks(session, self._gang)
            if not tasks:
                session.trace.note(NoTaskLeft, self._gang.key, "reclaim")
            while tasks and session.gang_starving(self._gang).ok:
                task = tasks.pop()
                reason = why_refused(self._eligibility(task))
                if reason:
                    session.trace.note(MayNotEvict, self._gang.key, task.task.key, "reclaim", reason)
                else:
                    self._for_task(task, statement)
            is_done = session.gang_pipelined(self._gang)
            if is_done:
                statement.commit()
        if not is_done:
            self.record_no_victims()

    def record_no_victims(self) -> None:
        waiting = waiting_tasks(self._session, self._gang) if self._session.policy.says_why else []
        if waiting:
            rule = SearchRule("reclaim", "reclaim", "reclaimable", self._why_spared, takes_wholes=False)
            record_no_victims(self._session, waiting[-1], rule, self._eligibility(waiting[-1]))

    def _eligibility(self, task: TaskState) -> Verdict:
        """Refuse a task for which nothing is reclaimed."""
        if not task.task.may_preempt:
            return NEVER_PREEMPTS
        verdict = self._session.queue_preemptive(self._queue, [task])
        return verdict if not verdict.ok else self._session.prefilter(task)

    def _for_task(self, task: TaskState, statement: Statement) -> None:
        dry_run = DryRun(self._session, task)
        for node in dry_run.nodes():
            if self._try_node(task, int(node), dry_run, statement):
                return

    def _try_node(self, task: TaskState, node: int, dry_run: DryRun, statement: Statement) -> bool:
        session = self._session
        candidates = candidates_on(session, node, task, self._why_spared)
        if not candidates:
            return False
        victims = session.reclaimable(task, candidates)
        if not dry_run.could_fit(node, victims):
            note_no_room(session, task, node, TOO_LITTLE_ROOM)
            return False
        order, voters = victims_in_order(session, victims, task), session.voters()
        line = list(order)
        part = session.statement()
        while line and not dry_run.fits(node):
            victim = line.pop(0)
            rule = f"reclaimed from queue {victim.gang.gang.queue} for gang {task.gang.key} of queue {self._queue.name}"
            why = victim_reason(voters, victims, line, session.node_name(node))
            part.evict(victim, action="reclaim", preemptor=task.gang.key, reason=f"{rule}; {why}")
        if not dry_run.fits(node):
            part.discard()
            note_no_room(session, task, node, VICTIMS_NOT_ENOUGH)
            return False
        note_room(session, task, node, order[: len(order) - len(line)])
        part.pipeline([task], [node])
        statement.merge(part)
        return True

    def _why_spared(self, victim: Running) -> Spared | None:
        queue = self._session.queues[victim.gang.gang.queue]
        if queue.name == self._queue.name:
            return Spared.SAME_QUEUE
        if not queue.is_reclaimable:
            return Spared.NOT_RECLAIMABLE
        if victim.status is not Status.RUNNING:
            return Spared.NOT_RUNNING
        return None if victim.task.is_preemptable else Spared.NOT_PREEMPTABLE
