"""A transaction over the session. Operations take effect at once, so that later questions see them; `commit` makes them
decisions, `discard` undoes them in reverse order and leaves every book as it was.

A run of identical tasks is one operation: its books change once per node, not once per task.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby, islice
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from phalanx.model.shape import Shape
from phalanx.model.task_status import Status
from phalanx.placement import Counts, Index
from phalanx.session.decision import Eviction
from phalanx.session.statement_trace import note_applied, note_decided, note_end, note_kept, note_undone
from phalanx.session.trace import NEVER
from phalanx.session.trace_operations import StatementCommitted, StatementDiscarded, StatementKept, StatementRolledBack
from phalanx.state.gang_state import GangState, TaskState

if TYPE_CHECKING:
    from phalanx.session.session import Session


class OperationKind(Enum):
    """What an operation does to its tasks."""

    ALLOCATE = Status.ALLOCATED
    PIPELINE = Status.PIPELINED
    EVICT = Status.RELEASING
    RESTORE = None
    """An eviction taken back."""


@dataclass(slots=True)
class Operation:
    """One kind of change to tasks of one shape and gang; the node of each task beside it.

    That of a run (`Session.bind_run`) is about several gangs of one queue and class, one after the other.
    """

    kind: OperationKind
    tasks: Sequence[TaskState]
    nodes: Sequence[int]
    before: Sequence[Status]
    reason: str = ""
    preemptor: str = ""
    action: str = ""
    version_before: int = 0
    version_after: int = 0
    undoes: "Operation | None" = None
    """The eviction that a restoration takes back."""
    places: Sequence[int] = field(init=False)
    """Where the tasks were before."""

    def __post_init__(self) -> None:
        """Note where the tasks are."""
        self.places = [task.node for task in self.tasks]

    def move_tasks(self) -> None:
        """Bring the tasks into the status and onto the nodes that it is about."""
        status = self.kind.value
        assert status is not None, "a restoration reverts an eviction"
        self.gang.move_all(self.tasks, status)
        for task, node in zip(self.tasks, self.nodes, strict=True):
            task.node = node

    @property
    def shape(self) -> Shape:
        """The shape that all its tasks have."""
        return self.tasks[0].task.shape

    @property
    def gang(self) -> GangState:
        """The gang that all its tasks belong to, or the first gang of a run."""
        return self.tasks[0].gang

    def by_gang(self) -> list["Operation"]:
        """Return the parts of a run of several gangs, each for one of them."""
        parts, places = list[Operation](), iter(self.nodes)
        for _, tasks in groupby(self.tasks, lambda task: task.gang):
            members = list(tasks)
            parts.append(Operation(self.kind, members, list(islice(places, len(members))), ()))
        return parts

    def tally(self) -> tuple[Index | int, Counts | int]:
        """Return each node once with its number of tasks."""
        first = self.nodes[0]
        if self.nodes.count(first) == len(self.nodes):
            return first, len(self.nodes)
        counts = Counter(self.nodes)
        nodes = sorted(counts)
        return np.array(nodes, dtype=np.int64), np.array([counts[node] for node in nodes], dtype=np.int64)


class Purpose(Enum):
    """What a statement is for: from which level on its steps are traced, and whether tasks remember what they nearly had."""

    DECIDE = (3, True)
    DRY_RUN = (4, True)
    """It is always undone, and the best of several is done again."""
    TRIAL = (4, False)
    """It looks whether something would work, and is committed if it does."""
    QUESTION = (NEVER, False)
    """It only answers a question, sometimes with any node, and is always undone."""

    @property
    def level(self) -> int:
        """The level of the trace."""
        return self.value[0]

    @property
    def is_remembered(self) -> bool:
        """Tasks remember an attempt that is undone."""
        return self.value[1]


class Statement:
    """A list of operations that stand or fall together. Leaving the `with` block without `commit` or `keep` discards."""

    __slots__ = ("_is_open", "_is_traced", "_purpose", "_session", "operations")

    def __init__(self, session: "Session", purpose: Purpose = Purpose.DECIDE) -> None:
        """Start empty."""
        self._session, self._purpose = session, purpose
        self._is_open = True
        self._is_traced = session.trace.level >= purpose.level
        self.operations: list[Operation] = []

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Discard unless the statement was committed or kept."""
        if self._is_open:
            self.discard()

    def allocate(self, tasks: Sequence[TaskState], nodes: Sequence[int]) -> None:
        """Give tasks of one shape a place now."""
        if tasks:
            self._do(Operation(OperationKind.ALLOCATE, tasks, nodes, [task.status for task in tasks]))

    def pipeline(self, tasks: Sequence[TaskState], nodes: Sequence[int]) -> None:
        """Give tasks of one shape a place that they can take once others have left."""
        if tasks:
            self._do(Operation(OperationKind.PIPELINE, tasks, nodes, [task.status for task in tasks]))

    def evict(self, task: TaskState, *, action: str, preemptor: str, reason: str) -> None:
        """Let a running task leave, for a preemptor and for a reason; its room is released, not free."""
        self._do(Operation(OperationKind.EVICT, [task], [task.node], [task.status], reason, preemptor, action))

    def restore(self, task: TaskState) -> bool:
        """Take back the eviction of a task in this statement; tell whether there was one."""
        for operation in reversed(self.operations):
            if operation.kind is OperationKind.EVICT and operation.tasks[0] is task:
                undo = Operation(OperationKind.RESTORE, [task], [task.node], [task.status], undoes=operation)
                self._revert(operation)
                self.operations.append(undo)
                return True
        return False

    def _do(self, operation: Operation) -> None:
        self._apply(operation)
        self.operations.append(operation)

    def _apply(self, operation: Operation) -> None:
        self._session.apply(operation)
        if self._is_traced:
            note_applied(self._session, operation, is_trial=self._is_trial)

    def _revert(self, operation: Operation) -> None:
        self._session.revert(operation)
        if self._is_traced:
            note_undone(self._session, operation, is_trial=self._is_trial)

    @property
    def _is_trial(self) -> bool:
        return self._purpose is not Purpose.DECIDE

    def checkpoint(self) -> int:
        """Return a mark to roll back to."""
        return len(self.operations)

    def rollback(self, mark: int) -> None:
        """Undo everything since the mark."""
        if self._is_traced and len(self.operations) > mark:
            note_end(self._session, self.operations[mark:], StatementRolledBack, is_trial=self._is_trial)
        self._undo(mark)

    def _undo(self, mark: int) -> None:
        while len(self.operations) > mark:
            operation = self.operations.pop()
            if operation.undoes is not None:
                self._apply(operation.undoes)
                continue
            if self._purpose.is_remembered:
                for task in operation.tasks:
                    task.remember_attempt()
            self._revert(operation)

    def discard(self) -> None:
        """Undo everything; each task remembers what it nearly had, unless this was a trial."""
        if self._is_traced and self.operations:
            note_end(self._session, self.operations, StatementDiscarded, is_trial=self._is_trial)
        self._undo(0)
        self._is_open = False

    def keep(self) -> None:
        """Neither commit nor discard: allocated and pipelined tasks keep their places until the session ends."""
        if self.operations and self._session.trace.level >= Purpose.DECIDE.level:
            for operation in self.operations if self._is_trial else ():
                note_kept(self._session, operation)
            note_end(self._session, self.operations, StatementKept)
        self._is_open = False

    def merge(self, other: "Statement") -> None:
        """Take over the operations of another statement."""
        self.operations.extend(other.operations)
        other.operations = []
        other._is_open = False

    def commit(self) -> None:
        """Make the operations decisions."""
        if self.operations and self._session.trace.level >= Purpose.DECIDE.level:
            self._note_commit()
        for operation in self.operations:
            for task in operation.tasks:
                task.attempt = None
            if operation.kind is OperationKind.ALLOCATE:
                self._bind(operation)
            elif operation.kind is OperationKind.EVICT:
                self._evict(operation)
        self._is_open = False

    def _note_commit(self) -> None:
        note_end(self._session, self.operations, StatementCommitted)
        stayed = {id(operation.undoes) for operation in self.operations if operation.undoes is not None}
        for operation in self.operations:
            if id(operation) not in stayed:
                note_decided(self._session, operation, was_trial=self._is_trial)

    def _bind(self, operation: Operation) -> None:
        names, binds = self._session.snapshot.nodes.names, self._session.decisions.binds
        operation.gang.move_all(operation.tasks, Status.BINDING)
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            binds[task.task.key] = names[node]

    def _evict(self, operation: Operation) -> None:
        for task in operation.tasks:
            if task.status not in (Status.RELEASING, Status.PIPELINED):
                continue
            self._session.decisions.binds.pop(task.task.key, None)
            eviction = Eviction(task.task, operation.action, operation.preemptor, operation.reason)
            self._session.decisions.evictions[task.task.key] = eviction
