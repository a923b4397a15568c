"""Places for all tasks of a gang at once: the best node for task after task, and where that fails, every way of packing them.

"Does it still fit" is what a victim search asks for every unit that it puts back, hundreds of times for one gang, so the cheapest
answer that is exact comes first:

1. Tasks of one class that no other pods matter to: as many fit as the nodes have room for. A count, no placement at all.
2. Several classes: nodes are filled class by class, largest tasks first. A yes is certain, a no is not. It made a gang of 200 tasks
   of several shapes take 0.4 s in place of 24.
3. All ways of packing together (`placement/packing.py`). Exact, within a budget that all questions for one gang share.

Tasks that other pods matter to (affinity, spread, ports, volumes) are only placed one by one: what the next one may do depends on
where the last one went, and no count knows that.
"""

from collections.abc import Hashable, Iterable
from itertools import groupby

import numpy as np

from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.placement import Amounts, Counts, Mask
from phalanx.placement.fit import copies
from phalanx.placement.ledger import Request
from phalanx.placement.packing import Budget, Load, pack
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.task_filters import has_own_filters, own_filters
from phalanx.state.gang_state import TaskState

MOST_CELLS = 200_000_000
"""Work on all packings for one gang together: some tenths of a second. Two classes of a hundred tasks on 500 nodes take
a hundredth of it. Beyond that the answer is no: the gang waits, and nobody is evicted for it."""


class Places:
    """Finds places for some tasks of one queue in a domain, on free room and on room that is being released."""

    def __init__(self, session: Session, queue: Queue, domain: Mask, tasks: list[TaskState]) -> None:
        """Sort the tasks into runs of one class each, those with the largest tasks first: small ones fit into what these leave."""
        self._session, self._queue, self._domain = session, queue, domain
        self.runs = runs_by_size(session, tasks)
        self.tasks = [task for run in self.runs for task in run]
        self._is_local = all(is_independent(session, task) for task in self.tasks)
        self._budget = Budget(MOST_CELLS)

    @property
    def key(self) -> Hashable:
        """A key that is equal for gangs that need the same places; None for tasks that other pods matter to."""
        if not self._is_local:
            return None
        return self._domain.tobytes(), tuple((self._session.class_of(run[0].task.shape), len(run)) for run in self.runs)

    def fit(self) -> bool:
        """Tell whether all tasks have places together, now or once others have left; nothing stays placed."""
        shape = self.tasks[0].task.shape
        if self._is_local and len(self.runs) == 1:
            if self._session.queue_room(self._queue, shape).tasks < len(self.tasks):
                return False
            return self._session.node_view(shape).room_in(self._domain) >= len(self.tasks)
        with self._session.question() as trial:
            if self._is_local and self._take_filling(trial):
                return True
            trial.rollback(0)
            return self.take(trial)

    def take(self, statement: Statement, *, starts_now: bool = False) -> bool:
        """Pipeline every task, or with `starts_now` allocate it on free room; tell whether all got a place. If not, none did."""
        mark = statement.checkpoint()
        if self._take_best(statement, starts_now):
            return True
        statement.rollback(mark)
        if self._is_local and not starts_now and self._take_filling(statement):
            return True
        statement.rollback(mark)
        nodes = self._search(starts_now)
        if nodes is not None and self._take_given(nodes, statement, starts_now):
            return True
        statement.rollback(mark)
        return False

    def _take_filling(self, statement: Statement) -> bool:
        """Place class after class, each on the nodes with the least room for it first, so that wide gaps stay for later classes."""
        for run in self.runs:
            nodes = self._fill(run)
            if nodes is None or self._session.queue_room(self._queue, run[0].task.shape).tasks < len(run):
                return False
            statement.pipeline(run, nodes)
        return True

    def _fill(self, run: list[TaskState]) -> list[int] | None:
        shape = run[0].task.shape
        room = copies(self._session.ledger.future, self._session.request_of(shape), slice(None))
        room = np.minimum(room, self._session.node_room(shape, slice(None)))
        nodes = np.flatnonzero(self._open_to(run[0], False) & (room > 0))
        nodes = nodes[np.argsort(room[nodes], kind="stable")]
        filled = np.repeat(nodes, np.minimum(room[nodes], len(run)))[: len(run)]
        return filled.tolist() if len(filled) == len(run) else None

    def _take_best(self, statement: Statement, starts_now: bool) -> bool:
        for task in self.tasks:
            mask = self._open_to(task, starts_now)
            node_view = self._session.node_view(task.task.shape)
            node = node_view.best(mask, extra=self._session.task_scores(task, mask)) if mask.any() else None
            if node is None or not self._has_quota(task):
                return False
            _put(statement, task, node, starts_now)
        return True

    def _take_given(self, nodes: list[int], statement: Statement, starts_now: bool) -> bool:
        for task, node in zip(self.tasks, nodes, strict=True):
            if not self._open_to(task, starts_now)[node] or not self._has_quota(task):
                return False
            _put(statement, task, node, starts_now)
        return True

    def _open_to(self, task: TaskState, starts_now: bool) -> Mask:
        node_view = self._session.node_view(task.task.shape)
        mask = node_view.feasible & self._domain
        if starts_now:
            mask = np.logical_or.reduce([part for is_now, part in node_view.groups(within=self._domain) if is_now])
        narrow = own_filters(self._session, task, mask).narrow(mask)
        assert narrow is not None
        return narrow

    def _has_quota(self, task: TaskState) -> bool:
        return self._session.queue_room(self._queue, task.task.shape).tasks > 0

    def _search(self, starts_now: bool) -> list[int] | None:
        """Return a node for each task such that all fit; None when there is no way, or none was found within the budget."""
        if not self._is_local or len(self.runs) == 1:
            return None
        ledger = self._session.ledger
        room = np.minimum(ledger.idle, ledger.future) if starts_now else ledger.future
        runs = sorted(self.runs, key=len)  # the work grows with the sizes of all classes but the last: let that be the largest
        requests = [self._session.request_of(run[0].task.shape) for run in runs]
        caps = [self._most_per_node(run, request, room, starts_now) for run, request in zip(runs, requests, strict=True)]
        found = pack(room, Load([len(run) for run in runs], [request.amounts for request in requests], caps), self._budget)
        if found is None:
            return None
        nodes = {id(run): np.repeat(np.arange(len(counts)), counts).tolist() for run, counts in zip(runs, found, strict=True)}
        return [node for run in self.runs for node in nodes[id(run)]]

    def _most_per_node(self, run: list[TaskState], request: Request, room: Amounts, starts_now: bool) -> Counts:
        """Return how many tasks of a run each node would take if there were no others."""
        shape, is_open = run[0].task.shape, self._open_to(run[0], starts_now)
        counts = np.minimum(copies(room, request), self._session.node_room(shape, slice(None)))
        return np.where(is_open, counts, 0)


def is_independent(session: Session, task: TaskState) -> bool:
    """Tell whether nothing but room and its shape decides where a task may go: no other pods, and no filter of its own."""
    return session.is_local(task.task.shape) and not has_own_filters(session, task)


def runs_by_size(session: Session, tasks: Iterable[TaskState]) -> list[list[TaskState]]:
    """Return the tasks of each class, those of the class with the largest tasks first."""
    runs: dict[Hashable, list[TaskState]] = {}
    for shape, equal in groupby(tasks, key=lambda task: task.task.shape):  # members of a gang mostly share one
        runs.setdefault(session.class_of(shape), []).extend(equal)
    return sorted(runs.values(), key=lambda run: dominant_share(session, run[0].task.shape), reverse=True)


def dominant_share(session: Session, shape: Shape) -> float:
    """Return the largest part of the cluster that a task takes of any resource."""
    total = session.ledger.allocatable.sum(axis=1)
    return max((amount / max(int(total[row]), 1) for row, amount in session.request_of(shape).rows), default=0.0)


def _put(statement: Statement, task: TaskState, node: int, starts_now: bool) -> None:
    put = statement.allocate if starts_now else statement.pipeline
    put([task], [node])
