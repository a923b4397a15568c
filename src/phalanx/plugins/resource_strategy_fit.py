"""Pack or spread by resource: some resources score higher on full nodes, others on empty ones."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from phalanx.errors import ConfigError
from phalanx.model.shape import Shape
from phalanx.placement import NO_LIMIT, Counts, Index, Scores
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import Layer, Site
from phalanx.session.policy import PluginPolicy
from phalanx.session.resource_patterns import setting_for
from phalanx.session.session import Session

MOST, LEAST = "MostAllocated", "LeastAllocated"
POD_TYPE, POD_WEIGHTS = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"
SHORTAGE = "node(s) would keep too little cpu or memory for their free GPUs"

Strategy = tuple[str, int]
"""MostAllocated or LeastAllocated, and a weight."""
Quantities = np.ndarray[Any, np.dtype[np.int64]]
"""Amounts of one resource, by node."""


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
        return self._fit_scores(session, shape, site) + self._scarce.scores(session, shape, site)

    def _fit_scores(self, session: Session, shape: Shape, site: Site) -> Scores:
        """Score how full nodes would be; one that has too little of any resource that counts gets nothing."""
        strategies = _own_strategies(shape) or self.strategies
        ledger, request = session.ledger, session.request_of(shape)
        total, weights = np.zeros(len(ledger.pods[site.nodes])), 0
        overflows = np.zeros(len(total), dtype=np.bool_)
        for row, amount in request.rows:
            strategy = setting_for(session.snapshot.space.names[row], strategies)
            if strategy is None:
                continue
            capacity = ledger.allocatable[row, site.nodes]
            wanted = ledger.used[row, site.nodes] + amount * site.extra + amount
            overflows |= (capacity > 0) & (wanted > capacity)
            total = total + _score(strategy[0], capacity, wanted) * strategy[1]
            weights += strategy[1]
        return np.where(overflows, 0.0, total / max(weights, 1) * (100.0 * self.weight))

    def screen(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Keep tasks without GPUs from using up the cpu and memory that free GPUs will need."""
        return self._proportional.layers(session, shape, nodes)

    def node_room(self, session: Session, shape: Shape, nodes: Index | slice) -> Counts:
        """Return how many tasks leave enough cpu and memory beside free GPUs."""
        return self._proportional.room(session, shape, nodes)


def _own_strategies(shape: Shape) -> dict[str, Strategy] | None:
    """Return the strategies that the annotations of a pod name; None when they name none, or cannot be read."""
    kind, weights = shape.annotations.get(POD_TYPE), shape.annotations.get(POD_WEIGHTS)
    if kind is None or weights is None:
        return None
    kind = kind if kind in (MOST, LEAST) else LEAST
    try:
        return {name: (kind, weight) for name, weight in msgspec.json.decode(weights, type=dict[str, int]).items()}
    except msgspec.MsgspecError:
        return None


def _score(kind: str, capacity: Quantities, wanted: Quantities) -> Scores:
    """Return the part of the capacity that is wanted, or the part that is left; nothing where there is no capacity."""
    present = capacity > 0
    part = wanted if kind == MOST else capacity - wanted
    return np.where(present, part.astype(np.float64) / np.where(present, capacity, 1), 0.0)


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
    """For each free GPU keep so many cores and so many gigabytes (10^9 bytes) of memory free, one of each by default."""

    def __init__(self, value: Any) -> None:
        entry = _section("proportional", value)
        self._is_on = _is_on(entry)
        ratios = _section("proportional.resourceProportion", entry.get("resourceProportion"))
        where = "proportional.resourceProportion"
        self._ratios = {
            name: tuple(_number(f"{where}.{name}.{part}", ratios.get(f"{name}.{part}", 1)) for part in ("cpu", "memory"))
            for name in _names(entry)
        }

    def layers(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse nodes for good: as in Volcano, room that pods are about to free does not count."""
        if not self._applies(shape):
            return []
        spare, request = self._spare(session, nodes), session.request_of(shape).amounts
        return [Layer((spare[0] < request[0]) | (spare[1] < request[1]), SHORTAGE, is_final=True)]

    def room(self, session: Session, shape: Shape, nodes: Index | slice) -> Counts:
        """Return how many tasks each node can take without touching what is kept free."""
        spare = self._spare(session, nodes) if self._applies(shape) else np.full((2, len(session.ledger.pods[nodes])), np.inf)
        request = session.request_of(shape).amounts[:2]
        room = np.full(spare.shape[1], NO_LIMIT, dtype=np.int64)
        for row in np.flatnonzero(request):
            tasks = np.floor(np.maximum(spare[row], 0.0) / request[row])
            room = np.minimum(room, np.minimum(tasks, NO_LIMIT).astype(np.int64))
        return room

    def _applies(self, shape: Shape) -> bool:
        return self._is_on and not any(shape.request.get(name) for name in self._ratios)

    def _spare(self, session: Session, nodes: Index | slice) -> Scores:
        """Return what each node has of cpu and memory beyond what is kept; without bound where there are no GPUs."""
        ledger = session.ledger
        spare = np.full((2, len(ledger.pods[nodes])), np.inf)
        for name, (cpu, memory) in self._ratios.items():
            row = session.snapshot.space.row_by_name.get(name)
            if row is not None:
                kept = ledger.idle[row, nodes] / 1000 * np.array([[cpu * 1000], [memory * 10**9]])
                left = np.where(ledger.allocatable[row, nodes] > 0, ledger.idle[:2, nodes] - kept, np.inf)
                spare = np.minimum(spare, left)
        return spare
