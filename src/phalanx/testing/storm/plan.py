"""What happens in a storm, drawn from its seed: who submits what, and which incident comes when.

A plan is a list, so that a failing storm can be played again with fewer incidents, until none can be left out.
"""

from dataclasses import dataclass, replace
from random import Random

from phalanx.testing.storm.orders import BARE, DIALECTS, VOLCANO, VOLCANO_JOB, Order
from phalanx.testing.storm.wire import OF_WATCHES, Fault

STORM_SECONDS = 70.0
CLASSES = {"low": 10, "normal": 100, "high": 1000}
QUEUES = ("default", "default", "wide", "capped")
CAPPED_GPUS = 4
GROUPS = ("scheduling.volcano.sh", "scheduling.x-k8s.io", "scheduling.run.ai")
ON_REPLICAS = ("kill", "freeze", "stop", "clock", "crash at write", "strand", "cut off", "deaf heir", "blind heir", "look away")
ON_NODES = ("die", "drain", "cordon", "taint", "delete node", "rename node", "refuse binds")
ON_WORKLOADS = ("scale", "suspend", "fail", "delete pods", "delete object", "remove", "evict by hand", "priority")
ON_CLUSTER = ("hide group", "lose status", "take lease", "edit queue", "reload", "compact", "restore")

RESTARTING, SLOW, GATED, CLAIMING, AFTER_ADMISSION = 0.3, 0.2, 0.15, 0.1, 0.3
"""The shares of gangs whose owner makes them anew as a whole, one pod after the other, behind gates, with volumes, or only once
their group is admitted."""
ENDING_APART = 0.4
LATENCIES, LAGS = (0.002, 0.02, 0.2), (0.0, 0.05, 0.5)
LASTING = {"refuse binds": 2.0}
"""Incidents that last so many times longer than others."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happens at a moment, and may last."""

    at: float
    name: str
    """What happens; the name of a `Fault` in lower case is one on the wires."""
    target: int = 0
    """Which replica, node or workload: its number, modulo how many there are."""
    seconds: float = 0.0
    amount: float = 0.0

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{self.at:6.1f} s  {self.name:<16} target {self.target}, for {self.seconds:.1f} s, amount {self.amount:.2f}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A storm."""

    seed: int
    replicas: int
    nodes: int
    orders: tuple[Order, ...]
    incidents: tuple[Incident, ...]
    profile: str = "phalanx"
    latency: float = 0.002
    """Seconds that a request takes each way."""
    lag: float = 0.0
    """Seconds by which watches are behind, at most."""
    admits_all: bool = False
    """Kubelets let pods start that do not fit, as some do for devices."""

    def only(self, kept: frozenset[int]) -> "Plan":
        """Return the same storm with some of its incidents."""
        return replace(self, incidents=tuple(item for number, item in enumerate(self.incidents) if number in kept))


def plan_of(seed: int, *, seconds: float = STORM_SECONDS) -> Plan:
    """Draw a storm."""
    chance = Random(f"storm {seed}")
    nodes = chance.randint(2, 5)
    orders = [_order(chance, number, nodes, seconds) for number in range(chance.randint(3, 9))]
    orders += [_late_order(chance, len(orders) + number, nodes, seconds) for number in range(chance.randint(0, 3))]
    orders = [_with_end(seed, _with_manners(chance, order)) for order in orders]
    incidents = sorted((_incident(chance, seconds) for _ in range(chance.randint(3, 14))), key=lambda item: item.at)
    latency, lag = chance.choice(LATENCIES), chance.choice(LAGS)
    return Plan(seed, chance.randint(1, 3), nodes, tuple(orders), tuple(incidents), latency=latency, lag=lag)


def _order(chance: Random, number: int, nodes: int, seconds: float) -> Order:
    dialect = chance.choice(DIALECTS)
    size = 1 if dialect == BARE else chance.choice((1, 2, 2, 3, 4, nodes, nodes + 1, 2 * nodes))
    return Order(
        name=f"{dialect}-{number}", dialect=dialect, size=size, gpus=chance.choice((1, 1, 2, 4)),
        priority=chance.choice(tuple(CLASSES)), queue=chance.choice(QUEUES), seconds=chance.uniform(3.0, 40.0),
        at=round(chance.uniform(0.0, 0.8 * seconds), 1),
    )  # fmt: skip


def _with_manners(chance: Random, order: Order) -> Order:
    gated = round(chance.uniform(0.5, 15.0), 1) if chance.random() < GATED else 0.0
    return replace(
        order, restarts_whole=chance.random() < RESTARTING, one_by_one=chance.random() < SLOW, gated=gated,
        has_claims=chance.random() < CLAIMING and order.dialect != VOLCANO_JOB,
        after_admission=chance.random() < AFTER_ADMISSION and order.dialect == VOLCANO,
    )  # fmt: skip


def _with_end(seed: int, order: Order) -> Order:
    """Draw how it ends by a chance of its own: all else is what it was before this was drawn."""
    return replace(order, ends_apart=order.size > 1 and Random(f"end of {order.name} in storm {seed}").random() < ENDING_APART)


def _late_order(chance: Random, number: int, nodes: int, seconds: float) -> Order:
    """Return one that comes in calm weather: nothing excuses what happens to it, or for it."""
    at = round(chance.uniform(1.1, 1.8) * seconds, 1)
    return replace(_order(chance, number, nodes, seconds), at=at, priority=chance.choice(("high", "high", "normal", "low")))


def _incident(chance: Random, seconds: float) -> Incident:
    kinds = (tuple(fault.name.lower() for fault in Fault), ON_REPLICAS, ON_NODES, ON_WORKLOADS, ON_CLUSTER)
    name = chance.choice(chance.choices(kinds, weights=(5, 3, 2, 4, 1))[0])
    ends_watches = name.upper() in {fault.name for fault in OF_WATCHES - {Fault.REPEATED}}
    amount = chance.choice((0.02, 0.1, 0.3)) if ends_watches else chance.choice((0.05, 0.3, 0.7, 1.0))
    longer = LASTING.get(name, 1.0)
    return Incident(
        at=round(chance.uniform(1.0, 0.9 * seconds), 2), name=name, target=chance.randrange(100),
        seconds=round(chance.choice((0.5, 3.0, 12.0, 30.0)) * chance.uniform(0.5, 1.5) * longer, 2), amount=amount,
    )  # fmt: skip
