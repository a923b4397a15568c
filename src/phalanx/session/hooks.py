"""What a plugin may answer. A plugin is any object with a `name` and some of these methods; it leaves out what it does not
care about. How the answers of several plugins combine is in `combine.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.placement import Counts, Index, Mask, Scores, Vector
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.verdict import Verdict, Vote

if TYPE_CHECKING:
    from phalanx.session.session import Session
    from phalanx.session.statement import Operation

SortKey = Any
"""Anything that compares; keys of one hook compare with each other."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One filter's answer for some nodes: which of them it refuses, and why."""

    refused: Mask
    reason: str
    is_final: bool = False
    """No eviction can help, and later filters are not asked about these nodes."""
    is_prepared: bool = False
    """Made from counts of other pods that were taken before any eviction; evictions for the task do not change it."""
    is_recounted: bool = False
    """Of those: a dry run of topology-aware preemption counts again."""


@dataclass(frozen=True, slots=True)
class Site:
    """Nodes to score, each as if it had taken some more tasks of the class already."""

    nodes: Index | slice
    extra: Counts | int = 0
    extra_booked: Counts | int = 0
    """The same for the book that Kubernetes' own scores read: promised tasks are in it at once."""


@dataclass(frozen=True, slots=True)
class Term:
    """One score. Either the same for any set of candidates (`values`), or made relative to them (`among`)."""

    weight: int = 1
    values: Counts | None = None
    among: Callable[[Index], Counts] | None = None
    is_static: bool = True
    """For a relative term: it does not change when a node takes a task of the class."""


class Plugin(Protocol):
    """What every plugin has."""

    name: str


class Open(Protocol):
    """Asked once when the session opens, in tier order, before anything else."""

    def open(self, session: "Session") -> None: ...


class Close(Protocol):
    """Asked once when all actions are done."""

    def close(self, session: "Session") -> None: ...


class Placed(Protocol):
    """Told after an operation changed the books: a place taken or promised, or a task evicted; `undone` when it is rolled back."""

    def changed(self, session: "Session", operation: "Operation", undone: bool) -> None: ...


class GangOrder(Protocol):
    """Which gang of a queue comes first: smaller keys do. The first plugin whose keys differ decides."""

    def gang_order(self, session: "Session", gang: GangState) -> SortKey: ...


class SubGroupOrder(Protocol):
    """Which sub-group of a gang comes first: smaller keys do."""

    def subgroup_order(self, session: "Session", subgroup: SubGroupState) -> SortKey: ...


class TaskOrder(Protocol):
    """Which task of a gang comes first: smaller keys do."""

    def task_order(self, session: "Session", task: TaskState) -> SortKey: ...


class QueueOrder(Protocol):
    """Which queue comes first: negative when the left one does, positive when the right one does, 0 to leave it open."""

    def queue_order(self, session: "Session", left: Queue, right: Queue) -> int: ...


class GangValid(Protocol):
    """Whether a gang may be considered at all."""

    def gang_valid(self, session: "Session", gang: GangState) -> Verdict: ...


class GangReady(Protocol):
    """Whether enough members have a place now. A plugin that says `counts_members` answers from the gang's counts alone."""

    def gang_ready(self, session: "Session", gang: GangState) -> Verdict: ...


class SubGroupReady(Protocol):
    """The same for a sub-group of a gang that has sub-groups."""

    def subgroup_ready(self, session: "Session", subgroup: SubGroupState) -> Verdict: ...


class GangPipelined(Protocol):
    """Whether enough members have a place once promises are kept."""

    def gang_pipelined(self, session: "Session", gang: GangState) -> Vote: ...


class SubGroupPipelined(Protocol):
    """The same for a sub-group."""

    def subgroup_pipelined(self, session: "Session", subgroup: SubGroupState) -> Vote: ...


class GangEnqueueable(Protocol):
    """Whether a waiting gang may be admitted."""

    def gang_enqueueable(self, session: "Session", gang: GangState) -> Vote: ...


class GangEnqueued(Protocol):
    """Told after a gang was admitted."""

    def gang_enqueued(self, session: "Session", gang: GangState) -> None: ...


class GangStarving(Protocol):
    """Whether a gang may take room from others."""

    def gang_starving(self, session: "Session", gang: GangState) -> Verdict: ...


class ToleratedGap(Protocol):
    """How many members of its minima a gang may lack and still keep the places that the others found; None: it keeps none."""

    def tolerated_gap(self, session: "Session", gang: GangState) -> int | None: ...


class QueueOverused(Protocol):
    """Whether a queue has all it should have; a refusal says that it has, and the queue is passed over."""

    def queue_overused(self, session: "Session", queue: Queue) -> Verdict: ...


class QueueRoom(Protocol):
    """How many more tasks of a shape a queue may take: 0 with the reason, or a count."""

    def queue_room(self, session: "Session", queue: Queue, shape: Shape) -> "Room": ...


class QueuePreemptive(Protocol):
    """Whether a queue may take room from other queues for this task."""

    def queue_preemptive(self, session: "Session", queue: Queue, task: TaskState) -> Verdict: ...


class Prefilter(Protocol):
    """Asked once per task before any node is looked at; a refusal holds for every node."""

    def prefilter(self, session: "Session", task: TaskState) -> Verdict: ...


class Screen(Protocol):
    """Filters of the nodes for a task of this shape, in the order in which they are asked."""

    def screen(self, session: "Session", shape: Shape, nodes: Index | slice) -> Sequence[Layer]: ...


class TaskScreen(Protocol):
    """Filters that depend on the task itself, such as on its queue, and not only on its shape; None to have no say about it.

    Asked before every placement of such a task, about nodes that its shape may use, after the filters of the shape.
    """

    def task_screen(self, session: "Session", task: TaskState, nodes: Index | slice) -> Sequence[Layer] | None: ...


class AvoidedNodes(Protocol):
    """Which nodes a gang leaves out as long as it has a place without them; the first answer that is not None counts."""

    def avoided_nodes(self, session: "Session", gang: GangState) -> Mask | None: ...


class NodeRoom(Protocol):
    """How many tasks of the shape each node may take, beyond what resources allow."""

    def node_room(self, session: "Session", shape: Shape, nodes: Index | slice) -> Counts: ...


class NodeWaits(Protocol):
    """Which nodes a task of the shape can be promised, but not given yet, because others have to leave first; None for no node."""

    def node_waits(self, session: "Session", shape: Shape) -> Mask | None: ...


class NodeScores(Protocol):
    """A score per node, any number; added up in tier order."""

    def node_scores(self, session: "Session", shape: Shape, site: Site) -> Scores: ...


class BatchScores(Protocol):
    """Whole-number scores with weights; None says that scoring failed and no node is chosen."""

    def batch_scores(self, session: "Session", shape: Shape, site: Site) -> Sequence[Term] | None: ...


class TaskScores(Protocol):
    """A score per node that depends on the task itself and not only on its shape."""

    def task_scores(self, session: "Session", task: TaskState) -> Scores | None: ...


class Victims(Protocol):
    """Which of these running tasks may be evicted for the task, in preempt and in reclaim; None to have no say."""

    def preemptable(self, session: "Session", preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState] | None: ...

    def reclaimable(self, session: "Session", preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState] | None: ...


class Evictable(Protocol):
    """The same for the gang-aware actions; `purpose` is preempt, reclaim or heal: then the preemptor is one of the candidates."""

    def evictable(
        self, session: "Session", preemptor: TaskState, candidates: Sequence[TaskState], purpose: str
    ) -> list[TaskState] | None: ...


class QueueSurplus(Protocol):
    """What a queue has beyond what it keeps, of each resource: no task of it is reclaimed that asks for nothing of that."""

    def queue_surplus(self, session: "Session", queue: Queue) -> Vector: ...


class VictimTasks(Protocol):
    """Which of these running tasks leave their nodes for nobody in particular: the shuffle action evicts them."""

    def victim_tasks(self, session: "Session", candidates: Sequence[TaskState]) -> list[TaskState]: ...


class VictimQueueOrder(Protocol):
    """Whose tasks go first when several queues can give: negative when the left one does."""

    def victim_queue_order(self, session: "Session", left: Queue, right: Queue, preemptor: Queue) -> int: ...


class GivingOrder(Protocol):
    """Whose tasks go first between queues, as a key: smaller ones do; None for a queue that gives nothing."""

    def giving_order(self, session: "Session", queue: Queue, preemptor: Queue) -> SortKey | None: ...


class HyperNodeGradients(Protocol):
    """Which network domains to try, best group first; None when the plugin has no opinion."""

    def hypernode_gradients(self, session: "Session", scope: "Scope", root: int, purpose: str) -> list[list[int]] | None: ...


class HyperNodeScores(Protocol):
    """A score for each of these domains as the place of the sub-group, and what to add where several share the highest score."""

    def hypernode_scores(self, session: "Session", subgroup: SubGroupState, hypernodes: Sequence[int]) -> tuple[Scores, Scores]: ...


Scope = GangState | SubGroupState
"""What a topology constraint holds for."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many more tasks fit, and what stops the next one."""

    tasks: int
    verdict: Verdict
