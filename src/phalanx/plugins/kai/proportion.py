"""Fair shares of a tree of queues; how they are divided is in `kai/fair_shares.py`."""

import numpy as np

from phalanx.kai.amounts import BOUNDLESS, EVERY, UNLIMITED
from phalanx.kai.fair_shares import FairShares
from phalanx.kai.shares import QueueShare
from phalanx.model.queue import Queue
from phalanx.model.resources import CPU, GPU, MEMORY, ResourceSpace, scale_of
from phalanx.placement import Vector
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation


class KaiProportionPlugin:
    """Keeps what queues have and may have; answers who is next and what is too much."""

    name = "proportion"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings."""
        settings = Arguments(self.name, policy.arguments)
        self._k_value = settings.at_least("kValue", 1.0, 0.0)
        self._multiplier = settings.at_least("relcaimerSaturationMultiplier", 1.0, 1.0)
        settings.done()

    def open(self, session: Session) -> None:
        """Divide the cluster, and leave the shares for the actions."""
        self._shares = FairShares(session, k_value=self._k_value, multiplier=self._multiplier)
        session.write_state(self._shares)
        session.decisions.queues |= self._shares.figures()

    def queue_limits(self, session: Session, queue: Queue) -> dict[str, Vector]:
        """Return what the limits of the queue and of those above it leave; quotas bound only jobs that cannot be preempted."""
        leaf = self._shares.tree.leaf(queue.name)
        limited = [] if leaf is None else [each for each in leaf.lineage() if each.limit != BOUNDLESS]
        return {each.name: _left(each, session.snapshot.space) for each in limited}

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Follow what queues hold."""
        self._shares.follow(operation, undone)


def _left(queue: QueueShare, space: ResourceSpace) -> Vector:
    """Return what a limit leaves, whole GPUs among it; without bound where it has none."""
    left = np.full(len(space), np.inf)
    for resource, name in zip(EVERY, (CPU, MEMORY, GPU), strict=True):
        row = space.row_by_name.get(name)
        if row is not None and queue.limit[resource] != UNLIMITED:
            left[row] = (queue.limit[resource] - queue.allocated[resource]) * (scale_of(name) if name == GPU else 1)
    return left
