"""The questions of a session about nodes: filters, scores, network domains, and in which sets of nodes a gang may look.

They are declared as all others are, see `hooks.py`, which has them in its table.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from phalanx.model.shape import Shape
from phalanx.placement import Counts, Index, Mask, Scores
from phalanx.session import combine
from phalanx.session.combine import Hook
from phalanx.session.node_answers import CoupledFilter, CoupledScore, Layer, Site, Term
from phalanx.session.node_subset import NodeSubset
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.verdict import Verdict

if TYPE_CHECKING:
    from phalanx.session.session import Session

Scope = GangState | SubGroupState
"""What a topology constraint holds for."""


class Prefilter(Protocol):
    """Asked once per task before any node is looked at; a refusal holds for every node. The first refusal decides."""

    def prefilter(self, session: "Session", task: TaskState) -> Verdict: ...


PREFILTER = Hook(Prefilter.prefilter, combine.first_refusal, "enablePredicate")


class Screen(Protocol):
    """Filters of the nodes for a task of this shape, in the order in which they are asked. All of them hold."""

    def screen(self, session: "Session", shape: Shape, nodes: Index | slice) -> Sequence[Layer]: ...


SCREEN = Hook(Screen.screen, combine.collected_by_plugin, "enablePredicate")


class TaskScreen(Protocol):
    """Filters that depend on the task itself, such as on its queue, and not only on its shape; None to have no say about it.

    Asked before every placement of such a task, about nodes that its shape may use, after the filters of the shape. All of them
    hold.
    """

    def task_screen(self, session: "Session", task: TaskState, nodes: Index | slice) -> Sequence[Layer] | None: ...


TASK_SCREEN = Hook(TaskScreen.task_screen, combine.collected, "enablePredicate")


class AvoidedNodes(Protocol):
    """Which nodes a gang leaves out as long as it has a place without them. The first answer that is not None counts."""

    def avoided_nodes(self, session: "Session", gang: GangState) -> Mask | None: ...


AVOIDED_NODES = Hook(AvoidedNodes.avoided_nodes, combine.first_answer)


class CouplesNodes(Protocol):
    """Whether placing a task of the shape changes filters or scores on other nodes too. It does if any plugin says so."""

    def couples_nodes(self, session: "Session", shape: Shape) -> bool: ...


COUPLES_NODES = Hook(CouplesNodes.couples_nodes, combine.any_says_so)


class CoupledFilters(Protocol):
    """What `screen` says of the shape beyond what it says of the shape apart from pods, to follow a run. All of them hold."""

    def coupled_filters(self, session: "Session", shape: Shape) -> Sequence[CoupledFilter]: ...


COUPLED_FILTERS = Hook(CoupledFilters.coupled_filters, combine.chained, "enablePredicate")


class CoupledScores(Protocol):
    """What `batch_scores` says of the shape beyond what it says of the shape apart from pods, to follow a run. Added up."""

    def coupled_scores(self, session: "Session", shape: Shape) -> Sequence[CoupledScore]: ...


COUPLED_SCORES = Hook(CoupledScores.coupled_scores, combine.chained, "enableNodeOrder")


class NodeRoom(Protocol):
    """How many tasks of the shape each node may take, beyond what resources allow. The smallest count holds."""

    def node_room(self, session: "Session", shape: Shape, nodes: Index | slice) -> Counts: ...


NODE_ROOM = Hook(NodeRoom.node_room, combine.smallest, "enablePredicate")


class NodeWaits(Protocol):
    """The nodes on which a task can only be pipelined, because others must leave first; None for none. All that are named."""

    def node_waits(self, session: "Session", shape: Shape) -> Mask | None: ...


NODE_WAITS = Hook(NodeWaits.node_waits, combine.collected, "enablePredicate")


class NodeScores(Protocol):
    """A score per node, any number. Added up in tier order."""

    def node_scores(self, session: "Session", shape: Shape, site: Site) -> Scores: ...


NODE_SCORES = Hook(NodeScores.node_scores, combine.added, "enableNodeOrder")


class BatchScores(Protocol):
    """Whole-number scores with weights. Added up; one None says that scoring failed and no node is chosen."""

    def batch_scores(self, session: "Session", shape: Shape, site: Site) -> Sequence[Term] | None: ...


BATCH_SCORES = Hook(BatchScores.batch_scores, combine.chained, "enableNodeOrder")


class TaskScores(Protocol):
    """A score per node that depends on the task itself and not only on its shape; None to have no say. Added up.

    `candidates` are the nodes among which it decides, None for all: scores of others do not matter.
    """

    def task_scores(self, session: "Session", task: TaskState, candidates: Mask | None) -> Scores | None: ...


TASK_SCORES = Hook(TaskScores.task_scores, combine.added, "enableNodeOrder")


class ScoresByLeaf(Protocol):
    """Whether `task_scores` of this plugin are, for a task, the same on all nodes of a lowest HyperNode; and whether, while equal
    tasks are placed there and the candidates stay the same, they only rise there and do not change elsewhere. Such tasks can be
    placed in runs. By plugin.
    """

    def scores_by_leaf(self, session: "Session", task: TaskState) -> bool: ...


SCORES_BY_LEAF = Hook(ScoresByLeaf.scores_by_leaf, combine.collected_by_plugin, "enableNodeOrder")


class PlacementScores(Protocol):
    """A score of every node for one task that is offered some of them; asked by KAI's actions. Added up. See `keeps_order`."""

    def placement_scores(self, session: "Session", task: TaskState, offered: Mask) -> Scores: ...


PLACEMENT_SCORES = Hook(PlacementScores.placement_scores, combine.added)


class HyperNodeGradients(Protocol):
    """Which network domains to try, best group first. The first answer that is not None counts."""

    def hypernode_gradients(self, session: "Session", scope: Scope, root: int, purpose: str) -> list[list[int]] | None: ...


HYPERNODE_GRADIENTS = Hook(HyperNodeGradients.hypernode_gradients, combine.first_answer, "enabledHyperNodeGradient")


class HyperNodeScores(Protocol):
    """A score for each of these domains as the place of the sub-group, and what to add where several share the highest score.

    Both are added up.
    """

    def hypernode_scores(self, session: "Session", subgroup: SubGroupState, hypernodes: Sequence[int]) -> tuple[Scores, Scores]: ...


HYPERNODE_SCORES = Hook(HyperNodeScores.hypernode_scores, combine.added_pairs, "enabledHyperNodeOrder")


class NodeSubsets(Protocol):
    """The sets of nodes to try for a part of a gang, best first; asked by KAI's actions.

    The first answer that is not None counts. Names and refusals are for the trace: give them only if it wants them.
    """

    def node_subsets(
        self, session: "Session", gang: GangState, subgroup: str, tasks: Sequence[TaskState], offered: Mask
    ) -> list[NodeSubset] | None: ...


NODE_SUBSETS = Hook(NodeSubsets.node_subsets, combine.first_answer)
