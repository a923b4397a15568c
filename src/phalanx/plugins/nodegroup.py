"""Groups of nodes for queues: a queue names the groups that its tasks may use, and how much of a group at most.

A node is in the group that its label names. In strict mode a task needs a node with a group that its queue names. Otherwise a
queue that names no group may use the nodes without one, and those only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from phalanx.errors import SnapshotError
from phalanx.model.queue import ROOT, NodeGroupAffinity, Queue
from phalanx.model.resources import Resources, read_resources
from phalanx.model.task_status import HOLDING
from phalanx.placement import Index, Mask, Scores
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import Layer
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.gang_state import TaskState

LABEL = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
NO_GROUP = "node(s) are in no node group"
NONE_NAMED = "node(s) are in a node group and the queue names none"
WRONG_GROUP = "node(s) are in a node group that the queue may not use"
USED_UP = "node(s) are in a node group of which the queue has all it may have"
BROKEN = f"queue has an annotation {LIMITS} that cannot be read"
FULL_SCORE, PREFERRED_SCORE, AVOIDED_SCORE = 100.0, 50.0, -1.0


@dataclass(slots=True)
class _Rules:
    """What one queue says about every node."""

    layers: list[Layer]
    scores: Scores | None
    limits: Mapping[str, Resources]
    taken: dict[str, dict[str, int]] = field(default_factory=dict)
    """What the queue holds of each group."""

    def take(self, group: str, request: Resources, sign: int) -> None:
        amounts = self.taken.setdefault(group, {})
        for name, amount in request.items():
            amounts[name] = amounts.get(name, 0) + sign * amount

    def is_full(self, group: str | None, request: Resources) -> bool:
        """Tell whether one more such task would have too much of the group."""
        limit, taken = self.limits.get(group or "", {}), self.taken.get(group or "", {})
        return any(taken.get(name, 0) + request.get(name, 0) > most for name, most in limit.items())


class NodeGroupPlugin:
    """Keeps the tasks of a queue on the groups of nodes that it names."""

    name = "nodegroup"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; with enableHierarchy a queue that says nothing about groups asks its ancestors."""
        settings = Arguments(self.name, policy.arguments)
        self._is_strict = settings.switch("strict", True)
        self._is_ordered = settings.switch("enablePreferredOrder", False)
        settings.done()
        self._inherits = "enableHierarchy" in policy.enabled
        self._rules: dict[str, _Rules] = {}

    def open(self, session: Session) -> None:
        """Read the group of every node, and what queues with limits hold of each."""
        self._column = session.snapshot.nodes.label(LABEL)
        self._rules = {name: self._read_rules(queue, session.queues) for name, queue in session.queues.items()}
        if any(rules.limits for rules in self._rules.values()):
            self._count_holders(session)

    def _count_holders(self, session: Session) -> None:
        snapshot = session.snapshot
        for node, tasks in snapshot.on_node.items():
            number = snapshot.nodes.number_by_name.get(node)
            for task in tasks.values() if number is not None else ():
                gang = snapshot.gangs.get(task.gang) if task.gang is not None else None
                if gang is not None and gang.queue in self._rules and task.status in HOLDING:
                    self._take(gang.queue, number, task.shape.request, 1)

    def _take(self, queue: str, node: int | None, request: Resources, sign: int) -> None:
        group = self._group(node)
        if group is not None and self._rules[queue].limits:
            self._rules[queue].take(group, request, sign)

    def _group(self, node: int | None) -> str | None:
        code = -1 if node is None else self._column.codes[node]
        return None if code < 0 else self._column.values[code]

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Follow what the queue holds; a pipelined task counts at once, an evicted one no more."""
        queue, sign = operation.gang.gang.queue, -1 if (operation.kind is OperationKind.EVICT) != undone else 1
        for node in operation.nodes if self._rules[queue].limits else ():
            self._take(queue, node, operation.shape.request, sign)

    def task_screen(self, session: Session, task: TaskState, nodes: Index | slice) -> list[Layer] | None:
        """Refuse nodes of groups that the task's queue does not name, or of which it has enough."""
        rules = self._rules[task.gang.gang.queue]
        if not rules.layers and not rules.limits:
            return None
        layers = [Layer(layer.refused[nodes], layer.reason, layer.is_final) for layer in rules.layers]
        if rules.limits:
            full = self._column.where(lambda group: rules.is_full(group, task.task.shape.request))
            layers.append(Layer(full[nodes], USED_UP))
        return layers

    def task_scores(self, session: Session, task: TaskState, candidates: Mask | None) -> Scores | None:
        """Score the groups that the task's queue wants; None when they make no difference."""
        return self._rules[task.gang.gang.queue].scores

    def _read_rules(self, queue: Queue, queues: Mapping[str, Queue]) -> _Rules:
        affinity = self._affinity_of(queue, queues)
        limits = _read_limits(queue)
        if limits is None:
            everywhere = np.ones(len(self._column.codes), dtype=np.bool_)
            return _Rules([Layer(everywhere, BROKEN, is_final=True)], None, {})
        layers = [Layer(refused, reason, is_final=True) for refused, reason in self._refusals(affinity) if refused.any()]
        return _Rules(layers, self._scores(affinity), limits)

    def _affinity_of(self, queue: Queue, queues: Mapping[str, Queue]) -> NodeGroupAffinity:
        """Return what the queue says, or its nearest ancestor that says something."""
        line = _with_ancestors(queue, queues) if self._inherits else iter((queue,))
        return next((link.node_groups for link in line if link.node_groups is not None), NodeGroupAffinity())

    def _refusals(self, affinity: NodeGroupAffinity) -> Iterator[tuple[Mask, str]]:
        labelled = self._column.present
        if self._is_strict or not affinity.is_empty:
            yield ~labelled, NO_GROUP
        if affinity.is_empty:
            yield labelled, NONE_NAMED
        else:
            yield labelled & ~self._column.where(lambda group: _may_use(affinity, group)), WRONG_GROUP

    def _scores(self, affinity: NodeGroupAffinity) -> Scores | None:
        score_by_group = np.array([*(self._score(affinity, group) for group in self._column.values), 0.0])
        scores: Scores = score_by_group[self._column.codes]
        return None if not scores.size or (scores == scores[0]).all() else scores

    def _score(self, affinity: NodeGroupAffinity, group: str) -> float:
        if group in affinity.avoided:
            return AVOIDED_SCORE
        score = FULL_SCORE if group in affinity.required else 0.0
        if group in affinity.preferred:
            count = len(affinity.preferred)
            rank = affinity.preferred.index(group) if self._is_ordered else 0
            score += PREFERRED_SCORE * (count - rank) / count
        return score


def _may_use(affinity: NodeGroupAffinity, group: str | None) -> bool:
    """A group that is both forbidden and avoided may be used: the milder word wins, as in Volcano."""
    if group in affinity.avoided:
        return True
    return group not in affinity.forbidden and (group in affinity.required or group in affinity.preferred)


def _with_ancestors(queue: Queue, queues: Mapping[str, Queue]) -> Iterator[Queue]:
    seen: set[str] = set()
    link: Queue | None = queue
    while link is not None and link.name not in seen:
        yield link
        seen.add(link.name)
        link = queues.get(link.parent or ROOT)


def _read_limits(queue: Queue) -> dict[str, dict[str, int]] | None:
    """Return the limits per group; None when the annotation cannot be read."""
    text = queue.annotations.get(LIMITS, "")
    try:
        groups = msgspec.json.decode(text, type=dict[str, dict[str, str | int | float]]) if text else {}
        return {group: read_resources(amounts, where=group) for group, amounts in groups.items()}
    except (msgspec.MsgspecError, SnapshotError):
        return None
