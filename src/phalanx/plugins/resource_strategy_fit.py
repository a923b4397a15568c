"""Pack or spread by resource: some resources score higher on full nodes, others on empty ones."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import numpy as np

from phalanx.errors import ConfigError
from phalanx.model.shape import Shape
from phalanx.placement import Amounts, Index, Scores
from phalanx.session.arguments import Arguments
from phalanx.session.hooks import Layer, Site
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session

MOST, LEAST = "MostAllocated", "LeastAllocated"
POD_WEIGHT, POD_RESOURCES = "volcano.sh/resource-strategy-scoring-weight", "volcano.sh/resource-strategy-fit-resources"
SHORTAGE = "node(s) would keep too little cpu or memory for their free GPUs"

Strategy = tuple[str, int]
"""MostAllocated or LeastAllocated, and a weight."""


class ResourceStrategyFitPlugin:
    """Scores per resource, avoids nodes with scarce resources, keeps cpu and memory free beside free GPUs."""

    name = "resource-strategy-fit"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the strategy per resource; names may end in a star."""
        settings = Arguments(self.name, policy.arguments)
        self.weight = settings.integer("resourceStrategyFitWeight", 10)
        resources = settings.raw("resources")
        self.strategies = _read_strategies(resources) if resources is not None else {"cpu": (LEAST, 1), "memory": (LEAST, 1)}
        self._scarce = _Scarce(settings.raw("sra"))
        self._proportional = _Proportional(settings.raw("proportional"))
        settings.done()

    def node_scores(self, session: Session, shape: Shape, site: Site) -> Scores:
        """Return the score of each node of the site."""
        strategies, weight = self._for(shape)
        ledger, request = session.ledger, session.request_of(shape)
        total, weights = np.zeros(len(ledger.pods[site.nodes])), 0
        for row, amount in request.rows:
            strategy = _strategy_for(session.snapshot.space.names[row], strategies)
            if strategy is not None:
                used = ledger.used[row, site.nodes] + amount * site.extra
                total = total + _score(strategy[0], ledger.allocatable[row, site.nodes], used, amount) * strategy[1]
                weights += strategy[1]
        scores = total / weights * (100.0 * weight) if weights else total
        return scores + self._scarce.scores(session, shape, site)

    def _for(self, shape: Shape) -> tuple[Mapping[str, Strategy], int]:
        """Return the strategies, those that the pod itself names first."""
        own = shape.annotations.get(POD_RESOURCES)
        weight = shape.annotations.get(POD_WEIGHT, "")
        if own is None:
            return self.strategies, self.weight
        try:
            return _read_strategies(msgspec.json.decode(own)), int(weight) if weight.isdecimal() and len(
                weight
            ) < 10 else self.weight
        except (msgspec.MsgspecError, ConfigError):
            return self.strategies, self.weight

    def screen(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Keep tasks without GPUs from using up the cpu and memory that free GPUs will need."""
        return self._proportional.layers(session, shape, nodes)


def _score(
    kind: str, capacity: "np.ndarray[Any, np.dtype[np.int64]]", used: "np.ndarray[Any, np.dtype[np.int64]]", amount: int
) -> Scores:
    present = capacity > 0
    wanted = used + amount
    part = wanted if kind == MOST else capacity - wanted
    share = part.astype(np.float64) / np.where(present, capacity, 1)
    return np.where(present & (wanted <= capacity), share, 0.0)


def _read_strategies(value: Any) -> dict[str, Strategy]:
    if not isinstance(value, Mapping):
        raise ConfigError("plugin 'resource-strategy-fit', argument 'resources': expected a mapping of names to type and weight")
    found = {}
    for name, entry in value.items():
        kind = str(entry.get("type", LEAST)) if isinstance(entry, Mapping) else ""
        if kind not in (MOST, LEAST):
            raise ConfigError(f"plugin 'resource-strategy-fit', argument 'resources.{name}.type': write {MOST!r} or {LEAST!r}")
        weight = entry.get("weight", 1)
        if not isinstance(weight, int) or weight < 0:
            raise ConfigError(
                f"plugin 'resource-strategy-fit', argument 'resources.{name}.weight': {weight!r} is not a whole number"
            )
        found[str(name)] = (kind, weight)
    return found


def _strategy_for(name: str, strategies: Mapping[str, Strategy]) -> Strategy | None:
    """Return the strategy of a resource: its own, else that of the longest pattern that matches."""
    if name in strategies:
        return strategies[name]
    patterns = [pattern for pattern in strategies if pattern.endswith("*") and fnmatchcase(name, pattern)]
    return strategies[max(patterns, key=len)] if patterns else None


def _section(key: str, value: Any) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(f"plugin 'resource-strategy-fit', argument {key!r}: expected a mapping, got {type(value).__name__}")
    return value or {}


def _is_on(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("enable", "false")).lower() == "true"


def _names(entry: Mapping[str, Any]) -> list[str]:
    return [name.strip() for name in str(entry.get("resources", "")).split(",") if name.strip()]


def _number(key: str, value: Any) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise ConfigError(f"plugin 'resource-strategy-fit', argument {key!r}: {value!r} is not a number") from None


class _Scarce:
    """Scarce resource avoidance: the more scarce resources a node has that the task does not ask for, the lower its score."""

    def __init__(self, value: Any) -> None:
        entry = _section("sra", value)
        weight = _number("sra.weight", entry.get("weight", 10))
        self._weight = weight if _is_on(entry) else 0.0
        weights = _section("sra.resourceWeight", entry.get("resourceWeight"))
        self._weights = {name: _number(f"sra.resourceWeight.{name}", weights.get(name, 1)) for name in _names(entry)}

    def scores(self, session: Session, shape: Shape, site: Site) -> Scores:
        size = len(session.ledger.pods[site.nodes])
        total = sum(self._weights.values())
        if not self._weight or not total:
            return np.zeros(size)
        held = np.zeros(size)
        for name, weight in self._weights.items():
            row = session.snapshot.space.row_by_name.get(name)
            if row is not None and not shape.request.get(name):
                held += np.where(session.ledger.allocatable[row, site.nodes] > 0, float(weight), 0.0)
        return 100.0 * self._weight * (1.0 - held / total)


class _Proportional:
    """For each free GPU keep so much cpu and memory free."""

    def __init__(self, value: Any) -> None:
        entry = _section("proportional", value)
        self._is_on = _is_on(entry)
        ratios = _section("proportional.resourceProportion", entry.get("resourceProportion"))
        where = "proportional.resourceProportion"
        self._ratios = {
            name: tuple(_number(f"{where}.{name}.{part}", ratios.get(f"{name}.{part}", 0)) for part in ("cpu", "memory"))
            for name in _names(entry)
        }

    def layers(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        if not self._is_on or any(shape.request.get(name) for name in self._ratios):
            return []
        idle: Amounts = session.ledger.idle
        request = session.request_of(shape).amounts
        refused = np.zeros(len(session.ledger.pods[nodes]), dtype=np.bool_)
        for name, (cpu, memory) in self._ratios.items():
            row = session.snapshot.space.row_by_name.get(name)
            if row is not None:
                free = idle[row, nodes] / 1000
                refused |= (idle[row, nodes] > 0) & (idle[0, nodes] - request[0] < free * cpu * 1000)
                refused |= (idle[row, nodes] > 0) & (idle[1, nodes] - request[1] < free * memory * 2**30)
        return [Layer(refused, SHORTAGE)]
