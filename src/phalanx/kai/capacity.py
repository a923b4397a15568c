"""Whether a queue and all queues above it have room for some tasks.

A limit binds every job. A quota binds only jobs that cannot be preempted: nobody could take back what they hold too much.
Both are asked for the tasks of one attempt before any is placed, and for each task once its node is known.
"""

from typing import Final

from phalanx.kai.amounts import CPU, EVERY, GPU, MEMORY, NAMES, Figures, at_most, plus
from phalanx.kai.shares import QueueShare
from phalanx.state.verdict import YES, Verdict

PLUGIN: Final = "proportion"
OVER_LIMIT: Final = "OverLimit"
NONPREEMPTIBLE_OVER_QUOTA: Final = "NonPreemptibleOverQuota"

_SCALE = {CPU: 1e3, MEMORY: 1e9, GPU: 1.0}
UNIT = {CPU: "cores", MEMORY: "GB", GPU: "GPUs"}
_LIMITED = {CPU: "CPU cores", MEMORY: "memory", GPU: "GPUs"}
_REQUESTED = {CPU: "CPU cores", MEMORY: "GB memory", GPU: "GPUs"}


def capacity_verdict(leaf: QueueShare, requested: Figures, *, is_preemptible: bool) -> Verdict:
    """Say whether the tasks fit into their queue and all above it: first the limits, then the quotas."""
    verdict = limit_verdict(leaf, requested)
    if not verdict.ok or is_preemptible:
        return verdict
    return quota_verdict(leaf, requested)


def limit_verdict(leaf: QueueShare, requested: Figures) -> Verdict:
    """Say whether a limit forbids the tasks."""
    for queue in leaf.lineage():
        resource = _exceeded(queue.allocated, requested, queue.limit)
        if resource is not None:
            return _over_limit(queue, resource, requested[resource])
    return YES


def quota_verdict(leaf: QueueShare, requested: Figures) -> Verdict:
    """Say whether a quota forbids tasks that cannot be preempted."""
    for queue in leaf.lineage():
        resource = _exceeded(queue.allocated_nonpreemptible, requested, queue.deserved)
        if resource is not None:
            return _over_quota(queue, resource, requested[resource])
    return YES


def _exceeded(held: Figures, requested: Figures, bounds: Figures) -> int | None:
    """Return the first resource that is asked for and would exceed its bound."""
    after = plus(held, requested)
    return next(
        (resource for resource in EVERY if requested[resource] > 0 and not at_most(after[resource], bounds[resource])), None
    )


def _over_limit(queue: QueueShare, resource: int, requested: float) -> Verdict:
    limit, held = queue.limit[resource], queue.allocated[resource]
    unit = UNIT[resource]
    message = (
        f"{queue.title} quota has reached the allowable limit of {_LIMITED[resource]}. "
        f"Limit is {readable(limit, resource)} {unit}, currently {readable(held, resource)} {unit} allocated "
        f"and workload requested {readable(requested, resource)} {unit}"
    )
    figures = {"limit": limit, "allocated": held, "requested": requested}
    return Verdict.refuse(PLUGIN, OVER_LIMIT, message, queue=queue.name, resource=NAMES[resource], **figures)


def _over_quota(queue: QueueShare, resource: int, requested: float) -> Verdict:
    quota, held = queue.deserved[resource], queue.allocated_nonpreemptible[resource]
    unit = UNIT[resource]
    message = (
        f"Non-preemptible workload is over quota. Workload requested {readable(requested, resource)} {_REQUESTED[resource]}, "
        f"but {queue.title} quota is {readable(quota, resource)} {unit}, while {readable(held, resource)} {unit} are already "
        "allocated for non-preemptible pods. Use a preemptible workload to go over quota."
    )
    figures = {"quota": quota, "allocated": held, "requested": requested}
    return Verdict.refuse(PLUGIN, NONPREEMPTIBLE_OVER_QUOTA, message, queue=queue.name, resource=NAMES[resource], **figures)


def readable(amount: float, resource: int) -> str:
    """Write at most three decimals, cut off and not rounded: 1500 thousandths of a core are 1.5."""
    return f"{amount / _SCALE[resource]:.6f}"[:-3].rstrip("0").rstrip(".")
