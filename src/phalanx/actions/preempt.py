"""Let important gangs take room from less important ones of the same queue, and important tasks from others of their gang.

First between gangs: victims are evicted node by node until a task fits; a gang's evictions are carried out only if the whole
gang then has a place. Then inside each gang: a task may push out a less important one, each for itself.
"""

from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import count
from typing import Any

from phalanx.actions.dry_run import (
    NOT_PREEMPTABLE,
    OTHER_QUEUE,
    TOO_LITTLE_ROOM,
    VICTIMS_NOT_ENOUGH,
    DryRun,
    Spared,
    candidates_on,
    gang_heap,
    note_no_room,
    note_room,
    passes_own_filters,
    starving_gangs,
    victim_reason,
    waiting_tasks,
    why_refused,
)
from phalanx.actions.preempt_candidates import CandidateLimits, CandidateSearch
from phalanx.model.queue import Queue
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.trace_events import GangNotReady, NoPreemptors, QueueNext
from phalanx.session.trace_searches import MayNotEvict, NoTaskLeft
from phalanx.session.victim_order import victims_in_order
from phalanx.state.gang_state import GangState, TaskState


class PreemptAction:
    """Evicts inside a queue."""

    name = "preempt"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings."""
        settings = Arguments(self.name, arguments)
        settings.switch("predicateErrorCacheEnable", True)
        settings.switch("enablePredicateErrorCache", True)
        self.is_topology_aware = settings.switch("enableTopologyAwarePreemption", False)
        settings.integer("topologyAwarePreemptWorkerNum", 16)
        self.limits = CandidateLimits(
            settings.integer("minCandidateNodesPercentage", 10),
            settings.integer("minCandidateNodesAbsolute", 1),
            settings.integer("maxCandidateNodesAbsolute", 100),
        )
        settings.done()

    def run(self, session: Session) -> None:
        """Work through the queues in order."""
        starving = starving_gangs(session, self.name, skips_topology=True)
        heaps = gang_heap(session, starving)
        turn = _Preemption(session, self.limits if self.is_topology_aware else None)
        for name in self._queues_in_order(session, heaps):
            session.trace.note(QueueNext, self.name, name, len(heaps[name]))
            turn.between_gangs(heaps[name], session.queues[name])
            for gang in starving:
                turn.inside(gang)
        for name in sorted({gang.gang.queue for gang in session.gangs.values()} - heaps.keys()):
            session.trace.note(NoPreemptors, name)

    def _queues_in_order(self, session: Session, heaps: Mapping[str, list[Any]]) -> list[str]:
        return sorted(heaps, key=lambda name: (session.queues[name].created, name))


class _Preemption:
    """Preempts for the tasks of one gang after the other."""

    def __init__(self, session: Session, limits: CandidateLimits | None) -> None:
        self._session, self._limits = session, limits
        self._tasks: dict[str, list[TaskState]] = {}
        self._number = count(1 << 40)  # who comes again is behind all equals that have not had a turn

    def between_gangs(self, heap: list[Any], queue: Queue) -> None:
        """Give each starving gang of the queue its turn; one whose last task got a place may come again."""
        while heap:
            gang: GangState = heappop(heap)[-1]
            statement = self._session.statement()
            assigned = self._for_gang(gang, queue, statement)
            if not self._session.gang_pipelined(gang):
                statement.discard()
                self._session.trace.note(GangNotReady, gang.key, "", "preempt found no place for enough of its tasks", "")
                continue
            statement.commit()
            if assigned:
                heappush(heap, (self._session.gang_key(gang), next(self._number), gang))
        self._session.trace.note(NoPreemptors, queue.name)

    def _for_gang(self, gang: GangState, queue: Queue, statement: Statement) -> bool:
        tasks = self._tasks.setdefault(gang.key, waiting_tasks(self._session, gang))
        assigned = False
        if not tasks:
            self._session.trace.note(NoTaskLeft, gang.key, "preempt")
        while tasks and self._session.gang_starving(gang).ok:
            task = tasks.pop()
            assigned = self.preempt(task, queue, statement, lambda victim, task=task: _why_no_rival(victim, task))  # type: ignore[misc]  # bound per loop
        return assigned

    def inside(self, gang: GangState) -> None:
        """Let each waiting task push out a less important one of its own gang, until one fails."""
        queue = self._session.queues[gang.gang.queue]
        tasks = waiting_tasks(self._session, gang)
        self._tasks[gang.key] = tasks
        while tasks:
            task = tasks.pop()
            with self._session.statement() as statement:
                if not self.preempt(task, queue, statement, lambda victim, task=task: _why_no_mate(victim, task)):  # type: ignore[misc]  # bound per loop
                    return
                statement.commit()

    def preempt(self, task: TaskState, queue: Queue, statement: Statement, spared: Spared) -> bool:
        """Find a node for the task, evicting whom the rules of the action and the plugins do not spare; tell whether it got one."""
        reason = self._why_not_eligible(task) or why_refused(self._session.prefilter(task))
        if reason:
            self._session.trace.note(MayNotEvict, task.gang.key, task.task.key, "preempt", reason)
            return False
        dry_run = DryRun(self._session, task)
        if self._limits is not None:
            return self._preempt_on_best(task, queue, statement, dry_run, spared)
        return any(self._try_node(task, queue, statement, dry_run, node, spared) for node in dry_run.nodes_by_score())

    def _preempt_on_best(self, task: TaskState, queue: Queue, statement: Statement, dry_run: DryRun, spared: Spared) -> bool:
        """Place the task where the fewest and least important victims have to go."""
        assert self._limits is not None
        candidate = CandidateSearch(self._session, task, queue, dry_run, spared).best(self._limits)
        if candidate is None:
            return False
        why = f"no node that was tried has less important victims than {self._session.node_name(candidate.node)}"
        note_room(self._session, task, candidate.node, candidate.victims)
        for victim in candidate.victims:
            statement.evict(victim, action="preempt", preemptor=task.gang.key, reason=f"{_rule(task, victim)}; {why}")
        statement.pipeline([task], [candidate.node])
        return True

    def _why_not_eligible(self, task: TaskState) -> str:
        """Say why a task may not preempt: its pod forbids it, or its nominated node only needs time; empty if it may.

        Without the second rule each session would evict again for a task whose victims are still leaving.
        """
        if not task.task.may_preempt:
            return "its preemptionPolicy is Never"
        nominated = task.task.nominated_node
        if not nominated:
            return ""
        number = self._session.snapshot.nodes.number_by_name.get(nominated)
        if number is None:
            return f"its nominated node {nominated} does not exist"
        node_view = self._session.node_view(task.task.shape)
        if node_view.allows(number) and passes_own_filters(self._session, task, number):
            return f"it waits for its nominated node {nominated}"
        return f"pods are leaving its nominated node {nominated}" if self._is_being_cleared(task, number) else ""

    def _is_being_cleared(self, task: TaskState, node: int) -> bool:
        """Tell whether a less important pod is leaving the nominated node."""
        on_node = self._session.snapshot.on_node.get(self._session.node_name(node), {})
        return any(other.status.name == "RELEASING" and other.priority < task.task.priority for other in on_node.values())

    def _try_node(self, task: TaskState, queue: Queue, statement: Statement, dry_run: DryRun, node: int, spared: Spared) -> bool:
        session = self._session
        candidates = candidates_on(session, node, task, spared)
        victims = session.preemptable(task, candidates) if candidates else []
        if not dry_run.could_fit(node, victims):
            note_no_room(session, task, node, TOO_LITTLE_ROOM)
            return False
        order, voters = victims_in_order(session, victims, task), session.voters()
        line = list(order)
        # Its own statement: what was evicted here goes back if it is not enough, and what other nodes gave for the gang stays.
        part = session.statement()
        while line and not self._has_room(task, queue, dry_run, node):
            victim = line.pop(0)
            why = victim_reason(voters, victims, line, session.node_name(node))
            part.evict(victim, action="preempt", preemptor=task.gang.key, reason=f"{_rule(task, victim)}; {why}")
        if not self._has_room(task, queue, dry_run, node):
            part.discard()
            note_no_room(session, task, node, VICTIMS_NOT_ENOUGH)
            return False
        note_room(session, task, node, order[: len(order) - len(line)])
        part.pipeline([task], [node])
        statement.merge(part)
        return True

    def _has_room(self, task: TaskState, queue: Queue, dry_run: DryRun, node: int) -> bool:
        return dry_run.fits(node) and self._session.queue_room(queue, task.task.shape).tasks > 0 and dry_run.passes(node)


def _why_no_rival(victim: TaskState, task: TaskState) -> str:
    if victim.gang.gang.queue != task.gang.gang.queue:
        return OTHER_QUEUE
    return "of the same gang" if victim.gang is task.gang else _why_spared(victim, task)


def _why_no_mate(victim: TaskState, task: TaskState) -> str:
    return _why_spared(victim, task) if victim.gang is task.gang else "of another gang"


def _why_spared(victim: TaskState, task: TaskState) -> str:
    if not victim.task.is_preemptable:
        return NOT_PREEMPTABLE
    return "" if victim.task.is_best_effort or not task.task.is_best_effort else "with requests, for a task without"


def _rule(task: TaskState, victim: TaskState) -> str:
    if task.gang is victim.gang:
        return f"preempted by task {task.task.key} (priority {task.task.priority} over {victim.task.priority}) of the same gang"
    mine, its = task.gang.gang.priority, victim.gang.gang.priority
    return f"preempted by gang {task.gang.key} (priority {mine} over {its}) of the same queue"
