"""Find places for the tasks of one attempt: part by part of the gang, each in the sets of nodes that its topology allows.

One task after the other gets the best node of the set, and a task without a node fails the whole set: unlike Volcano's loop, which
may go on without it, an attempt here is exactly what the job needs next. Nothing starts while a part of it must wait for others to
leave: then all places of the attempt are pipelined (`_pipeline_all`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from phalanx.actions.kai.runs import Runs
from phalanx.kai.podsets import leaves_in_order, pod_sets
from phalanx.kubernetes.shared_gpus import SharedGpus
from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Mask
from phalanx.placement.fill import NOT_A_CANDIDATE
from phalanx.placement.fit import fits
from phalanx.session.node_subset import NodeSubset
from phalanx.session.plugin_trace import note_filters, note_scores
from phalanx.session.session import Session
from phalanx.session.statement import OperationKind, Statement
from phalanx.session.task_filters import offers, own_filters
from phalanx.session.trace import TraceEvent
from phalanx.session.trace_events import TaskWithoutNode
from phalanx.session.trace_searches import DomainChosen, DomainLeft, DomainRefused, DomainTried, JobLeft
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import FitError


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """A node for a task, now or once others have left."""

    node: int
    is_now: bool


class Placer:
    """Places attempts; `pipelines_only` never takes room at once, as the searches for victims do."""

    def __init__(self, session: Session, *, pipelines_only: bool = False) -> None:
        """Prepare for one session. Opening the book of shared GPUs takes these devices from the idle ones, before any is placed."""
        self._session, self._pipelines_only = session, pipelines_only
        self._chosen: list[tuple[str, NodeSubset]] = []
        """The parts of the gang that are in a domain so far, for the trace."""
        session.book(SharedGpus)
        self._runs = Runs(session, pipelines_only=pipelines_only)

    def place(self, gang: GangState, tasks: list[TaskState], statement: Statement, nodes: Mask | None = None) -> bool:
        """Place all tasks and return True, or none and return False."""
        offered = np.ones(len(self._session.snapshot.nodes), dtype=np.bool_) if nodes is None else nodes
        mark = statement.checkpoint()
        self._chosen.clear()
        if not any(self._place_group(gang, "", tasks, statement, some) for some in offers(self._session, gang, offered)):
            statement.rollback(mark)
            return False
        if not self._pipelines_only and _waits_for_pipelined(gang):
            _pipeline_all(gang, statement, mark)
        for part, subset in self._chosen:
            self._note_domain(DomainChosen, gang, part, subset)
        return True

    def _place_group(self, gang: GangState, name: str, tasks: list[TaskState], statement: Statement, offered: Mask) -> bool:
        """Place a sub-group and everything below it in the first set of nodes that takes all of it."""
        below = _tasks_below(gang, name, tasks)
        if not below:
            return True
        for subset in self._session.node_subsets(gang, name, below, offered):
            if subset.refusal:
                refused = partial(DomainRefused, reason=subset.refusal, placed=subset.room, needed=len(below))
                self._note_domain(refused, gang, name, subset)
            elif self._place_in(gang, name, below, statement, subset):
                return True
        return False

    def _place_in(self, gang: GangState, name: str, tasks: list[TaskState], statement: Statement, subset: NodeSubset) -> bool:
        """Place a sub-group and everything below it in one set of nodes, all of it or nothing; tell whether it did."""
        mark, known = statement.checkpoint(), len(self._chosen)
        if subset.domain:
            self._note_domain(partial(DomainTried, action="topology"), gang, name, subset)
            self._chosen.append((name, subset))
        if self._place_parts(gang, name, tasks, statement, subset.nodes):
            return True
        if subset.domain:
            placed = sum(len(operation.tasks) for operation in statement.operations[mark:])
            left = partial(DomainLeft, reason=_how_far(tasks, placed), placed=placed, needed=len(tasks))
            self._note_domain(left, gang, name, subset)
        del self._chosen[known:]
        statement.rollback(mark)
        return False

    def _note_domain(self, kind: Callable[..., TraceEvent], gang: GangState, part: str, subset: NodeSubset) -> None:
        self._session.trace.note(kind, gang=gang.key, domain=subset.domain, part=part, is_trial=self._pipelines_only)

    def _place_parts(self, gang: GangState, name: str, tasks: list[TaskState], statement: Statement, nodes: Mask) -> bool:
        policies = gang.gang.subgroups
        parents = {policy.parent for policy in policies}
        if not policies or (name and name not in parents):
            return self._place_tasks(tasks, statement, nodes)
        inner = sorted(policy.name for policy in policies if policy.parent == name and policy.name in parents)
        leaves = [leaf.name for leaf in leaves_in_order(pod_sets(gang)) if leaf.policy is not None and leaf.policy.parent == name]
        return all(self._place_group(gang, part, tasks, statement, nodes) for part in [*inner, *leaves])

    def _place_tasks(self, tasks: list[TaskState], statement: Statement, nodes: Mask) -> bool:
        """Place one task after the other, several at once where they are alike; tell whether each found a node."""
        placed = 0
        while placed < len(tasks):
            chosen, is_now = self._runs.places(tasks[placed:], nodes)
            if chosen:
                self._take_run(tasks[placed : placed + len(chosen)], chosen, is_now, statement)
            elif not self._place_task(tasks[placed], statement, nodes):
                return False
            placed += len(chosen) or 1
        return True

    def _take_run(self, tasks: list[TaskState], chosen: list[int], is_now: list[bool], statement: Statement) -> None:
        """Take the places of a run, but for evicted tasks whose place is where they are: they stay."""
        places = zip(tasks, chosen, is_now, strict=True)
        away = [place for place in places if not self._stays_at_home(*place[:2], statement)]
        for starts, take in ((True, statement.allocate), (False, statement.pipeline)):
            some = [(task, node) for task, node, has_room in away if (has_room and not self._pipelines_only) is starts]
            take([task for task, _ in some], [node for _, node in some])

    def _place_task(self, task: TaskState, statement: Statement, nodes: Mask) -> bool:
        """Place a task on its best node; tell whether there is one. An evicted task whose best node is its own stays there."""
        choice = self.best(task, nodes)
        if choice is None:
            return False
        if not self._stays_at_home(task, choice.node, statement):
            take = statement.allocate if choice.is_now and not self._pipelines_only else statement.pipeline
            take([task], [choice.node])
        return True

    def _stays_at_home(self, task: TaskState, node: int, statement: Statement) -> bool:
        is_home = task.status is Status.RELEASING and task.node == node
        return is_home and self._session.book(SharedGpus).stays(task, node) and statement.restore(task)

    def best(self, task: TaskState, nodes: Mask) -> NodeChoice | None:
        """Return the best node that fits; the smaller name among equals."""
        session, shape = self._session, task.task.shape
        verdict = session.prefilter(task)
        if not verdict.ok:
            self._note(task, lambda: FitError.same_everywhere(int(nodes.sum()), verdict))
            return None
        # `later` decides and `now` only says how: free room that pipelined tasks of others wait for is not to be had.
        request = session.request_of(shape)
        later = fits(session.ledger.future, request) & session.node_view(shape).allowed & nodes
        now = fits(session.ledger.idle, request)
        for waits in session.node_waits(shape):
            now &= ~waits
        if shape.gpu_share is not None:
            shared_now, shared_later, _ = session.book(SharedGpus).room(shape)
            now, later = now & shared_now, later & shared_later
        allowed = own_filters(session, task, later).narrow(later)
        later = later if allowed is None else allowed
        if session.trace.wants(5, task.gang.key):
            note_filters(session, task, later, nodes)
        if not later.any():
            self._note(task, lambda: session.node_view(shape).error(within=nodes))
            return None
        scores = session.placement_scores(task, nodes)
        if session.trace.wants(5, task.gang.key):
            note_scores(session, task, later, session.placement_scores_by_plugin(task, nodes))
        node = int(np.where(later, scores, NOT_A_CANDIDATE).argmax())
        is_now = bool(now[node]) and (shape.gpu_share is None or session.book(SharedGpus).is_now(shape.gpu_share, node))
        return NodeChoice(node, is_now)

    def _note(self, task: TaskState, error: Callable[[], FitError]) -> None:
        """Remember why no node took a task, unless this is a trial and a reason is known: a trial looks at some nodes only, of
        a cluster as it might be, and its reasons would be told to users as if they had happened.
        """
        if not self._pipelines_only or task.error is None:
            task.error = error()
        if self._session.trace.wants(4 if self._pipelines_only else 3, task.gang.key):
            self._session.trace.note(TaskWithoutNode, task.gang.key, task.task.key, error().text, is_trial=self._pipelines_only)


def _how_far(tasks: list[TaskState], placed: int) -> str:
    error = next((task.error for task in tasks if task.error is not None), "")
    return f"{placed} of {len(tasks)} task(s) have a node; {error.text if isinstance(error, FitError) else error}"


def note_no_places(session: Session, gang: GangState, action: str, tasks: list[TaskState]) -> None:
    """Record that a job found no places for its next tasks, and why."""
    if session.trace.wants(3, gang.key):
        task = next((task for task in tasks if task.error is not None), None)
        if task is None:
            refused = (verdict.message for verdict in reversed(gang.verdicts) if verdict.plugin == "topology")
            session.trace.note(JobLeft, gang.key, action, next(refused, "no domain of its topology has room for all of it"))
            return
        error = task.error.text if isinstance(task.error, FitError) else task.error
        session.trace.note(JobLeft, gang.key, action, f"task {task.task.key}: {error}")


def _tasks_below(gang: GangState, name: str, tasks: list[TaskState]) -> list[TaskState]:
    """Return the tasks of a sub-group and of all sub-groups under it; all tasks for the gang itself."""
    if not name:
        return tasks
    parent_of = {policy.name: policy.parent for policy in gang.gang.subgroups}

    def is_below(task: TaskState) -> bool:
        current = task.subgroup.policy.name if task.subgroup.policy is not None else ""
        while current and current != name:
            current = parent_of.get(current, "")
        return current == name

    return [task for task in tasks if is_below(task)]


def _waits_for_pipelined(gang: GangState) -> bool:
    """Tell whether a leaf has a pipelined task and too few that really have a place."""
    return any(leaf.count([Status.PIPELINED]) and leaf.count(HOLDING) < leaf.minimum for leaf in pod_sets(gang))


def _pipeline_all(gang: GangState, statement: Statement, mark: int) -> None:
    """Pipeline every task of this attempt onto the node it got: nothing of the gang starts before all of it can."""
    moves = [(operation.kind, list(operation.tasks), list(operation.nodes)) for operation in statement.operations[mark:]]
    statement.rollback(mark)
    for kind, tasks, nodes in moves:
        if kind is not OperationKind.EVICT:
            statement.pipeline(tasks, nodes)
