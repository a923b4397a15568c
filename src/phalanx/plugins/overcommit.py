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
        self._idle: list[float] = []
        self._inqueue: list[float] = []

    def open(self, session: Session) -> None:
        """Sum up what there is, and what admitted gangs have yet to take."""
        total = session.ledger.allocatable.sum(axis=1, dtype=np.float64)
        self._idle = (total * self.factor - session.ledger.used.sum(axis=1, dtype=np.float64)).tolist()
        admitted = (gang for gang in session.gangs.values() if gang.phase in ("Inqueue", "Running"))
        self._inqueue = sum((self._yet_to_take(session, gang) for gang in admitted), np.zeros(len(total))).tolist()

    def _yet_to_take(self, session: Session, gang: GangState) -> Vector:
        minimum = session.minimum_to_admit(gang).amounts
        if gang.phase == "Inqueue":
            return np.maximum(minimum, 0.0)
        held: Vector = np.zeros(len(minimum))
        if gang.tally.total(HOLDING) < gang.gang.min_member:
            return held
        for task in gang.tasks:
            if task.status in HOLDING:
                held += session.vector(task.task.shape.request)
        return np.maximum(minimum - held, 0.0)

    def gang_enqueueable(self, session: Session, gang: GangState) -> Vote:
        """Vote against a gang whose minimum does not fit into what is left."""
        minimum = session.minimum_of(gang)
        rows = minimum.short(self._idle, self._inqueue)
        if not rows:
            return PERMITTED
        names = [session.snapshot.space.names[row] for row in rows]
        message = f"resource in cluster is overused: {', '.join(f'overused {name}' for name in names)}"
        limit, taken, wanted = self._idle[rows[0]], self._inqueue[rows[0]], float(minimum.amounts[rows[0]])
        first = {"limit": limit, "taken": taken, "wanted": wanted}
        words = {"factor": str(self.factor), "resources": ", ".join(names), "resource": names[0]}
        return Vote.reject(self.name, "ClusterOverused", message, **words, **first)

    def gang_enqueued(self, session: Session, gang: GangState) -> None:
        """Count an admitted gang."""
        for row, amount in session.minimum_to_admit(gang).parts:
            self._inqueue[row] += amount
