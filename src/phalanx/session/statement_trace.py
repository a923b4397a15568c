"""What a statement does, as entries of the trace: placements and evictions as they are tried, undone and decided."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from phalanx.model.resources import PODS
from phalanx.session.trace_operations import (
    EvictionTried,
    EvictionUndone,
    NodeRoom,
    StatementCommitted,
    StatementDiscarded,
    StatementKept,
    StatementRolledBack,
    TaskAllocated,
    TaskBound,
    TaskEvicted,
    TaskPipelined,
    TaskUnallocated,
    TaskUnpipelined,
)

if TYPE_CHECKING:
    from phalanx.placement import Amounts
    from phalanx.session.session import Session
    from phalanx.session.statement import Operation

End = type[StatementCommitted | StatementDiscarded | StatementKept | StatementRolledBack]
Placement = type[TaskAllocated | TaskPipelined | TaskUnallocated | TaskUnpipelined | TaskBound]
Eviction = type[EvictionTried | EvictionUndone | TaskEvicted]
PLACED: dict[str, Placement] = {"ALLOCATE": TaskAllocated, "PIPELINE": TaskPipelined}
UNPLACED: dict[str, Placement] = {"ALLOCATE": TaskUnallocated, "PIPELINE": TaskUnpipelined}


def note_applied(session: "Session", operation: "Operation", *, is_trial: bool = False) -> None:
    """Record an operation that has taken effect, and the room of its nodes."""
    _note(session, operation, EvictionTried, PLACED, is_trial)


def note_undone(session: "Session", operation: "Operation", *, is_trial: bool = False) -> None:
    """Record an operation that was taken back, and the room of its nodes."""
    _note(session, operation, EvictionUndone, UNPLACED, is_trial)


def _note(session: "Session", operation: "Operation", evicted: Eviction, placed: dict[str, Placement], is_trial: bool) -> None:
    if operation.kind.name == "EVICT":
        _note_eviction(session, operation, evicted, is_trial)
    else:
        _note_tasks(session, operation, placed[operation.kind.name], is_trial)
    _note_room(session, operation, is_trial)


def note_decided(session: "Session", operation: "Operation", *, was_trial: bool) -> None:
    """Record what a commit makes of an operation; a place that was pipelined on trial is told of now."""
    if operation.kind.name == "EVICT":
        _note_eviction(session, operation, TaskEvicted, False)
    elif operation.kind.name == "ALLOCATE":
        _note_tasks(session, operation, TaskBound, False)
    elif operation.kind.name == "PIPELINE" and was_trial:
        _note_tasks(session, operation, TaskPipelined, False)
        _note_room(session, operation, False)


def note_kept(session: "Session", operation: "Operation") -> None:
    """Record what a trial leaves until the session ends."""
    if operation.kind.name in PLACED:
        _note_tasks(session, operation, PLACED[operation.kind.name], False)
        _note_room(session, operation, False)


def note_end(session: "Session", operations: Sequence["Operation"], end: End, *, is_trial: bool = False) -> None:
    """Record what becomes of some operations of a statement."""
    kinds = Counter(operation.kind.name.lower() for operation in operations for _ in operation.tasks)
    tasks = list(dict.fromkeys(task.task.key for operation in operations for task in operation.tasks))
    gangs = dict.fromkeys(key for operation in operations for key in (operation.gang.key, operation.preemptor) if key)
    session.trace.note(end, dict(sorted(kinds.items())), tasks, list(gangs), is_trial=is_trial)


def _note_tasks(session: "Session", operation: "Operation", kind: Placement, is_trial: bool) -> None:
    for task, node in zip(operation.tasks, operation.nodes, strict=True):
        session.trace.note(kind, operation.gang.key, task.task.key, session.node_name(node), is_trial=is_trial)


def _note_eviction(session: "Session", operation: "Operation", kind: Eviction, is_trial: bool) -> None:
    gang, preemptor, action = operation.gang.key, operation.preemptor, operation.action
    for task, node in zip(operation.tasks, operation.nodes, strict=True):
        session.trace.note(kind, gang, task.task.key, session.node_name(node), preemptor, action, is_trial=is_trial)


def _note_room(session: "Session", operation: "Operation", is_trial: bool) -> None:
    if not session.trace.wants(
        NodeRoom.trial_level if is_trial else NodeRoom.at_level, operation.gang.key, *filter(None, (operation.preemptor,))
    ):
        return
    ledger, nodes, _ = session.ledger, *operation.tally()
    for node in np.atleast_1d(nodes).tolist():
        idle, used, releasing = (_amounts(session, book[:, node], node) for book in (ledger.idle, ledger.used, ledger.releasing))
        session.trace.note(NodeRoom, operation.gang.key, session.node_name(node), idle, used, releasing, is_trial=is_trial)


def _amounts(session: "Session", amounts: "Amounts", node: int) -> dict[str, int]:
    """Return the amounts of what a node offers; how many pods it takes is left out, they are seldom short."""
    offered, names = session.ledger.allocatable[:, node], session.snapshot.space.names
    return {name: int(amounts[row]) for row, name in enumerate(names) if offered[row] and name != PODS}
