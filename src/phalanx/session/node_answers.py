"""What plugins answer about nodes, many of them at once: filters, and scores with the places that they are for."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from phalanx.placement import Counts, Index, Mask


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
    """How many more of them Kubernetes' own scores count: in their book pipelined tasks are there at once."""


@dataclass(frozen=True, slots=True)
class Term:
    """One score. Either the same for any set of candidates (`values`), or made relative to them (`among`)."""

    weight: int = 1
    values: Counts | None = None
    among: Callable[[Index], Counts] | None = None
    is_static: bool = True
    """For a relative term: it does not change when a node takes a task of the class."""


class Moved(IntEnum):
    """What one more place of a run does to the refusals of a filter."""

    NOTHING = 0
    CLOSES = 1
    """Nodes are refused that were not."""
    OPENS = 2
    """Nodes may be open again that were refused."""


class CoupledFilter(Protocol):
    """Which nodes terms about other pods refuse to a class of tasks, now and as a run of the class is placed.

    The books learn of a run only when it is whole. Until then each place is told with `take`, so an answer is good for one run.
    """

    refused: Mask
    """The nodes that they refuse now."""
    room: Counts | int
    """How many tasks of the class they let onto each node at most."""
    is_steady: bool
    """A place for the class refuses no node but, by `room`, the one that took it. All its refusals keep their reasons then."""

    only_closes: bool
    """A node that is refused after some places stays so after more of them."""

    def take(self, node: int) -> Moved:
        """Follow one task of the class onto a node; tell whether other nodes may be refused now than before."""
        ...


class CoupledScore(Protocol):
    """How terms about other pods score nodes for a class of tasks, now and as a run of the class is placed."""

    term: Term
    """The score now."""
    is_steady: bool
    """A place for the class does not change it."""

    def take(self, node: int) -> None:
        """Follow one task of the class onto a node."""
        ...
