"""Whether a job may take room back from other queues, and from whom.

The gate asks whether the reclaimer would stay within its own fair share. The validator looks at a set of victims: each
queue that loses something must have had more than it can count on, or more than its quota when the reclaimer stays within
its own; afterwards the reclaimer's side may not be better off than a side it took from. Two queues are compared where their
lines part, just below their lowest common ancestor. A unit that is released is judged by what its queue holds *before* it
goes, so a queue may end below its share by one gang.

Judged is the state in which the search began (`QueueAllocations`), never the one it simulates: there the victims are evicted and
partly placed again, so a queue would be judged by the very losses that are in question.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from phalanx.kai.amounts import EVERY, NAMES, UNLIMITED, ZERO, Figures, at_most, minus, plus, within
from phalanx.kai.capacity import NONPREEMPTIBLE_OVER_QUOTA, PLUGIN, UNIT, readable
from phalanx.kai.shares import QueueAllocations, QueueShare, allocatable
from phalanx.state.verdict import YES, Verdict

OVER_FAIR_SHARE: Final = "OverFairShare"
VICTIM_WITHIN_SHARE: Final = "VictimWithinShare"
BETTER_OFF_THAN_VICTIM: Final = "BetterOffThanVictim"

Released = Mapping[QueueShare, Sequence[Figures]]
"""Per leaf queue what its victims release, in the order in which they go: every elastic task alone, the core of a gang as one."""


@dataclass(frozen=True, slots=True)
class Reclaimer:
    """The job that wants room: its queue and the tasks of its next attempt."""

    leaf: QueueShare
    chunk: Figures
    is_preemptible: bool = True


def gate_verdict(reclaimer: Reclaimer) -> Verdict:
    """Refuse a job that may not look for victims at all, because its queue would exceed its fair share or quota."""
    leaf, after = reclaimer.leaf, plus(reclaimer.leaf.allocated, reclaimer.chunk)
    if not within(after, leaf.fair_share):
        over = next(resource for resource in EVERY if not at_most(after[resource], leaf.fair_share[resource]))
        message = f"queue {leaf.title} would use more than its fair share"
        numbers = {"allocated": leaf.allocated[over], "fair_share": leaf.fair_share[over], "requested": reclaimer.chunk[over]}
        return Verdict.refuse(PLUGIN, OVER_FAIR_SHARE, message, queue=leaf.name, resource=NAMES[over], **numbers)
    return _nonpreemptible_verdict(leaf, leaf.allocated_nonpreemptible, reclaimer)


def victims_verdict(reclaimer: Reclaimer, released: Released, allocations: QueueAllocations, *, multiplier: float = 1.0) -> Verdict:
    """Refuse victims that may not go. A multiplier above 1 demands a wider gap between the two sides."""
    losses = _Losses(allocations)
    for leaf, units in released.items():
        verdict = _loss_verdict(reclaimer, leaf, units, losses)
        if not verdict.ok:
            return verdict
    for queue in reclaimer.leaf.lineage():
        verdict = _gain_verdict(reclaimer, queue, losses, multiplier)
        if not verdict.ok:
            return verdict
    return YES


class _Losses:
    """What the touched queues hold while units are taken from them one by one."""

    __slots__ = ("_allocations", "_touched", "released")

    def __init__(self, allocations: QueueAllocations) -> None:
        self._allocations = allocations
        self._touched: dict[QueueShare, Figures] = {}
        self.released: dict[QueueShare, Figures] = {}

    def held(self, queue: QueueShare) -> Figures:
        """Return what a queue holds by now."""
        return self._touched.get(queue) or self._allocations.allocated[queue.name]

    def nonpreemptible(self, queue: QueueShare) -> Figures:
        """Return what jobs hold that cannot be preempted; none of it is ever released."""
        return self._allocations.nonpreemptible[queue.name]

    def within_quota(self, queue: QueueShare, chunk: Figures) -> bool:
        """Tell whether a queue had room for a chunk within its quota when the search began."""
        return within(plus(self._allocations.allocated[queue.name], chunk), queue.deserved)

    def take(self, leaf: QueueShare, unit: Figures) -> None:
        """Subtract a unit from a leaf and all queues above it."""
        for queue in leaf.lineage():
            self._touched[queue] = minus(self.held(queue), unit)
            self.released[queue] = plus(self.released.get(queue, ZERO), unit)

    def touched_siblings(self, queue: QueueShare) -> list[QueueShare]:
        """Return the queues beside this one that lost something."""
        return [other for other in self._touched if other.parent is queue.parent and other is not queue]


def _loss_verdict(reclaimer: Reclaimer, leaf: QueueShare, units: Sequence[Figures], losses: _Losses) -> Verdict:
    # Siblings are compared, not leaves: a department may give what its team deserves, if the department has too much.
    mine, theirs = diverging_ancestors(reclaimer.leaf, leaf)
    is_owed = losses.within_quota(mine, reclaimer.chunk)
    share = allocatable(theirs)
    for unit in units:
        held = losses.held(theirs)
        if within(held, share) and not (is_owed and not within(held, theirs.deserved)):
            most = max(EVERY, key=lambda resource: (unit[resource] > 0, resource))
            message = f"queue {theirs.title} holds no more than it can count on{_part_of(held[most], share[most], most)}"
            numbers = {"allocated": held[most], "share": share[most]}
            return Verdict.refuse(
                PLUGIN, VICTIM_WITHIN_SHARE, message, queue=theirs.name, victim=leaf.name, resource=NAMES[most], **numbers
            )
        losses.take(leaf, unit)
    return YES


def _part_of(held: float, share: float, resource: int) -> str:
    """Write what a queue holds of its share: `` (2 of 4 GPUs)``; empty where the share has no bound."""
    return "" if share == UNLIMITED else f" ({readable(held, resource)} of {readable(share, resource)} {UNIT[resource]})"


def _gain_verdict(reclaimer: Reclaimer, queue: QueueShare, losses: _Losses, multiplier: float) -> Verdict:
    after = plus(losses.held(queue), reclaimer.chunk)
    for sibling in losses.touched_siblings(queue):
        involved = plus(losses.released[sibling], reclaimer.chunk)
        for resource in (resource for resource in EVERY if involved[resource] > 0):
            mine = saturation(after[resource], queue.fair_share[resource])
            theirs = saturation(losses.held(sibling)[resource], sibling.fair_share[resource])
            # Below its share the reclaimer may always take. Above it, only from one that is fuller afterwards: otherwise that one
            # could reclaim the same room in the next session.
            if mine > 1 and sibling.fair_share[resource] > 0 and mine * multiplier >= theirs:
                return _better_off(queue, sibling, resource)
    return _nonpreemptible_verdict(queue, losses.nonpreemptible(queue), reclaimer)


def _better_off(queue: QueueShare, victim: QueueShare, resource: int) -> Verdict:
    message = f"queue {queue.title} would be better off than queue {victim.title}, which loses to it"
    return Verdict.refuse(PLUGIN, BETTER_OFF_THAN_VICTIM, message, queue=queue.name, victim=victim.name, resource=NAMES[resource])


def _nonpreemptible_verdict(queue: QueueShare, held: Figures, reclaimer: Reclaimer) -> Verdict:
    if reclaimer.is_preemptible or within(plus(held, reclaimer.chunk), queue.deserved):
        return YES
    message = f"queue {queue.title} would hold more than its quota for jobs that cannot be preempted"
    return Verdict.refuse(PLUGIN, NONPREEMPTIBLE_OVER_QUOTA, message, queue=queue.name)


def saturation(allocated: float, fair_share: float) -> float:
    """Return how full a queue is: 1 when it has exactly its fair share."""
    if fair_share > 0:
        return allocated / fair_share
    return math.inf if allocated > 0 else 0.0


def diverging_ancestors(left: QueueShare, right: QueueShare) -> tuple[QueueShare, QueueShare]:
    """Return the ancestors of both just below their lowest common one; where one is above the other, the last pair compared."""
    lines = list(zip(reversed(list(left.lineage())), reversed(list(right.lineage())), strict=False))
    return next((pair for pair in lines if pair[0] is not pair[1]), lines[-1])
