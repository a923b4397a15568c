"""Volume claims for one pod: with the access mode ReadWriteOncePod nobody else in the cluster may use a claim, on whatever node."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from phalanx.kubernetes.attached_volumes import claims_of
from phalanx.model.shape import Shape
from phalanx.model.storage import VolumeClaim
from phalanx.placement import Index
from phalanx.session.node_answers import Layer
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.snapshot import Surroundings

IN_USE = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"


class OncePodClaims:
    """How many pods use each claim that is for one pod, terminating pods included."""

    def __init__(self, session: Session) -> None:
        """Read the claims of every pod on a node; nothing is counted where no claim has the access mode."""
        self._world, self._size = session.snapshot.surroundings, len(session.snapshot.nodes)
        self._users: Counter[str] = Counter()
        self._is_used = any(claim.is_for_one_pod for claim in self._world.volume_claims.values())
        for tasks in session.snapshot.on_node.values() if self._is_used else ():
            for task in tasks.values():
                self._enter(task.shape, 1)

    def _enter(self, shape: Shape, tasks: int) -> None:
        for claim in once_pod_claims(shape, self._world):
            self._users[claim.key] += tasks

    def changed(self, operation: Operation, undone: bool) -> None:
        """Follow an operation."""
        sign = -1 if (operation.kind is OperationKind.EVICT) != undone else 1
        if self._is_used:
            self._enter(operation.shape, sign * len(operation.tasks))

    def layers(self, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse all nodes while another pod uses a claim of the shape; when it is evicted, they take the task."""
        if not self._is_used or not any(self._users[claim.key] > 0 for claim in once_pod_claims(shape, self._world)):
            return []
        return [Layer(np.ones(self._size, dtype=np.bool_)[nodes], IN_USE)]


def once_pod_claims(shape: Shape, world: Surroundings) -> Iterator[VolumeClaim]:
    """Yield the claims of a shape that only one pod may use."""
    return (claim for claim in claims_of(shape, world) if claim.is_for_one_pod) if shape.volume_claims else iter(())
