"""The kinds of steps that statements record: tasks placed, undone, bound and evicted, and the room of nodes after that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phalanx.session.trace import TrialEvent, listed
from phalanx.session.trace_events import Amounts, amounts_text


@dataclass(frozen=True, slots=True)
class _TaskStep(TrialEvent):
    """Something that happens to a task on a node, for good or on trial."""

    at_level = 3
    gang: str
    task: str
    node: str


@dataclass(frozen=True, slots=True)
class TaskAllocated(_TaskStep):
    """A task gets a place now."""

    event, sentence = "allocated", "allocated task {task} on node {node}"


@dataclass(frozen=True, slots=True)
class TaskPipelined(_TaskStep):
    """A task gets a place once others have left."""

    event, sentence = "pipelined", "pipelined task {task} on node {node}"


@dataclass(frozen=True, slots=True)
class TaskUnallocated(_TaskStep):
    """An allocation is undone."""

    event, sentence = "unallocated", "unallocated task {task} from node {node}"


@dataclass(frozen=True, slots=True)
class TaskUnpipelined(_TaskStep):
    """A pipelined place is undone."""

    event, sentence = "unpipelined", "unpipelined task {task} from node {node}"


@dataclass(frozen=True, slots=True)
class TaskBound(_TaskStep):
    """A commit binds a task."""

    event, sentence = "bind", "bind task {task} to node {node}"


@dataclass(frozen=True, slots=True)
class _EvictionStep(_TaskStep):
    """Something about the eviction of a task, with the gang that it is for."""

    preemptor: str = ""
    action: str = ""

    @property
    def unmarked(self) -> str:
        """The sentence, with the action and for whom."""
        by = f" ({self.action}{f' for {self.preemptor}' if self.preemptor else ''})"
        return f"{self.sentence.format_map(self.fields)}{by}"


@dataclass(frozen=True, slots=True)
class EvictionTried(_EvictionStep):
    """A task is evicted in a statement that is not decided yet."""

    event, sentence = "eviction tried", "try to evict task {task} from node {node}"


@dataclass(frozen=True, slots=True)
class EvictionUndone(_EvictionStep):
    """A task stays after all."""

    event, sentence = "eviction undone", "eviction undone, task {task} stays on node {node}"


@dataclass(frozen=True, slots=True)
class TaskEvicted(_EvictionStep):
    """A commit evicts a task."""

    event, sentence = "evicted", "evicted task {task} from node {node}"


@dataclass(frozen=True, slots=True)
class _StatementEnd(TrialEvent):
    """What becomes of the operations of a statement."""

    at_level = 3
    operations: Mapping[str, int]
    tasks: Sequence[str]
    concerned: Sequence[str]
    """The gangs of its tasks, and those that evictions are for."""

    @property
    def gangs(self) -> tuple[str, ...]:
        """All that it concerns."""
        return tuple(self.concerned)

    @property
    def unmarked(self) -> str:
        """How many tasks, and which."""
        what = ", ".join(f"{count} to {kind}" for kind, count in self.operations.items())
        return f"{self.sentence}: {what} ({listed(self.tasks)})"


@dataclass(frozen=True, slots=True)
class StatementCommitted(_StatementEnd):
    """The operations become decisions."""

    event, sentence = "commit", "commit of tasks"


@dataclass(frozen=True, slots=True)
class StatementDiscarded(_StatementEnd):
    """All operations are undone."""

    event, sentence = "discard", "discard of tasks"


@dataclass(frozen=True, slots=True)
class StatementRolledBack(_StatementEnd):
    """The last operations are undone."""

    event, sentence = "rollback", "roll-back of tasks"


@dataclass(frozen=True, slots=True)
class StatementKept(_StatementEnd):
    """The operations stand until the session ends, and decide nothing."""

    event, sentence = "keep", "kept until the session ends"


@dataclass(frozen=True, slots=True)
class NodeRoom(TrialEvent):
    """The room of a node after something changed on it."""

    at_level, trial_level, event = 3, 5, "room"
    gang: str
    node: str
    idle: Amounts
    used: Amounts
    releasing: Amounts

    @property
    def unmarked(self) -> str:
        """The three amounts."""
        releasing = {name: amount for name, amount in self.releasing.items() if amount}
        room = f"idle {amounts_text(self.idle)}; used {amounts_text(self.used)}; releasing {amounts_text(releasing)}"
        return f"node {self.node} now: {room}"
