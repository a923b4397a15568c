"""The node pools that a simulated autoscaler grows and shrinks, as a scenario describes them.

The words are those of Cluster Autoscaler, which calls a pool a node group; so are the defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from phalanx.kubernetes.spread import HOSTNAME
from phalanx.model.kinds import Document
from phalanx.model.resources import Resources, read_resources
from phalanx.sim.spans import Span

PODS_PER_NODE = "110"
TWO_MINUTES = Span(120.0, 120.0)


@dataclass(frozen=True)
class NodeTemplate:
    """What every node of a pool looks like."""

    allocatable: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()

    @cached_property
    def amounts(self) -> Resources:
        """What a node offers, as whole numbers."""
        return read_resources(self._offers, where="allocatable")

    @property
    def _offers(self) -> dict[str, str]:
        return {"pods": PODS_PER_NODE, **self.allocatable}

    def node(self, name: str) -> Document:
        """Return a node of this name that is ready."""
        meta = {"name": name, "labels": {HOSTNAME: name, **self.labels}, "annotations": dict(self.annotations)}
        status = {"capacity": self._offers, "allocatable": self._offers, "conditions": [{"type": "Ready", "status": "True"}]}
        spec = {"taints": [dict(taint) for taint in self.taints]} if self.taints else {}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


@dataclass(frozen=True, slots=True)
class Stockout:
    """A time in which the provider has no more than so many nodes for a pool; seconds from the start."""

    nodes: int
    at: float = 0.0
    until: float = inf


@dataclass(frozen=True, slots=True)
class NodePool:
    """Nodes that are alike, and how many of them there may be."""

    name: str
    template: NodeTemplate
    max: int
    min: int = 0
    """So many are there from the beginning, and stay."""
    delay: Span = TWO_MINUTES
    """From the request to the node that is ready, drawn for each."""
    failure_rate: float = 0.0
    """How many of the nodes asked for never come, as a fraction; drawn for each."""
    stockouts: tuple[Stockout, ...] = ()

    def stock(self, moment: float) -> float:
        """Return how many nodes the provider has for the pool, so many seconds after the start."""
        return min((item.nodes for item in self.stockouts if item.at <= moment < item.until), default=inf)

    def may_have(self, node: str) -> bool:
        """Tell whether a node of the pool may have this name."""
        stem, _, number = node.rpartition("-")
        is_number = number.isascii() and number.isdigit() and len(number) <= len(str(self.max))
        return stem == self.name and is_number and 1 <= int(number) <= self.max


@dataclass(frozen=True, slots=True)
class AutoscalerSettings:
    """How a simulated autoscaler works."""

    pools: tuple[NodePool, ...]
    scan_interval: float = 10.0
    unneeded_time: float = 600.0
    """For how long a node must be without pods before it is removed."""
    delay_after_add: float = 600.0
    """After a scale-up no node is removed for so long."""
    backoff: float = 300.0
    """After nodes that did not come a pool is left alone for so long; twice as long after each further time."""
    max_backoff: float = 1800.0
    is_atomic: bool = False
    """A gang gets all nodes that it needs from one pool, or none."""
    keeps_for_pending: bool = False
    """A node on which a pod that waits would fit is not removed."""
