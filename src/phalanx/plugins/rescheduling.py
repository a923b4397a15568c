"""Even out nodes: tasks leave nodes that are too full for nodes that are rather empty, by way of the shuffle action.

Strategy ``lowNodeUtilization``: a node is low when it is below every one of ``thresholds`` and not cordoned, and high when it is
above any of ``targetThresholds``; both are percent of what the node offers. High nodes, the fullest first, give up tasks, the
least important first (priority, then QoS class, then age), until they are no longer high or the low ones have no more room below
their targets.

Volcano measures usage and acts once per ``interval``, since measurements lag behind. Here usage is what tasks ask for, those that
leave not counted: it shows at once what was decided, so nothing is evicted twice for the same reason. ``interval`` is how long a
task stays where it was put before it can be moved again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from phalanx.errors import ConfigError
from phalanx.model.resources import CPU, MEMORY, PODS
from phalanx.placement import Vector
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState

RESOURCES = (CPU, MEMORY, PODS)
STRATEGY = "lowNodeUtilization"
SYSTEM_PRIORITY = 2_000_000_000
"""Of the class system-cluster-critical; tasks as important as that stay where they are."""
QOS_CLASSES = ("BestEffort", "Burstable", "Guaranteed")


def _whole_node() -> Vector:
    return np.full(len(RESOURCES), 100.0)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """In percent of a node's cpu, memory and pods."""

    low: Vector = field(default_factory=_whole_node)
    target: Vector = field(default_factory=_whole_node)


class ReschedulingPlugin:
    """Names tasks that would be better off on other nodes."""

    name = "rescheduling"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the strategies; one with thresholds of 100 percent by default, which moves nobody."""
        settings = Arguments(self.name, policy.arguments)
        self._interval_seconds = settings.seconds("interval", "5m") or 0.0
        settings.seconds("metricsPeriod", "5m")
        strategies = settings.raw("strategies")
        settings.done()
        self._strategies = [Thresholds()] if strategies is None else _read_strategies(strategies)

    def victim_tasks(self, session: Session, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name the tasks that each strategy moves."""
        session.decisions.may_change_with_time()
        movable = [task for task in candidates if self._may_move(task, session.now)]
        return [task for thresholds in self._strategies for task in _Load(session, thresholds).relieved(movable)]

    def _may_move(self, task: TaskState, now: float) -> bool:
        has_settled = task.task.scheduled + self._interval_seconds <= now
        return has_settled and task.task.is_preemptable and task.task.priority < SYSTEM_PRIORITY and task.node >= 0


class _Load:
    """What nodes offer and what stays on them, of cpu, memory and pods; arrays are (resource, node)."""

    def __init__(self, session: Session, thresholds: Thresholds) -> None:
        self._session, self._target = session, thresholds.target
        self._rows = [session.snapshot.space.row_by_name[name] for name in RESOURCES]
        ledger = session.ledger
        self._offered = ledger.allocatable[self._rows].astype(np.float64)
        self._held = (ledger.used - ledger.releasing)[self._rows].astype(np.float64)
        percent = np.divide(self._held * 100.0, self._offered, out=np.zeros(self._held.shape), where=self._offered > 0)
        low = (percent < thresholds.low[:, None]).all(axis=0) & ~session.snapshot.nodes.unschedulable
        high = np.flatnonzero(~low & (percent > self._target[:, None]).any(axis=0))
        self._high = high[np.argsort(-percent[:2, high].sum(axis=0), kind="stable")].tolist()
        self._limit = self._offered * self._target[:, None] / 100.0
        self._room: Vector = (self._limit - self._held)[:, low].sum(axis=1)

    def relieved(self, movable: Iterable[TaskState]) -> list[TaskState]:
        """Return the tasks that leave high nodes."""
        by_node: dict[int, list[TaskState]] = {}
        for task in sorted(movable, key=_importance):
            by_node.setdefault(task.node, []).append(task)
        return [task for node in self._high for task in by_node.get(node, ()) if self._leaves(task, node)]

    def _leaves(self, task: TaskState, node: int) -> bool:
        """Let the task go if its node is still too full and the low nodes together have room for it."""
        request = self._session.request_of(task.task.shape).amounts[self._rows]
        if np.all(self._held[:, node] <= self._limit[:, node]) or np.any(request > self._room):
            return False
        self._held[:, node] -= request
        self._room -= request
        return True


def _importance(task: TaskState) -> tuple[int, int, float, str]:
    """Return a key that is smaller for what goes first; of equals the youngest."""
    noun = task.task
    rank = QOS_CLASSES.index(noun.qos) if noun.qos in QOS_CLASSES else len(QOS_CLASSES)
    return noun.priority, rank, -noun.created, noun.key


def _read_strategies(value: object) -> list[Thresholds]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _wrong("strategies", value, "a list of strategies, each with a name and params")
    return [_read_strategy(entry, f"strategies[{number}]") for number, entry in enumerate(value)]


def _read_strategy(value: object, where: str) -> Thresholds:
    entry = _mapping(value, where)
    if entry.get("name") != STRATEGY:
        raise _wrong(f"{where}.name", entry.get("name"), f"a known strategy; known: {STRATEGY}")
    params = _mapping(entry.get("params") or {}, f"{where}.params")
    settings = Arguments("rescheduling", params)
    low, target = (_read_percent(settings.raw(key), f"{where}.params.{key}") for key in ("thresholds", "targetThresholds"))
    for key in ("thresholdPriority", "thresholdPriorityClassName", "numberOfNodes", "nodeFit"):
        settings.raw(key)
    settings.done()
    return Thresholds(low, target)


def _read_percent(value: object, where: str) -> Vector:
    settings = Arguments("rescheduling", _mapping({} if value is None else value, where))
    percent = np.array([settings.number(name, 100.0) for name in RESOURCES])
    settings.done()
    return percent


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _wrong(where, value, "a mapping")
    return value


def _wrong(where: str, value: object, wanted: str) -> ConfigError:
    return ConfigError(f"plugin 'rescheduling', argument {where!r}: {value!r} is not {wanted}")
