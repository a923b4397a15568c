"""Keep away from nodes that are busy in truth, whatever was asked for.

A node above a threshold takes no more tasks; among the others the idlest scores best. What was measured says nothing about tasks
that came since, so those are estimated from their requests. A measurement of more than five minutes ago counts as none: the node
passes, and scores 0.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.quantity import to_milli, to_units
from phalanx.model.resources import CPU, MEMORY
from phalanx.model.shape import Shape
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Amounts, Index, Mask, Scores
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import Layer, Site
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind

BUSY_CPU = "the CPU load of the node exceeds the upper limit."
BUSY_MEMORY = "the memory load of the node exceeds the upper limit."
VALID_SECONDS = 300.0
DELAY_SECONDS = 30.0
"""How long a running task takes to show in the measurements."""
FULL = 100.0

Shares = NDArray[np.float64]
"""(cpu and memory, node): parts of what a node has."""


class UsagePlugin:
    """Refuses busy nodes and prefers idle ones, by what is measured."""

    name = "usage"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read weights, thresholds in percent, and how tasks are estimated."""
        settings = Arguments(self.name, policy.arguments)
        self._weight = settings.integer("usage.weight", 5)
        weights = [settings.integer("cpu.weight", 1), settings.integer("memory.weight", 1)]
        self._weights = np.array(weights, dtype=np.float64)[:, None]
        thresholds = self._section(settings.raw("thresholds"), "thresholds", ("cpu", "mem"))
        self._thresholds = thresholds.number("cpu", 80), thresholds.number("mem", 80)
        self._estimator = _Estimator(self._section(settings.raw("estimator"), "estimator", _Estimator.KEYS))
        settings.done()

    def _section(self, value: object, key: str, known: tuple[str, ...]) -> Arguments:
        if value is not None and not isinstance(value, Mapping):
            raise ConfigError(f"plugin {self.name!r}, argument {key!r}: expected a mapping with {', '.join(known)}")
        section = Arguments(f"{self.name}.{key}", value or {})
        unknown = sorted(str(name) for name in value or {} if name not in known)
        if unknown:
            raise ConfigError(f"plugin {self.name!r}, argument '{key}.{unknown[0]}': unknown setting; known: {', '.join(known)}")
        return section

    def open(self, session: Session) -> None:
        """Lay out what was measured, and estimate the tasks that came since."""
        session.decisions.may_change_with_time()
        nodes = session.snapshot.nodes
        self._real: Shares = np.zeros((2, len(nodes)))
        self._is_known: Mask = np.zeros(len(nodes), dtype=np.bool_)
        for name, usage in session.snapshot.surroundings.node_usage.items():
            number = nodes.number_by_name.get(name)
            if number is not None and session.now - usage.measured <= VALID_SECONDS:
                self._real[:, number], self._is_known[number] = (usage.cpu, usage.memory), True
        self._capacity = session.ledger.reported[:2].astype(np.float64)
        self._estimates: Amounts = np.zeros((2, len(nodes)), dtype=np.int64)
        self._by_task: dict[TaskKey, tuple[int, Amounts]] = {}
        for name, tasks in session.snapshot.on_node.items():
            if name in nodes.number_by_name:
                self._enter_unseen(tasks, nodes.number_by_name[name], session.now)

    def _enter_unseen(self, tasks: Mapping[TaskKey, Task], node: int, now: float) -> None:
        for task in tasks.values():
            is_new = task.status is not Status.RUNNING or not task.started or now - task.started < DELAY_SECONDS
            if is_new and task.status in HOLDING:
                self._enter(task.key, task.shape, node)

    def _enter(self, key: TaskKey, shape: Shape, node: int) -> None:
        where = np.array([node], dtype=np.int64)
        amounts = self._estimate(shape, where, self._estimates[:, where])[:, 0]
        self._by_task[key] = (node, amounts)
        self._estimates[:, node] += amounts

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Follow allocated and pipelined tasks; an evicted one gives back what was estimated for it."""
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            if operation.kind is OperationKind.EVICT:
                held = self._by_task.get(task.task.key)
                if held is not None:
                    self._estimates[:, node] += held[1] if undone else -held[1]
            elif undone:
                self._estimates[:, node] -= self._by_task.pop(task.task.key)[1]
            else:
                self._enter(task.task.key, task.task.shape, node)

    def screen(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse nodes above a threshold; no eviction changes what was measured."""
        busy = [self._is_known & (self._real[row] * 100.0 > most) for row, most in enumerate(self._thresholds)]
        hot_memory = busy[1] & ~busy[0]
        answers = [Layer(busy[0][nodes], BUSY_CPU, is_final=True), Layer(hot_memory[nodes], BUSY_MEMORY, is_final=True)]
        return [layer for layer in answers if layer.refused.any()]

    def node_scores(self, session: Session, shape: Shape, site: Site) -> Scores:
        """Score what would be left, as a weighted mean of cpu and memory; 0 where nothing is known."""
        estimates = self._estimates[:, site.nodes]
        more = np.broadcast_to(np.maximum(site.extra, site.extra_booked), estimates.shape[1:])
        for step in range(int(more.max(initial=0))):
            estimates = estimates + self._estimate(shape, site.nodes, estimates) * (more > step)
        free = 1.0 - self._load(site.nodes, estimates)
        return np.where(self._is_known[site.nodes], free * (FULL * self._weight), 0.0)

    def _load(self, nodes: Index | slice, estimates: Amounts) -> Scores:
        """Return how busy nodes are, estimated tasks included: 0 to 1, weighted over cpu and memory."""
        capacity, weight = self._capacity[:, nodes], float(self._weights.sum())
        present = capacity > 0
        composite = self._real[:, nodes] + estimates / np.where(present, capacity, 1.0)
        shares = np.where(present, np.clip(composite, 0.0, 1.0), 0.0)
        return np.asarray((shares * self._weights).sum(axis=0) / weight if weight else np.ones(capacity.shape[1]))

    def _estimate(self, shape: Shape, nodes: Index | slice, estimates: Amounts) -> Amounts:
        """Return what one more task will use on each node: (cpu and memory, node), whole so that undoing is exact."""
        return self._estimator.amounts(shape, self._load(nodes, estimates))


class _Estimator:
    """How much of its request a task will use: a part of it, and a part of what it may use beyond; more on busy nodes."""

    KEYS = ("request_ratio", "burst_ratio", "risk_threshold", "risk_factor", "be_cpu", "be_memory")

    def __init__(self, settings: Arguments) -> None:
        self._request_ratio = settings.number("request_ratio", 0.7)
        self._burst_ratio = settings.number("burst_ratio", 0.0)
        self._risk_threshold = settings.number("risk_threshold", 0.6)
        self._risk_factor = max(settings.number("risk_factor", 1.2), 1.0)
        self._best_effort = (
            self._quantity(settings, "be_cpu", "250m", to_milli), self._quantity(settings, "be_memory", "200Mi", to_units),
        )  # fmt: skip

    def _quantity(self, settings: Arguments, key: str, default: str, read: Any) -> int:
        try:
            return int(read(settings.text(key, default)))
        except SnapshotError as problem:
            raise ConfigError(f"plugin 'usage', argument 'estimator.{key}': {problem}") from problem

    def amounts(self, shape: Shape, load: Scores) -> Amounts:
        factor = np.where(load >= self._risk_threshold, self._risk_factor, 1.0)
        rows = [self._row(shape, place, name, factor) for place, name in enumerate((CPU, MEMORY))]
        return np.rint(np.array(rows)).astype(np.int64)

    def _row(self, shape: Shape, place: int, name: str, factor: Scores) -> Scores:
        if shape.is_best_effort:
            return self._best_effort[place] * factor
        request = shape.request.get(name, 0)
        limit = sum(amount for limits in shape.container_limits for key, amount in limits if key == name)
        most = max(limit, request)
        wanted = (request * self._request_ratio + (most - request) * self._burst_ratio) * factor
        return np.clip(wanted, 0.0, float(most))
