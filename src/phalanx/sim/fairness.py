"""How fairly queues were served, the same for every scheduler: against shares that follow from the load and the weights alone.

What a session calls deserved differs from scheduler to scheduler, and some know no queues. Here a queue deserves, at any
moment, its weighted max-min fair share of what the nodes offer: what is there is divided by weight, nobody gets more than its
gangs ask for, and what one leaves is divided among the others. A queue with a quota or `deserved` of its own gets that first.
A gang asks for all its tasks from its arrival to its end, and a queue receives what its gangs hold while they have their
minimum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phalanx.sim.curves import Changes, Numbers
from phalanx.sim.recorder import GangRecord

TOLERANCE = 0.05
"""A queue that receives up to so much less than it deserves is not below: gangs start as a whole, so that some always lacks."""
TINY = 1e-9
CELLS = 2_000_000
"""Queues times moments that are looked at in one go."""


@dataclass(frozen=True, slots=True)
class QueueClaim:
    """What a queue may claim."""

    weight: float = 1.0
    quota: float = 0.0
    """Of the resource that is counted, before anything is divided by weight."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """How fairly queues were served."""

    index: float | None
    """Jain's index of what queues received, each as a part of what it deserved; None where nobody deserved or received anything."""
    below: float | None
    """The part of the time with demand in which a queue received less than it deserved; None where nobody asked for anything."""


def fairness(records: Sequence[GangRecord], offered: Changes, claims: Mapping[str, QueueClaim], end: float) -> Fairness:
    """Return how fairly the gangs of each queue were served until the end."""
    names = sorted({record.queue for record in records if record.amount > 0})
    if not names or end <= 0:
        return Fairness(None, None)
    rows = {name: row for row, name in enumerate(names)}
    demand, received = _demand(records, rows, end), _received(records, rows, end)
    moments = np.unique(np.concatenate(([0.0], demand.moments, received.moments, offered.moments)))
    moments = moments[moments < end]
    known = [claims.get(name, QueueClaim()) for name in names]
    return _measured(_Shares(demand, received, offered, known), moments, end)


@dataclass(frozen=True, slots=True)
class _Shares:
    demand: Changes
    received: Changes
    offered: Changes
    claims: Sequence[QueueClaim]


def _demand(records: Sequence[GangRecord], rows: Mapping[str, int], end: float) -> Changes:
    spans = [(rows[record.queue], record.amount, record.submitted, record.finished) for record in records if record.queue in rows]
    return _level_changes(spans, end)


def _received(records: Sequence[GangRecord], rows: Mapping[str, int], end: float) -> Changes:
    spans = [
        (rows[record.queue], record.amount, since, to) for record in records if record.queue in rows for since, to in record.spans
    ]
    return _level_changes(spans, end)


def _level_changes(spans: Sequence[tuple[int, float, float, float | None]], end: float) -> Changes:
    """Return one change up and one down for each span of a row."""
    ups = [(since, row, amount) for row, amount, since, _ in spans]
    downs = [(end if to is None else to, row, -amount) for row, amount, _, to in spans]
    ordered = sorted([*ups, *downs])
    return Changes.of([item[0] for item in ordered], [item[1] for item in ordered], [item[2] for item in ordered])


def _measured(shares: _Shares, moments: Numbers, end: float) -> Fairness:
    count = len(shares.claims)
    got, deserved, below, asked = np.zeros(count), np.zeros(count), 0.0, 0.0
    lengths = np.diff(np.append(moments, end))
    demand_at, received_at, offered_at = _Levels(shares.demand, count), _Levels(shares.received, count), _Total(shares.offered)
    size = max(CELLS // count, 1)
    for first in range(0, len(moments), size):
        part, seconds = moments[first : first + size], lengths[first : first + size]
        demand, received = demand_at.until(part), received_at.until(part)
        fair = fair_shares(demand, offered_at.until(part), shares.claims)
        asks = demand > TINY
        got += (received * seconds).sum(axis=1)
        deserved += (fair * seconds).sum(axis=1)
        asked += float((asks * seconds).sum())
        below += float(((received < fair * (1 - TOLERANCE) - TINY) & asks).astype(float).dot(seconds).sum())
    return Fairness(_jain(got, deserved), below / asked if asked else None)


def _jain(got: Numbers, deserved: Numbers) -> float | None:
    served = got[deserved > TINY] / deserved[deserved > TINY]
    squares = float((served**2).sum())
    return float(served.sum()) ** 2 / (len(served) * squares) if squares else None


class _Levels:
    """The levels of all rows at moments that are asked for in the order of time."""

    def __init__(self, changes: Changes, rows: int) -> None:
        self._changes, self._levels, self._next = changes, np.zeros(rows), 0

    def until(self, moments: Numbers) -> Numbers:
        """Return the level of each row from each moment on, as (row, moment)."""
        found, changes = np.zeros((len(self._levels), len(moments))), self._changes
        last = int(np.searchsorted(changes.moments, moments[-1], side="right"))
        part = slice(self._next, last)
        columns = np.searchsorted(moments, changes.moments[part], side="left")
        np.add.at(found, (changes.rows[part], columns), changes.amounts[part])
        found[:, 0] += self._levels
        found = np.cumsum(found, axis=1)
        self._levels, self._next = found[:, -1].copy(), last
        return np.maximum(found, 0.0)


class _Total(_Levels):
    """The sum over all rows."""

    def __init__(self, changes: Changes) -> None:
        super().__init__(Changes(changes.moments, np.zeros_like(changes.rows), changes.amounts), 1)


def fair_shares(demand: Numbers, offered: Numbers, claims: Sequence[QueueClaim]) -> Numbers:
    """Divide what is offered (1, moment) among what is asked for (queue, moment): quotas first, the rest by weight."""
    weights = np.array([max(claim.weight, 0.0) for claim in claims])
    first = np.minimum(demand, np.array([claim.quota for claim in claims])[:, None])
    sums = first.sum(axis=0)
    first = first * np.minimum(1.0, np.divide(offered[0], sums, out=np.ones_like(sums), where=sums > TINY))
    return np.asarray(first) + _by_weight(demand - first, offered[0] - first.sum(axis=0), weights)


def _by_weight(demand: Numbers, offered: Numbers, weights: Numbers) -> Numbers:
    """Raise all queues together, each as fast as its weight, until they have what they ask for or nothing is left."""
    weighty = np.maximum(weights, TINY)[:, None]
    order = np.argsort(demand / weighty, axis=0, kind="stable")
    levels = np.take_along_axis(demand / weighty, order, axis=0)
    asked = np.take_along_axis(demand, order, axis=0)
    heavy = np.broadcast_to(weighty, demand.shape)
    left = np.cumsum(np.take_along_axis(heavy, order, axis=0)[::-1], axis=0)[::-1]
    before = np.cumsum(asked, axis=0) - asked
    is_full = before + levels * left >= offered
    place = np.where(is_full.any(axis=0), is_full.argmax(axis=0), 0)[None, :]
    level = (offered - np.take_along_axis(before, place, axis=0)[0]) / np.take_along_axis(left, place, axis=0)[0]
    found: Numbers = np.where(is_full.any(axis=0), np.minimum(demand, np.maximum(level, 0.0) * heavy), demand)
    return found
