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
class FitError:
    """Why no node took a task: how many nodes gave which reason."""

    nodes: int
    counts: Mapping[str, int]
    prefix: str = ""
    final: Mask | None = None
    """Nodes that no eviction can make fit; None when unknown."""

    @property
    def text(self) -> str:
        """The sentence users know: ``0/3 nodes are unavailable: 2 Insufficient cpu, 1 ...``."""
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in self.counts.items()))
        return f"{self.prefix}0/{self.nodes} nodes are unavailable: {reasons}."

    @classmethod
    def same_everywhere(cls, nodes: int, reason: str) -> "FitError":
        """Give one reason for every node."""
        return cls(nodes, Counter({reason: nodes}))
