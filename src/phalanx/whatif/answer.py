"""The answer to a question about a gang: what a session decides, with changes if there are any, and what would start it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.explain.tree import Explanation
from phalanx.whatif.difference import GangDifference, difference
from phalanx.whatif.remedy import Findings
from phalanx.whatif.search import Clock, search
from phalanx.whatif.trial_cluster import Change, Trial, TrialCluster


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a session decides for a gang, and what else there is to say about changes."""

    trial: Trial
    explanation: Explanation | None
    """None where the gang is not known."""
    findings: Findings
    """What would start it, if it waits."""
    changes: Sequence[Change] = ()
    others: Sequence[GangDifference] = ()
    """What else the changes change."""
    idle: Sequence[Change] = ()
    """Changes that leave everything as it is."""

    def document(self) -> dict[str, Any]:
        """Return it as plain data, to be added to the explanation of the gang."""
        asked = {
            "if": [change.text for change in self.changes], "ifAlready": [change.text for change in self.idle],
            "others": [found.document() for found in self.others],
        }  # fmt: skip
        return {**(asked if self.changes else {}), "wouldStart": self.findings.document()}


def found_remedies(cluster: TrialCluster, gang: str, trial: Trial, *, clock: Clock, budget_seconds: float) -> Findings:
    """Return what would start a gang; nothing where no time is to be spent on it."""
    return search(cluster, gang, trial, clock=clock, budget_seconds=budget_seconds) if budget_seconds > 0 else Findings((), 0)


def what_if(cluster: TrialCluster, gang: str, changes: Sequence[Change], *, clock: Clock, budget_seconds: float) -> WhatIf:
    """Decide about a gang as if some changes had been made; look as long as allowed for what would start it."""
    before, idle = cluster.decide() if changes else None, cluster.idle_changes(changes)
    with cluster.with_changes(changes):
        trial = cluster.decide(traced=[gang])
        found = trial.explanation(gang)
        findings = found_remedies(cluster, gang, trial, clock=clock, budget_seconds=budget_seconds)
    others = [] if before is None else difference(before, trial, but=gang)
    return WhatIf(trial, found, findings, changes, others, idle)
