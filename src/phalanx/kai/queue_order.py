"""Whose turn it is among the queues of one level, and whose jobs go first when room is needed.

A queue is weighed together with the job it would run next: what counts is where the queue would stand with it. Eight
questions decide, the first difference wins. Victims are taken in the opposite order.
"""

from dataclasses import dataclass
from typing import NamedTuple

from phalanx.kai.amounts import EVERY, UNLIMITED, ZERO, Figures, minus, plus, within
from phalanx.kai.shares import QueueShare, allocatable

WITHOUT_SHARE = 1000
"""Each unit of a resource that a queue has no share of weighs as much as a thousand shares."""

Rank = tuple[bool, bool, int, bool, float, float]


@dataclass(frozen=True, slots=True)
class Contender:
    """A queue and what is weighed with it."""

    queue: QueueShare
    job: Figures = ZERO
    """The tasks that its best pending job would get next; zero when victims are sought."""
    victims: Figures = ZERO
    """What the jobs hold that were taken from it as victims, and the one that would be next; zero when jobs are placed."""


class Standing(NamedTuple):
    """A contender with all that it is compared by, found out once: a queue is compared with many others."""

    queue: QueueShare
    rank: Rank
    share: Figures


def standing(contender: Contender, total: Figures) -> Standing:
    """Return where a queue stands. `total` is what the cluster has."""
    return Standing(contender.queue, rank(contender, total), allocatable(contender.queue))


def comes_first(left: Standing, right: Standing) -> bool:
    """Tell whether the left queue gets the next turn."""
    if left.rank != right.rank:
        return left.rank < right.rank
    if left.share != right.share and within(left.share, right.share):
        return True
    if left.share != right.share and within(right.share, left.share):
        return False
    return (left.queue.created, left.queue.name) < (right.queue.created, right.queue.name)


def gives_first(left: Standing, right: Standing) -> bool:
    """Tell whether the left queue loses the next victim."""
    return left.queue is not right.queue and not comes_first(left, right)


def rank(contender: Contender, total: Figures) -> Rank:
    """Return the answers that compare as numbers, smaller first; the rest is a matter between two queues."""
    queue, share = contender.queue, allocatable(contender.queue)
    with_job = plus(queue.allocated, contender.job)
    return (
        _is_over_used(queue),  # only if it is over in all three resources: KAI's rule
        not within(with_job, queue.deserved),  # what it deserves comes before what it borrows
        -queue.priority,
        _uses_without_share(with_job, share),
        dominant_share(minus(with_job, contender.victims), share, total),  # where it would stand with the job
        dominant_share(queue.allocated, share, total),  # and without: a large job must not hide that a queue has little
    )


def dominant_share(amounts: Figures, share: Figures, total: Figures) -> float:
    """Return the largest part of its share that a queue uses, over the resources. Without a bound the cluster is the share."""
    return max(0.0, *(_part(amounts[resource], share[resource], total[resource]) for resource in EVERY))


def _part(amount: float, share: float, total: float) -> float:
    bound = total if share == UNLIMITED else share
    return amount / bound if bound > 0 else amount * WITHOUT_SHARE


def _is_over_used(queue: QueueShare) -> bool:
    return all(queue.allocated[resource] > queue.fair_share[resource] for resource in EVERY)


def _uses_without_share(amounts: Figures, share: Figures) -> bool:
    return any(share[resource] == 0 < amounts[resource] for resource in EVERY)
