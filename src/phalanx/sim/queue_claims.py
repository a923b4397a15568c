"""What the queues of a simulated cluster may claim, from their objects: weights, and quotas of the resource that is counted."""

from collections.abc import Mapping

from phalanx.model.queue import Queue
from phalanx.model.resources import CPU, GPU, MEMORY, scale_of
from phalanx.sim.fairness import QueueClaim
from phalanx.sim.world import World

BOUNDED = (CPU, MEMORY, GPU)
"""The order of KAI's numbers of a queue."""


def queue_claims(world: World, weight_by_queue: Mapping[str, float] | None = None) -> dict[str, QueueClaim]:
    """Return the claim of every queue that has gangs; other weights than those of the objects count where they are given."""
    names = {record.queue for record in world.recorder.gangs.values()}
    found = {name: world.cluster.state.queue(name) for name in names}
    claims = {name: _claim(queue, world.recorder.resource) for name, queue in found.items() if queue is not None}
    if weight_by_queue is None:
        return claims
    return {name: QueueClaim(weight_by_queue.get(name, claim.weight), claim.quota) for name, claim in claims.items()}


def _claim(queue: Queue, resource: str) -> QueueClaim:
    if queue.bounds is None:
        return QueueClaim(float(queue.weight), queue.deserved.get(resource, 0) / scale_of(resource))
    place = BOUNDED.index(resource) if resource in BOUNDED else len(BOUNDED) - 1
    quota = queue.bounds.quota[place] / (scale_of(CPU) if resource == CPU else 1)
    return QueueClaim(queue.bounds.weight[place], max(quota, 0.0))
