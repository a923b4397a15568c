"""Let important gangs take room from less important ones of the same queue, and important tasks from others of their gang.

First between gangs: victims are evicted node by node until a task fits; a gang's evictions are carried out only if the whole
gang then has a place. Then inside each gang: a task may push out a less important one, each for itself.
"""

from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from phalanx.actions.dry_run import (
    TOO_LITTLE_ROOM,
    VICTIMS_NOT_ENOUGH,
    DryRun,
    Running,
    SpareRule,
    calm_gangs,
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
from phalanx.actions.queue_heap import Heap
from phalanx.actions.victim_survey import NEVER_PREEMPTS, SearchRule, record_no_victims
from phalanx.model.queue import Queue
from phalanx.placement import Mask
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.spared import Spared
from phalanx.session.statement import Statement
from phalanx.session.trace_events import GangNotReady, NoPreemptors, QueueNext
from phalanx.session.trace_searches import MayNotEvict, NoTaskLeft
from phalanx.session.victim_order import victims_in_order
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import YES, Verdict


class PreemptAction:
    """Evicts inside a queue."""

    name = "preempt"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings."""
        settings = Arguments(self.name, arguments)
        remembers = settings.switch("predicateErrorCacheEnable", True)
        self.remembers_refusals = settings.switch("enablePredicateErrorCache", remembers)
        self.is_topology_aware = settings.switch("enableTopologyAwarePreemption", False)
        settings.integer("topologyAwarePreemptWorkerNum", 16)
        self.limits = CandidateLimits(
            settings.integer("minCandidateNodesPercentage", 10),
            settings.integer("minCandidateNodesAbsolute", 1),
            settings.integer("maxCandidateNodesAbsolute", 100),
        )
        self.trusts_untried = settings.switch("untriedNomineesMayPreempt", True)
        settings.done()

    def run(self, session: Session) -> None:
        """Work through the queues in order: first between their gangs, then inside each."""
        starving = starving_gangs(session, self.name, skips_topology=True)
        heaps = gang_heap(session, starving)
        queues = Heap[Queue](session.queue_comes_first)
        for name in sorted(heaps):
            queues.push(session.queues[name])
        turn = _Preemption(session, self)
        for gang in calm_gangs(session):
            turn.record_no_victims(gang)
        while len(queues):
            queue = queues.pop()
            session.trace.note(QueueNext, self.name, queue.name, len(heaps[queue.name]))
            turn.between_gangs(heaps[queue.name], queue)
            for gang in starving:
                if gang.gang.queue == queue.name:
                    turn.inside(gang, queue)
        for name in sorted({gang.gang.queue for gang in session.gangs.values()} - heaps.keys()):
            session.trace.note(NoPreemptors, name)


class _Preemption:
    """Preempts for the tasks of one gang after the other."""

    def __init__(self, session: Session, action: PreemptAction) -> None:
        self._session, self._action = session, action
        self._tasks: dict[str, list[TaskState]] = {}
        self._number = count(1 << 40)  # who comes again is behind all equals that have not had a turn
        self._refused: dict[tuple[str, str], Mask] = {}
        """Nodes that no eviction opens to a role, by gang and role. As in Volcano no task of the role is tried there again."""

    def between_gangs(self, heap: list[Any], queue: Queue) -> None:
        """Give each starving gang of the queue its turn; one whose last task got a place may come again."""
        while heap:
            gang: GangState = heappop(heap)[-1]
            statement = self._session.statement()
            assigned = self._for_gang(gang, queue, statement)
            if not self._session.gang_pipelined(gang):
                statement.discard()
                self.record_no_victims(gang)
                self._session.trace.note(GangNotReady, gang.key, "", "preempt found no place for enough of its tasks", "")
                continue
            statement.commit()
            if assigned:
                heappush(heap, (self._session.gang_key(gang), next(self._number), gang))
        self._session.trace.note(NoPreemptors, queue.name)

    def record_no_victims(self, gang: GangState) -> None:
        waiting = waiting_tasks(self._session, gang) if self._session.policy.says_why else []
        if waiting:
            task = waiting[-1]
            rule = SearchRule("preempt", "preempt", "preemptable", lambda victim: _why_no_rival(victim, task), takes_wholes=False)
            record_no_victims(self._session, task, rule, self._eligibility(task))

    def _for_gang(self, gang: GangState, queue: Queue, statement: Statement) -> bool:
        tasks = self._tasks.setdefault(gang.key, waiting_tasks(self._session, gang))
        assigned = False
        if not tasks:
            self._session.trace.note(NoTaskLeft, gang.key, "preempt")
        while tasks and self._session.gang_starving(gang).ok:
            task = tasks.pop()
            assigned = self.preempt(task, queue, statement, lambda victim, task=task: _why_no_rival(victim, task))  # type: ignore[misc]  # bound per loop
        return assigned

    def inside(self, gang: GangState, queue: Queue) -> None:
        """Let each waiting task push out a less important one of its own gang, until one fails."""
        tasks = waiting_tasks(self._session, gang)
        while tasks:
            task = tasks.pop()
            with self._session.statement() as statement:
                if not self.preempt(task, queue, statement, lambda victim, task=task: _why_no_mate(victim, task)):  # type: ignore[misc]  # bound per loop
                    return
                statement.commit()

    def preempt(self, task: TaskState, queue: Queue, statement: Statement, spared: SpareRule) -> bool:
        """Find a node for the task, evicting whom the rules of the action and the plugins do not spare; tell whether it got one."""
        reason = why_refused(self._eligibility(task)) or why_refused(self._session.prefilter(task))
        if reason:
            self._session.trace.note(MayNotEvict, task.gang.key, task.task.key, "preempt", reason)
            return False
        dry_run = self._dry_run(task)
        if self._action.is_topology_aware:
            return self._preempt_on_best(task, queue, statement, dry_run, spared)
        return any(self._try_node(task, queue, statement, dry_run, node, spared) for node in dry_run.nodes_by_score())

    def _dry_run(self, task: TaskState) -> DryRun:
        """Look at the nodes, without those that refused an earlier task of the role for good."""
        dry_run = DryRun(self._session, task)
        if self._action.remembers_refusals and task.task.role:
            key = task.gang.key, task.task.role
            known = self._refused.get(key, np.zeros_like(dry_run.refused))
            self._refused[key] = known | dry_run.refused
            dry_run.leave_out(known)
        return dry_run

    def _preempt_on_best(self, task: TaskState, queue: Queue, statement: Statement, dry_run: DryRun, spared: SpareRule) -> bool:
        """Place the task where the fewest and least important victims have to go."""
        candidate = CandidateSearch(self._session, task, queue, dry_run, spared).best(self._action.limits)
        if candidate is None:
            return False
        why = f"no node that was tried has less important victims than {self._session.node_name(candidate.node)}"
        note_room(self._session, task, candidate.node, candidate.victims)
        for victim in candidate.victims:
            statement.evict(victim, action="preempt", preemptor=task.gang.key, reason=f"{_rule(task, victim)}; {why}")
        statement.pipeline([task], [candidate.node])
        return True

    def _eligibility(self, task: TaskState) -> Verdict:
        """Refuse a task that may not preempt: its pod forbids it, or its nominated node only needs time."""
        if not task.task.may_preempt:
            return NEVER_PREEMPTS
        reason = self._why_it_only_waits(task) if task.task.nominated_node else ""
        return Verdict.refuse("preempt", "NominatedBefore", reason) if reason else YES

    def _why_it_only_waits(self, task: TaskState) -> str:
        """Say why a task waits for its nominated node; empty if it may preempt.

        Without this rule each session would evict again for a task whose victims are still leaving.
        """
        nominated = task.task.nominated_node
        number = self._session.snapshot.nodes.number_by_name.get(nominated)
        if number is None:
            return f"its nominated node {nominated} does not exist"
        if self._fits_nominated(task, number):
            return f"it waits for its nominated node {nominated}"
        if self._is_refused_for_good(task, number) or not self._is_being_cleared(task, number):
            return ""
        return f"pods are leaving its nominated node {nominated}"

    def _fits_nominated(self, task: TaskState, node: int) -> bool:
        """Tell whether the filters let the task onto its nominated node.

        In Volcano they fail for a task that no action has tried before, such as one without requests: what they would read is not
        prepared yet.
        """
        if self._action.trusts_untried and not task.is_prepared and self._session.plugin("predicates") is not None:
            return False
        return self._session.node_view(task.task.shape).allows(node) and passes_own_filters(self._session, task, node)

    def _is_refused_for_good(self, task: TaskState, node: int) -> bool:
        where = np.array([node], dtype=np.int64)
        parts = [layers for _, layers in self._session.screen(task.task.shape, where)] + self._session.task_screen(task, where)
        return any(layer.is_final and layer.refused[0] for layers in parts for layer in layers)

    def _is_being_cleared(self, task: TaskState, node: int) -> bool:
        """Tell whether a less important pod leaves the nominated node because it was preempted."""
        on_node = self._session.snapshot.on_node.get(self._session.node_name(node), {})
        return any(other.makes_room and other.rank < task.task.rank for other in on_node.values())

    def _try_node(self, task: TaskState, queue: Queue, statement: Statement, dry_run: DryRun, node: int, spared: SpareRule) -> bool:
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


def _why_no_rival(victim: Running, task: TaskState) -> Spared | None:
    if victim.gang.gang.queue != task.gang.gang.queue:
        return Spared.OTHER_QUEUE
    return Spared.SAME_GANG if victim.gang is task.gang else _why_spared(victim, task)


def _why_no_mate(victim: Running, task: TaskState) -> Spared | None:
    return _why_spared(victim, task) if victim.gang is task.gang else Spared.OTHER_GANG


def _why_spared(victim: Running, task: TaskState) -> Spared | None:
    if not victim.task.is_preemptable:
        return Spared.NOT_PREEMPTABLE
    return None if victim.task.is_best_effort or not task.task.is_best_effort else Spared.HAS_REQUESTS


def _rule(task: TaskState, victim: TaskState) -> str:
    if task.gang is victim.gang:
        return f"preempted by task {task.task.key} (priority {task.task.priority} over {victim.task.priority}) of the same gang"
    mine, its = task.gang.gang.priority, victim.gang.gang.priority
    return f"preempted by gang {task.gang.key} (priority {mine} over {its}) of the same queue"
