"""To what a step belongs: the action, the queue and the gang that have their turn, and what is tried and not decided yet."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from phalanx.model.task import GangKey
from phalanx.session.trace import TraceEvent
from phalanx.session.trace_events import ActionEntered, ActionLeft
from phalanx.session.trace_operations import (
    EvictionTried,
    EvictionUndone,
    NodeRoom,
    StatementCommitted,
    StatementKept,
    TaskAllocated,
    TaskBound,
    TaskEvicted,
    TaskPipelined,
    TaskUnallocated,
    TaskUnpipelined,
)
from phalanx.state.snapshot import Snapshot

TRIED = {TaskAllocated: "allocate", TaskPipelined: "pipeline", EvictionTried: "evict"}
UNDONE = (TaskUnallocated, TaskUnpipelined, EvictionUndone)
DECIDED = (StatementCommitted, StatementKept)
AFTER_COMMIT = (TaskBound, TaskEvicted, TaskPipelined, NodeRoom)
"""What a commit or a keep is followed by: the decisions, told once more."""


@dataclass(frozen=True, slots=True)
class Place:
    """To what a step belongs; names are empty where it belongs to none."""

    shard: str = ""
    action: str = ""
    queue: str = ""
    gang: str = ""
    undecided: Mapping[str, int] = field(default_factory=dict)
    """How many tasks are placed or evicted by statements that are open: by kind of operation."""


def places(parts: Iterable[tuple[str, Sequence[TraceEvent]]], snapshot: Snapshot) -> Iterator[tuple[TraceEvent, Place]]:
    """Yield every event of the traces of some shards with its place."""
    for shard, events in parts:
        turn, statements = _Turn(snapshot), _Statements()
        for event in events:
            turn.follow(event)
            statements.follow(event)
            yield event, Place(shard, turn.action, turn.queue, turn.gang, statements.undecided)


class _Turn:
    """Who has their turn."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.action = self.queue = self.gang = ""
        self._is_over = False

    def follow(self, event: TraceEvent) -> None:
        """Go on to an event."""
        if self._is_over or isinstance(event, ActionEntered):
            self.action = getattr(event, "action", "")
        self._is_over = isinstance(event, ActionLeft)
        self.gang = self._whose_turn(event)
        gang = self._snapshot.gangs.get(GangKey(self.gang))
        self.queue = getattr(event, "queue", "") or ("" if gang is None else gang.queue)

    def _whose_turn(self, event: TraceEvent) -> str:
        """The preemptor has the turn, not its victims; the room of a node is told of between them."""
        if isinstance(event, NodeRoom) or (self.gang in event.gangs and not getattr(event, "preemptor", "")):
            return self.gang
        return getattr(event, "preemptor", "") or next(iter(event.gangs), "")


class _Statements:
    """What is tried and neither committed nor undone."""

    def __init__(self) -> None:
        self._kind_by_task: dict[str, str] = {}
        self._decided: frozenset[str] = frozenset()
        self.undecided: Mapping[str, int] = {}

    def follow(self, event: TraceEvent) -> None:
        """Go on to an event."""
        if isinstance(event, DECIDED):
            self._decided = frozenset(event.tasks)
            self._forget(event.tasks)
        elif isinstance(event, UNDONE):
            self._forget([event.task])
        elif isinstance(event, TaskAllocated | TaskPipelined | EvictionTried):
            self._enter(event)
        if not isinstance(event, (*DECIDED, *AFTER_COMMIT)):
            self._decided = frozenset()

    def _enter(self, event: TaskAllocated | TaskPipelined | EvictionTried) -> None:
        if event.task not in self._decided:
            self._kind_by_task[event.task] = TRIED[type(event)]
            self._count()

    def _forget(self, tasks: Sequence[str]) -> None:
        for task in tasks:
            self._kind_by_task.pop(task, None)
        self._count()

    def _count(self) -> None:
        self.undecided = dict(sorted(Counter(self._kind_by_task.values()).items()))
