"""Room over time: what nodes have now, what running tasks release when they end, and what is booked for later.

Times are seconds, arrays are (resource, node). Room only grows as tasks end, so the first moment at which something fits is found
by bisection on the ends; bookings take room for a while, and with them the moments after that one are looked at one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from phalanx.placement import Amounts, Index

Moments = npt.NDArray[np.float64]
Found = TypeVar("Found")
MOST_MOMENTS = 64
"""With bookings so many moments are looked at one by one; after that only those when no booking is left."""


@dataclass(frozen=True, slots=True)
class Booking:
    """Room that somebody will use for a while."""

    start: float
    end: float
    nodes: Index
    amounts: Amounts
    """(resource, place in `nodes`)."""

    def is_active(self, moment: float) -> bool:
        """Tell whether it is in use at a moment."""
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True)
class Releases:
    """What is released when, the earliest first."""

    ends: Moments
    nodes: Index
    amounts: Amounts
    """(resource, release)."""

    @classmethod
    def of(cls, ends: Moments, nodes: Index, amounts: Amounts) -> "Releases":
        """Sort releases; those that never come are left out."""
        order = np.argsort(ends, kind="stable")
        order = order[: int(np.searchsorted(ends[order], np.inf))]
        return cls(ends[order], nodes[order], amounts[:, order])

    def by(self, moment: float, shape: tuple[int, int]) -> Amounts:
        """Return what is released on each node until a moment, that moment included."""
        count = int(np.searchsorted(self.ends, moment, side="right"))
        found = np.zeros(shape, dtype=np.int64)
        for row in np.flatnonzero(self.amounts[:, :count].any(axis=1)):
            weights = self.amounts[row, :count]
            found[row] = np.bincount(self.nodes[:count], weights=weights, minlength=shape[1]).astype(np.int64)
        return found


class FutureRoom:
    """The room of all nodes from now on."""

    def __init__(self, now: float, free: Amounts, releases: Releases, bookings: Sequence[Booking] = ()) -> None:
        """Begin with what is free now."""
        self.now, self._free, self._releases, self._bookings = now, free, releases, bookings
        self.moments: list[float] = [now, *(end for end in np.unique(releases.ends).tolist() if end > now)]
        """When there is more room than before."""

    def at(self, moment: float) -> Amounts:
        """Return the room at a moment, bookings aside."""
        return self._free + self._releases.by(moment, self._free.shape[:2])

    def during(self, moment: float, seconds: float) -> Amounts:
        """Return the room that there is all the time from a moment on, beside the bookings."""
        room = self._beside(moment)
        for booking in self._bookings:
            if moment < booking.start < moment + seconds:
                np.minimum(room, self._beside(booking.start), out=room)
        return room

    def _beside(self, moment: float) -> Amounts:
        room = self.at(moment)
        for booking in self._bookings:
            if booking.is_active(moment):
                room[:, booking.nodes] -= booking.amounts
        return room

    def earliest(self, fit: Callable[[Amounts], Found | None], seconds: float) -> tuple[float, Found] | None:
        """Return the first moment from which something fits for so long, and what `fit` says then; None if it never does."""
        first = self._bisect(fit, 0)
        if first is None or not self._bookings:
            return None if first is None else (self.moments[first[0]], first[1])
        last = max(booking.end for booking in self._bookings)
        ends = [booking.end for booking in self._bookings if booking.end < np.inf]
        for moment in sorted({*self.moments[first[0] :], *(end for end in ends if end > self.moments[first[0]])})[:MOST_MOMENTS]:
            found = fit(self.during(moment, seconds))
            if found is not None:
                return moment, found
        after = int(np.searchsorted(self.moments, last))
        late = self._bisect(fit, min(max(after, first[0]), len(self.moments) - 1)) if last < np.inf else None
        return None if late is None else (max(self.moments[late[0]], last), late[1])

    def _bisect(self, fit: Callable[[Amounts], Found | None], low: int) -> tuple[int, Found] | None:
        """Return the first moment, by its place from `low` on, at which something fits, bookings aside."""
        high = len(self.moments) - 1
        best = fit(self.at(self.moments[high]))
        if best is None:
            return None
        while low < high:
            middle = (low + high) // 2
            found = fit(self.at(self.moments[middle]))
            if found is None:
                low = middle + 1
            else:
                high, best = middle, found
        return high, best


def held_now(bookings: Sequence[Booking], moments: Sequence[float], releases: Releases, shape: tuple[int, int]) -> Amounts:
    """Return what of the room of now must be left free, so that at each of these moments bookings have theirs.

    Who leaves that alone takes nothing from them, however long it runs.
    """
    held = np.zeros(shape, dtype=np.int64)
    for moment in moments:
        needed = -releases.by(moment, shape)
        active = [booking for booking in bookings if booking.is_active(moment)]
        for booking in active:
            needed[:, booking.nodes] += booking.amounts
        booked = np.unique(np.concatenate([booking.nodes for booking in active])) if active else np.zeros(0, dtype=np.int64)
        held[:, booked] = np.maximum(held[:, booked], needed[:, booked])
    return held
