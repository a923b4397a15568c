"""Let important gangs take room from less important ones of the same queue, and important tasks from others of their gang.

First between gangs: victims are evicted node by node until a task fits; a gang's evictions are carried out only if the whole
gang then has a place. Then inside each gang: a task may push out a less important one, each for itself.
"""

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from phalanx.actions.dry_run import DryRun, gang_heap, passes_own_filters, starving_gangs, victim_reason, waiting_tasks
from phalanx.actions.preempt_candidates import CandidateLimits, CandidateSearch
from phalanx.actions.queue_heap import Heap
from phalanx.model.queue import Queue
from phalanx.placement import Mask
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.victim_order import victims_in_order
from phalanx.state.gang_state import GangState, TaskState

Filter = Callable[[TaskState], bool]


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
        starving = starving_gangs(session, skips_topology=True)
        heaps = gang_heap(session, starving)
        queues = Heap[Queue](session.queue_comes_first)
        for name in sorted(heaps):
            queues.push(session.queues[name])
        turn = _Preemption(session, self)
        while len(queues):
            queue = queues.pop()
            turn.between_gangs(heaps[queue.name], queue)
            for gang in starving:
                if gang.gang.queue == queue.name:
                    turn.inside(gang, queue)


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
                self._session.trace.note(3, "discard", f"gang {gang.key}: evictions discarded, not all tasks got a place")
                continue
            statement.commit()
            if assigned:
                heappush(heap, (self._session.gang_key(gang), next(self._number), gang))

    def _for_gang(self, gang: GangState, queue: Queue, statement: Statement) -> bool:
        tasks = self._tasks.setdefault(gang.key, waiting_tasks(self._session, gang))
        assigned = False
        while tasks and self._session.gang_starving(gang).ok:
            task = tasks.pop()
            assigned = self.preempt(task, queue, statement, lambda victim, task=task: _is_rival(victim, task))  # type: ignore[misc]  # bound per loop
        return assigned

    def inside(self, gang: GangState, queue: Queue) -> None:
        """Let each waiting task push out a less important one of its own gang, until one fails."""
        tasks = waiting_tasks(self._session, gang)
        while tasks:
            task = tasks.pop()
            with self._session.statement() as statement:
                if not self.preempt(task, queue, statement, lambda victim, task=task: _is_mate(victim, task)):  # type: ignore[misc]  # bound per loop
                    return
                statement.commit()

    def preempt(self, task: TaskState, queue: Queue, statement: Statement, filter_: Filter) -> bool:
        """Find a node for the task, evicting what the filter and the plugins allow; tell whether it got one."""
        if not self._is_eligible(task) or not self._session.prefilter(task).ok:
            return False
        dry_run = self._dry_run(task)
        if self._action.is_topology_aware:
            return self._preempt_on_best(task, queue, statement, dry_run, filter_)
        return any(self._try_node(task, queue, statement, dry_run, node, filter_) for node in dry_run.nodes_by_score())

    def _dry_run(self, task: TaskState) -> DryRun:
        """Look at the nodes, without those that refused an earlier task of the role for good."""
        dry_run = DryRun(self._session, task)
        if self._action.remembers_refusals and task.task.role:
            key = task.gang.key, task.task.role
            known = self._refused.get(key, np.zeros_like(dry_run.refused))
            self._refused[key] = known | dry_run.refused
            dry_run.leave_out(known)
        return dry_run

    def _preempt_on_best(self, task: TaskState, queue: Queue, statement: Statement, dry_run: DryRun, filter_: Filter) -> bool:
        """Place the task where the fewest and least important victims have to go."""
        candidate = CandidateSearch(self._session, task, queue, dry_run, filter_).best(self._action.limits)
        if candidate is None:
            return False
        why = f"no node that was tried has less important victims than {self._session.node_name(candidate.node)}"
        for victim in candidate.victims:
            statement.evict(victim, action="preempt", preemptor=task.gang.key, reason=f"{_rule(task, victim)}; {why}")
        statement.pipeline([task], [candidate.node])
        return True

    def _is_eligible(self, task: TaskState) -> bool:
        """Tell whether a task may preempt: not if its pod forbids it, nor while its nominated node only needs time.

        Without the second rule each session would evict again for a task whose victims are still leaving.
        """
        if not task.task.may_preempt:
            return False
        if not task.task.nominated_node:
            return True
        number = self._session.snapshot.nodes.number_by_name.get(task.task.nominated_node)
        if number is None or self._fits_nominated(task, number):
            return False
        return self._is_refused_for_good(task, number) or not self._is_being_cleared(task, number)

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

    def _try_node(self, task: TaskState, queue: Queue, statement: Statement, dry_run: DryRun, node: int, filter_: Filter) -> bool:
        session = self._session
        candidates = [victim for victim in session.running_on(node) if filter_(victim)]
        victims = session.preemptable(task, candidates) if candidates else []
        if not dry_run.could_fit(node, victims):
            return False
        line, voters = victims_in_order(session, victims, task), session.voters()
        # Its own statement: what was evicted here goes back if it is not enough, and what other nodes gave for the gang stays.
        part = session.statement()
        while line and not self._has_room(task, queue, dry_run, node):
            victim = line.pop(0)
            why = victim_reason(voters, victims, line, session.node_name(node))
            part.evict(victim, action="preempt", preemptor=task.gang.key, reason=f"{_rule(task, victim)}; {why}")
        if not self._has_room(task, queue, dry_run, node):
            part.discard()
            return False
        part.pipeline([task], [node])
        statement.merge(part)
        return True

    def _has_room(self, task: TaskState, queue: Queue, dry_run: DryRun, node: int) -> bool:
        return dry_run.fits(node) and self._session.queue_room(queue, task.task.shape).tasks > 0 and dry_run.passes(node)


def _is_rival(victim: TaskState, task: TaskState) -> bool:
    same_queue = victim.gang.gang.queue == task.gang.gang.queue and victim.gang is not task.gang
    return same_queue and _may_go(victim, task)


def _is_mate(victim: TaskState, task: TaskState) -> bool:
    return victim.gang is task.gang and _may_go(victim, task)


def _may_go(victim: TaskState, task: TaskState) -> bool:
    return victim.task.is_preemptable and (victim.task.is_best_effort or not task.task.is_best_effort)


def _rule(task: TaskState, victim: TaskState) -> str:
    if task.gang is victim.gang:
        return f"preempted by task {task.task.key} (priority {task.task.priority} over {victim.task.priority}) of the same gang"
    mine, its = task.gang.gang.priority, victim.gang.gang.priority
    return f"preempted by gang {task.gang.key} (priority {mine} over {its}) of the same queue"
