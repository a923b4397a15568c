"""Answers with reasons.

Every refusal carries the plugin, a reason code and numbers; `explain` reads them and recomputes nothing.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from phalanx.placement import Mask

Number = int | float | str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes, or no with the reason."""

    ok: bool
    plugin: str = ""
    reason: str = ""
    message: str = ""
    numbers: Mapping[str, Number] = field(default_factory=dict)

    @classmethod
    def refuse(cls, plugin: str, reason: str, message: str = "", **numbers: Number) -> "Verdict":
        """Say no, and why."""
        return cls(False, plugin, reason, message, numbers)


YES = Verdict(True)

PERMIT, ABSTAIN, REJECT = 1, 0, -1

_INSUFFICIENT = "Insufficient "


def insufficient(resource: str) -> str:
    """Return the reason of nodes that have too little left of a resource."""
    return _INSUFFICIENT + resource


def lacked_resource(reason: str) -> str:
    """Return the resource of which nodes have too little left; empty for every other reason."""
    return reason.removeprefix(_INSUFFICIENT) if reason.startswith(_INSUFFICIENT) else ""


@dataclass(frozen=True, slots=True)
class Vote:
    """A voice for, none, or against, with the reason."""

    value: int
    verdict: Verdict = YES

    @classmethod
    def reject(cls, plugin: str, reason: str, message: str = "", **numbers: Number) -> "Vote":
        """Vote against."""
        return cls(REJECT, Verdict.refuse(plugin, reason, message, **numbers))


PERMITTED, ABSTAINED = Vote(PERMIT), Vote(ABSTAIN)


@dataclass(frozen=True, slots=True)
class Room:
    """How many more tasks fit, and what stops the next one."""

    tasks: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Where nodes were looked for: in a HyperNode, or among the nodes with one value of a label; by default everywhere."""

    hypernode: str = ""
    label: str = ""
    value: str = ""

    @property
    def prefix(self) -> str:
        """The beginning of the sentence of a FitError, as Volcano writes it."""
        if self.hypernode:
            return f"In hyperNode {self.hypernode}: "
        return f"With {self.label}={self.value}: " if self.label else ""


WHOLE_CLUSTER = SearchScope()


@dataclass(frozen=True, slots=True)
class FitError:
    """Why no node took a task: how many nodes gave which reason."""

    nodes: int
    counts: Mapping[str, int]
    scope: SearchScope = WHOLE_CLUSTER
    final: Mask | None = None
    """Nodes that no eviction can make fit; None when unknown."""
    verdict: Verdict | None = None
    """The prefilter that refused the task, before any node was looked at; None when the nodes refused it."""
    refused: Mapping[str, Mask] = field(default_factory=dict, compare=False, repr=False)
    """Which nodes gave which reason; empty when unknown."""

    @property
    def text(self) -> str:
        """The sentence users know: ``0/3 nodes are unavailable: 2 Insufficient cpu, 1 ...``."""
        return f"{self.scope.prefix}0/{self.nodes} nodes are unavailable: {self.reasons}."

    @property
    def reasons(self) -> str:
        """How many nodes gave which reason: ``2 Insufficient cpu, 1 node(s) were unschedulable``."""
        return ", ".join(sorted(f"{count} {reason}" for reason, count in self.counts.items()))

    @classmethod
    def same_everywhere(cls, nodes: int, verdict: Verdict) -> "FitError":
        """Give the reason of a prefilter for every node."""
        return cls(nodes, Counter({verdict.message: nodes}), verdict=verdict)


def joined(first: Mapping[str, Mask], second: Mapping[str, Mask]) -> dict[str, Mask]:
    """Return which nodes gave which reason to two tasks that look for places together."""
    both = {reason: first[reason] | second[reason] for reason in first.keys() & second.keys()}
    return {**first, **second, **both}
