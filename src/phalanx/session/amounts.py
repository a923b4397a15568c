"""Comparisons of amounts of many gangs and queues: float vectors over the resource space, infinity where nothing bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phalanx.model.resources import CPU, MEMORY, PODS, Resources, ResourceSpace, readable, scale_of
from phalanx.placement import NO_LIMIT, Vector
from phalanx.state.verdict import YES, Room, Verdict

EPSILON = 0.1
"""Amounts closer than this are equal: shares of a total are not whole numbers."""


def covers(have: Vector, want: Vector) -> bool:
    """Tell whether `have` is at least `want` everywhere, nearly equal included."""
    # Of a handful of resources `count_nonzero` takes half as long as `all`, and this is asked for every gang.
    return int(np.count_nonzero(want - have < EPSILON)) == len(want)


def times_until_covered(have: Vector, want: Vector, request: Vector) -> int:
    """Return how many times the request has to be added to `have` until it covers `want`; at least once."""
    most = 1
    for held, wanted, amount in zip(have.tolist(), want.tolist(), request.tolist(), strict=True):
        if wanted - held < EPSILON:
            continue
        if amount <= 0:
            return NO_LIMIT
        count = max(int((wanted - held) // amount), 1)
        while wanted - (held + count * amount) >= EPSILON:
            count += 1
        while count > 1 and wanted - (held + (count - 1) * amount) < EPSILON:
            count -= 1
        most = max(most, count)
    return most


@dataclass(frozen=True, slots=True)
class Wanted:
    """Amounts that are asked for; shared by all who ask for the same, so never changed."""

    amounts: Vector
    parts: tuple[tuple[int, float], ...]
    """What is asked for, each amount with the number of its resource."""
    bounded: tuple[tuple[int, float], ...]
    """The same without the number of pods, which no limit of a queue counts."""

    @classmethod
    def of(cls, amounts: Vector, space: ResourceSpace) -> "Wanted":
        """Find out which resources are asked for."""
        amounts.flags.writeable = False
        parts = tuple((row, amount) for row, amount in enumerate(amounts.tolist()) if amount > 0)
        return cls(amounts, parts, tuple(part for part in parts if part[0] != space.row_by_name[PODS]))

    def short(self, limit: Sequence[float] | Vector, taken: Sequence[float] | Vector) -> list[int]:
        """Return the resources of which it cannot be taken on top within the limit, exactly; none if it fits."""
        # Of a handful of resources plain numbers take a quarter of the time of arrays, and this is asked for every gang.
        return [row for row, amount in self.bounded if not taken[row] + amount <= limit[row]]


def requested_rows(want: Vector, space: ResourceSpace) -> NDArray[np.bool_]:
    """Mark the resources that are wanted, without the number of pods."""
    rows: NDArray[np.bool_] = want > 0
    rows[space.row_by_name[PODS]] = False
    return rows


def share(part: float, whole: float) -> float:
    """Return part of whole; a part of nothing counts as all of it."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


def dominant_share(part: Vector, whole: Vector) -> float:
    """Return the largest share over the resources there are."""
    amounts = zip(part.tolist(), whole.tolist(), strict=True)
    return max((share(held, there) for held, there in amounts if there >= EPSILON), default=0.0)


def bounded(resources: Resources | None, space: ResourceSpace, *, unbounded_zero: bool = False) -> Vector:
    """Return limits as a vector, infinite where there is none; optionally also where cpu or memory is 0."""
    vector = np.full(len(space), np.inf)
    for name, amount in (resources or {}).items():
        vector[space.row_by_name[name]] = amount
    if unbounded_zero:
        vector[:2][vector[:2] <= 0] = np.inf
    return vector


def room_under(limit: Vector, taken: Vector, request: Vector, space: ResourceSpace) -> int:
    """Return how many times the request can still be taken under the limit, on what it asks for."""
    rows, room = zip(limit.tolist(), taken.tolist(), request.tolist(), strict=True), NO_LIMIT
    pods = space.row_by_name[PODS]
    for row, (most, held, amount) in enumerate(rows):
        if amount <= 0 or row == pods or not isfinite(most):
            continue
        count = int((most - held) // amount)
        while held + (count + 1) * amount <= most:
            count += 1
        while count > 0 and held + count * amount > most:
            count -= 1
        room = min(room, count)
    return max(room, 0)


def room_or_reason(plugin: str, queue: str, limit: Vector, taken: Vector, request: Vector, space: ResourceSpace, word: str) -> Room:
    """Return the room of a queue; when there is none, with the resource that is short and its numbers."""
    tasks = room_under(limit, taken, request, space)
    if tasks > 0:
        return Room(tasks, YES)
    return Room(0, short_of(plugin, queue, limit, taken, request, space, word))


def short_of(plugin: str, queue: str, limit: Vector, taken: Vector, request: Vector, space: ResourceSpace, word: str) -> Verdict:
    """Say which resource of a queue is used up."""
    for row in np.flatnonzero(requested_rows(request, space)):
        if taken[row] + request[row] > limit[row]:
            name = space.names[row]
            numbers: dict[str, Any] = {
                "queue": queue, "resource": name, "limit": float(limit[row]),
                "taken": float(taken[row]), "wanted": float(request[row]), "bound": word,
            }  # fmt: skip
            message = (
                f"queue {queue} has {readable(name, float(taken[row]))} of {readable(name, float(limit[row]))} {name} {word};"
                f" {readable(name, float(request[row]))} more do not fit"
            )
            return Verdict.refuse(plugin, "QueueQuotaExceeded", message, **numbers)
    return Verdict.refuse(plugin, "QueueQuotaExceeded", f"queue {queue} has no room", queue=queue)


def within_share(plugin: str, queue: str, held: Vector, deserved: Vector, request: Vector, space: ResourceSpace) -> Verdict:
    """Say that a queue keeps what it deserves of what a victim holds, with the resource of which it has most."""
    rows = np.flatnonzero(requested_rows(request, space) & np.isfinite(deserved))
    row = max(rows.tolist(), key=lambda row: share(float(held[row]), float(deserved[row])), default=None)
    if row is None:
        return Verdict.refuse(plugin, "QueueWithinShare", f"is in queue {queue}, which has no more than it deserves", queue=queue)
    name, has, due = space.names[row], float(held[row]), float(deserved[row])
    share_text = f"the {readable(name, due)} {name} that it deserves"
    text = f"has {readable(name, has)} of {share_text}" if has <= due else f"would have less than {share_text}"
    message = f"is in queue {queue}, which {text}"
    return Verdict.refuse(plugin, "QueueWithinShare", message, queue=queue, resource=name, allocated=has, deserved=due)


def as_amounts(vector: Vector, space: ResourceSpace) -> dict[str, float]:
    """Return the finite, non-zero amounts by name: cpu in thousandths, memory in bytes, everything else in units."""
    amounts = vector.tolist()
    found = {name: amounts[row] for name, row in space.row_by_name.items() if amounts[row] and isfinite(amounts[row])}
    return {name: amount if name == CPU else amount / scale_of(name) for name, amount in found.items()}


def figure_text(name: str, amount: float) -> str:
    """Write an amount of `as_amounts` as a person would."""
    return readable(name, amount) if name in (CPU, MEMORY) else f"{amount:g}"


@dataclass(frozen=True, slots=True)
class Claim:
    """What one of several claimants weighs, asks for, may have at most and must have at least."""

    weight: float
    requested: Vector
    limit: Vector
    guarantee: Vector


def divide(claims: Sequence[Claim], total: Vector) -> list[Vector]:
    """Give each its weight's part of what is left, clamped to what it may have and asks for; hand the rest round.

    Ends when nobody wants more or nothing is left.
    """
    parts = [np.zeros(len(total)) for _ in claims]
    remaining, unmet = total.copy(), list(range(len(claims)))
    while unmet and (weight := sum(claims[place].weight for place in unmet)) > 0:
        before, change, left = remaining.copy(), np.zeros(len(total)), []
        for place in unmet:
            claim, old = claims[place], parts[place]
            grown = np.minimum(old + remaining * (claim.weight / weight), claim.limit)
            parts[place] = np.maximum(np.minimum(grown, claim.requested), claim.guarantee)
            change += parts[place] - old
            if not covers(parts[place], claim.requested) and not np.array_equal(parts[place], old):
                left.append(place)
        unmet, remaining = left, remaining - change
        if np.all(remaining < EPSILON) or np.array_equal(remaining, before):
            break
    return parts
