"""The rows of the benchmark: how many nodes and pods, in gangs of which size, with which constraints."""

from dataclasses import dataclass
from enum import Enum
from itertools import product


class BenchKind(Enum):
    """What is special about the pods of a row."""

    PLAIN = "plain"
    MIXED = "mixed"
    ANTI_AFFINITY = "anti-affinity"
    ZONE_AFFINITY = "zone-affinity"
    SPREAD_HARD = "spread-hard"
    SPREAD_SOFT = "spread-soft"
    TOPOLOGY_SOFT = "topology-soft"
    TOPOLOGY_HARD = "topology-hard"
    SUBGROUPS = "subgroups"
    STEADY = "steady"
    BARE_PODS = "bare-pods"
    REAL_PODS = "real-pods"


TITLE_BY_KIND = {
    BenchKind.PLAIN: "plain",
    BenchKind.MIXED: "each gang of its own size",
    BenchKind.ANTI_AFFINITY: "anti-affinity on the host name",
    BenchKind.ZONE_AFFINITY: "affinity to one zone",
    BenchKind.SPREAD_HARD: "spread over zones, hard",
    BenchKind.SPREAD_SOFT: "spread over zones, soft",
    BenchKind.TOPOLOGY_SOFT: "three tiers, soft",
    BenchKind.TOPOLOGY_HARD: "three tiers, hard tier 3",
    BenchKind.SUBGROUPS: "sub-groups of 10 (#4899)",
    BenchKind.STEADY: "steady state, one gang arrives",
    BenchKind.BARE_PODS: "bare pods",
    BenchKind.REAL_PODS: "real pods",
}


@dataclass(frozen=True, slots=True)
class BenchScenario:
    """One row. In a steady state `pods` run already and one gang arrives; otherwise all pods wait."""

    kind: BenchKind
    nodes: int
    pods: int
    gang: int

    @property
    def title(self) -> str:
        """What the table calls the row."""
        return f"{TITLE_BY_KIND[self.kind]}, gangs of {self.gang:,}" if self.kind in _IN_GANGS else TITLE_BY_KIND[self.kind]

    @property
    def name(self) -> str:
        """What a message calls the row."""
        return f"{self.title}, {self.nodes:,} nodes, {self.pods:,} pods"

    @property
    def family(self) -> tuple[BenchKind, int]:
        """Rows of one family differ in size only, so that their cost per pod can be compared."""
        return self.kind, self.gang

    @property
    def arriving(self) -> int:
        """How many pods the measured cycle has to place."""
        return self.gang if self.kind is BenchKind.STEADY else self.pods


_IN_GANGS = (
    BenchKind.PLAIN, BenchKind.MIXED, BenchKind.ANTI_AFFINITY, BenchKind.ZONE_AFFINITY, BenchKind.SPREAD_HARD,
    BenchKind.SPREAD_SOFT, BenchKind.BARE_PODS, BenchKind.REAL_PODS,
)  # fmt: skip

_SIZES = ((100, 1_000), (1_000, 10_000), (1_000, 100_000), (10_000, 100_000))
"""Nodes and pods: all ten times as much, then more pods on the same nodes, then more nodes for the same pods."""
_LARGEST = (50_000, 500_000)

_MIXED = tuple(BenchScenario(BenchKind.MIXED, nodes, pods, 100) for nodes, pods in _SIZES)
"""Gangs that differ in labels only may share work; real ones differ in what they ask for too."""
_AFFINITY = tuple(
    BenchScenario(kind, nodes, pods, gang)
    for kind, gang, (nodes, pods) in product(
        (BenchKind.ANTI_AFFINITY, BenchKind.ZONE_AFFINITY, BenchKind.SPREAD_HARD, BenchKind.SPREAD_SOFT),
        (10, 100),
        ((100, 200), (1_000, 2_000)),
    )
)
_TOPOLOGY = (
    BenchScenario(BenchKind.TOPOLOGY_SOFT, 6_000, 1_000, 1_000),
    BenchScenario(BenchKind.TOPOLOGY_HARD, 6_000, 1_000, 1_000),
    BenchScenario(BenchKind.SUBGROUPS, 1_000, 1_000, 1_000),
)
_OBJECTS = tuple(
    BenchScenario(kind, 1_000, pods, gang)
    for pods, gang in ((5_000, 50), (10_000, 1_000))
    for kind in (BenchKind.BARE_PODS, BenchKind.REAL_PODS)
)
"""The same gangs read from objects of an API server, without and with what admission and controllers add to pods."""
_STEADY = tuple(BenchScenario(BenchKind.STEADY, nodes, pods, 8) for nodes, pods in ((400, 14_000), (4_000, 140_000), _LARGEST))
_LARGE_PLAIN = BenchScenario(BenchKind.PLAIN, *_LARGEST, 100)
_LARGE_MIXED = BenchScenario(BenchKind.MIXED, *_LARGEST, 100)


def _plain(*gangs: int) -> tuple[BenchScenario, ...]:
    return tuple(BenchScenario(BenchKind.PLAIN, nodes, pods, gang) for gang, (nodes, pods) in product(gangs, _SIZES))


FULL = (
    *_plain(1, 10, 100),
    _LARGE_PLAIN,
    *_plain(1_000),
    *_MIXED,
    _LARGE_MIXED,
    *_AFFINITY,
    *_TOPOLOGY,
    *_OBJECTS,
    *_STEADY,
)
DEFAULT = (
    *(row for row in _plain(1, 10) if row.pods <= 10_000),
    *_plain(100),
    _LARGE_PLAIN,
    *_plain(1_000),
    *_MIXED,
    *_AFFINITY,
    *_TOPOLOGY,
    *_OBJECTS,
    *_STEADY,
)
"""What fits into three minutes."""
