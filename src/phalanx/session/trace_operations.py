"""The kinds of steps that statements record: tasks placed, undone, bound and evicted, and the room of nodes after that."""

from collections.abc import Mapping, Sequence

from phalanx.model.listing import listed
from phalanx.session.trace import TrialEvent
from phalanx.session.trace_events import Amounts, amounts_text


class _TaskStep(TrialEvent, frozen=True):
    """Something that happens to a task on a node, for good or on trial."""

    at_level = 3
    gang: str
    task: str
    node: str


class TaskAllocated(_TaskStep, frozen=True):
    """A task gets a place now."""

    event, sentence = "allocated", "allocated task {task} on node {node}"


class TaskPipelined(_TaskStep, frozen=True):
    """A task gets a place once others have left."""

    event, sentence = "pipelined", "pipelined task {task} on node {node}"


class TaskUnallocated(_TaskStep, frozen=True):
    """An allocation is undone."""

    event, sentence = "unallocated", "unallocated task {task} from node {node}"


class TaskUnpipelined(_TaskStep, frozen=True):
    """A pipelined place is undone."""

    event, sentence = "unpipelined", "unpipelined task {task} from node {node}"


class TaskBound(_TaskStep, frozen=True):
    """A commit binds a task."""

    event, sentence = "bind", "bind task {task} to node {node}"


class _EvictionStep(_TaskStep, frozen=True):
    """Something about the eviction of a task, with the gang that it is for."""

    preemptor: str = ""
    action: str = ""

    @property
    def unmarked(self) -> str:
        """The sentence, with the action and for whom."""
        by = f" ({self.action}{f' for {self.preemptor}' if self.preemptor else ''})"
        return f"{self.sentence.format_map(self.fields)}{by}"


class EvictionTried(_EvictionStep, frozen=True):
    """A task is evicted in a statement that is not decided yet."""

    event, sentence = "eviction tried", "try to evict task {task} from node {node}"


class EvictionUndone(_EvictionStep, frozen=True):
    """A task stays after all."""

    event, sentence = "eviction undone", "eviction undone, task {task} stays on node {node}"


class TaskEvicted(_EvictionStep, frozen=True):
    """A commit evicts a task."""

    event, sentence = "evicted", "evicted task {task} from node {node}"


class _StatementEnd(TrialEvent, frozen=True):
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


class StatementCommitted(_StatementEnd, frozen=True):
    """The operations become decisions."""

    event, sentence = "commit", "commit of tasks"


class StatementDiscarded(_StatementEnd, frozen=True):
    """All operations are undone."""

    event, sentence = "discard", "discard of tasks"


class StatementRolledBack(_StatementEnd, frozen=True):
    """The last operations are undone."""

    event, sentence = "rollback", "roll-back of tasks"


class StatementKept(_StatementEnd, frozen=True):
    """The operations stand until the session ends, and decide nothing."""

    event, sentence = "keep", "kept until the session ends"


class NodeRoom(TrialEvent, frozen=True):
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
