"""Let queues that have less than they deserve take it back from queues that have more.

This is Volcano's action, with its corners: nodes come in their order and not by score, a node without anybody to reclaim from is
passed over even if it has room, and filters are not asked again once victims are gone. `gangreclaim` with fewest victims has none
of them.
"""

from collections.abc import Mapping
from heapq import heappop

from phalanx.actions.dry_run import DryRun, gang_heap, starving_gangs, victim_reason, waiting_tasks
from phalanx.actions.queue_heap import Heap
from phalanx.model.queue import Queue
from phalanx.model.task_status import Status
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.victim_order import victims_in_order
from phalanx.state.gang_state import GangState, TaskState


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
        heaps = gang_heap(session, starving_gangs(session, skips_topology=False))
        queues = Heap[Queue](session.queue_comes_first)
        for name in sorted({gang.gang.queue for gang in session.gangs.values()}):
            queues.push(session.queues[name])
        while len(queues):
            queue = queues.pop()
            if not session.queue_overused(queue).ok:
                session.trace.note(3, "overused", f"queue {queue.name} is overused, ignore it", queue=queue.name)
                continue
            gangs = heaps.get(queue.name, [])
            while gangs:
                _Reclaim(session, heappop(gangs)[-1], queue).run()


class _Reclaim:
    """Reclaims for the tasks of one gang."""

    def __init__(self, session: Session, gang: GangState, queue: Queue) -> None:
        self._session, self._gang, self._queue = session, gang, queue

    def run(self) -> None:
        """Find a place for each task; evict only if the gang then has enough."""
        session = self._session
        with session.statement() as statement:
            tasks = waiting_tasks(session, self._gang)
            while tasks and session.gang_starving(self._gang).ok:
                task = tasks.pop()
                if task.task.may_preempt and session.queue_preemptive(self._queue, [task]).ok and session.prefilter(task).ok:
                    self._for_task(task, statement)
            if session.gang_pipelined(self._gang):
                statement.commit()

    def _for_task(self, task: TaskState, statement: Statement) -> None:
        dry_run = DryRun(self._session, task)
        for node in dry_run.nodes():
            if self._try_node(task, int(node), dry_run, statement):
                return

    def _try_node(self, task: TaskState, node: int, dry_run: DryRun, statement: Statement) -> bool:
        session = self._session
        candidates = [victim for victim in session.running_on(node) if self._may_go(victim)]
        if not candidates:
            return False
        victims = session.reclaimable(task, candidates)
        if not dry_run.could_fit(node, victims):
            return False
        line, voters = victims_in_order(session, victims, task), session.voters()
        part = session.statement()
        while line and not dry_run.fits(node):
            victim = line.pop(0)
            rule = f"reclaimed from queue {victim.gang.gang.queue} for gang {task.gang.key} of queue {self._queue.name}"
            why = victim_reason(voters, victims, line, session.node_name(node))
            part.evict(victim, action="reclaim", preemptor=task.gang.key, reason=f"{rule}; {why}")
        if not dry_run.fits(node):
            part.discard()
            return False
        part.pipeline([task], [node])
        statement.merge(part)
        return True

    def _may_go(self, victim: TaskState) -> bool:
        queue = self._session.queues[victim.gang.gang.queue]
        is_foreign = queue.name != self._queue.name and queue.is_reclaimable
        return is_foreign and victim.status is Status.RUNNING and victim.task.is_preemptable
