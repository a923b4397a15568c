"""Admit more gangs than fit right now, but not without bound.

The minimum resources of all admitted gangs together stay under a multiple of the cluster.
"""

import numpy as np

from phalanx.model.task_status import HOLDING
from phalanx.placement import Vector
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import PERMITTED, Vote

DEFAULT_FACTOR = 1.2


class OvercommitPlugin:
    """Votes on admission."""

    name = "overcommit"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the factor; less than 1 means the default."""
        settings = Arguments(self.name, policy.arguments)
        factor = settings.number("overcommit-factor", DEFAULT_FACTOR)
        self.factor = factor if factor >= 1.0 else DEFAULT_FACTOR
        settings.done()
        self._idle: Vector = np.zeros(0)
        self._inqueue: Vector = np.zeros(0)

    def open(self, session: Session) -> None:
        """Sum up what there is, and what admitted gangs have yet to take."""
        total = session.ledger.allocatable.sum(axis=1, dtype=np.float64)
        self._idle = total * self.factor - session.ledger.used.sum(axis=1, dtype=np.float64)
        self._inqueue = np.zeros(len(session.snapshot.space))
        for gang in session.gangs.values():
            self._inqueue += self._yet_to_take(session, gang)

    def _yet_to_take(self, session: Session, gang: GangState) -> Vector:
        if gang.gang.min_resources is None:
            return np.zeros(len(session.snapshot.space))
        if gang.phase == "Inqueue":
            return minimum_without_gated(session, gang)
        if gang.phase == "Running" and gang.tally.total(HOLDING) >= gang.gang.min_member:
            held = sum(
                (session.vector(task.task.shape.request) for task in gang.tasks if task.status in HOLDING),
                np.zeros(len(self._idle)),
            )
            return np.maximum(minimum_without_gated(session, gang) - held, 0.0)
        return np.zeros(len(session.snapshot.space))

    def gang_enqueueable(self, session: Session, gang: GangState) -> Vote:
        """Vote against a gang whose minimum does not fit into what is left."""
        minimum = session.minimum_of(gang)
        wanted = minimum.amounts
        short = minimum.rows & (self._inqueue + wanted > self._idle)
        if not np.count_nonzero(short):
            return PERMITTED
        rows = np.flatnonzero(short).tolist()
        names = [session.snapshot.space.names[row] for row in rows]
        message = f"resource in cluster is overused: {', '.join(f'overused {name}' for name in names)}"
        first = {"limit": float(self._idle[rows[0]]), "taken": float(self._inqueue[rows[0]]), "wanted": float(wanted[rows[0]])}
        words = {"factor": str(self.factor), "resources": ", ".join(names), "resource": names[0]}
        return Vote.reject(self.name, "ClusterOverused", message, **words, **first)

    def gang_enqueued(self, session: Session, gang: GangState) -> None:
        """Count an admitted gang."""
        self._inqueue = self._inqueue + minimum_without_gated(session, gang)


def minimum_without_gated(session: Session, gang: GangState) -> Vector:
    """Return a gang's minimum resources less what its gated tasks ask for."""
    minimum = session.minimum_of(gang).amounts
    for task in gang.tasks:
        if task.task.is_gated:
            minimum = minimum - session.vector(task.task.shape.request)
    return np.maximum(minimum, 0.0)
