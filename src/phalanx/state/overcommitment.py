"""Nodes that hold more than they offer, and which gangs came last to them.

A scheduler never decides that. It happens when two decide at once: the API server binds whatever it is asked to, and cannot tell a
leader from one that was stopped by the machine while its requests were on the wire. Whoever leads now is the first who can see it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phalanx.model.task import Task
from phalanx.placement import Amounts, Index
from phalanx.placement.ledger import Ledger
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import Verdict

ROLLED_BACK = "RolledBack"


def over_committed(ledger: Ledger) -> Index:
    """Return the numbers of nodes that hold more than they offer once those who leave have left."""
    return np.flatnonzero(excess(ledger).any(axis=0))


def excess(ledger: Ledger) -> Amounts:
    """Return by how much pods that stay exceed what nodes offer; 0 where they do not."""
    found: Amounts = np.maximum(ledger.used - ledger.releasing - ledger.allocatable, 0)
    return found


def has_over_committed(snapshot: Snapshot) -> bool:
    """Tell whether some node holds more than it offers, once those who leave have left."""
    return bool((snapshot.used - snapshot.releasing > snapshot.nodes.allocatable).any())


def bound_at(task: Task) -> float:
    """Return when a task was given its node, as far as its pod tells."""
    return task.scheduled or task.started or task.created


@dataclass(frozen=True, slots=True)
class Arrival:
    """A gang on a node: its pods there that may go, the latest first."""

    gang: GangState
    pods: Sequence[TaskState]

    @property
    def moment(self) -> float:
        """When the last of them was bound."""
        return bound_at(self.pods[0].task)

    def turn(self) -> tuple[float, int, float, str]:
        """Order gangs by who came last; of those of the same second the less important one, then the younger one."""
        return self.moment, -self.gang.gang.priority, self.gang.gang.created, self.gang.key


def arrivals(pods: Sequence[TaskState]) -> list[Arrival]:
    """Return the gangs that have these pods on a node, the one that came last first."""
    by_gang: dict[str, list[TaskState]] = {}
    for pod in sorted(pods, key=lambda pod: (bound_at(pod.task), pod.task.key), reverse=True):
        by_gang.setdefault(pod.gang.key, []).append(pod)
    return sorted((Arrival(found[0].gang, found) for found in by_gang.values()), key=Arrival.turn, reverse=True)


def rolled_back_verdict(gang: GangState) -> Verdict | None:
    """Return what the session says about a gang that came to a node without room for it; None when it did not."""
    return next((verdict for verdict in gang.verdicts if verdict.reason == ROLLED_BACK), None)
