"""Amounts over time, from lists of changes: sums, averages and pictures of at most so many columns. Everything is vectorised.

A change is a moment, a row (a node or a queue) and how much more or less there is from then on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in the order of time, one array for each part; those after the end are left out."""

    moments: Numbers
    rows: Places
    amounts: Numbers

    @classmethod
    def of(cls, moments: Sequence[float], rows: Sequence[int], amounts: Sequence[float]) -> "Changes":
        """Gather the parts of many changes."""
        return cls(np.array(moments, dtype=np.float64), np.array(rows, dtype=np.int64), np.array(amounts, dtype=np.float64))

    def total(self, end: float) -> float:
        """Return amount times seconds until the end, over all rows."""
        return float((self.amounts * np.maximum(end - self.moments, 0.0)).sum())

    def joined(self, other: "Changes") -> "Changes":
        """Return both, in the order of time."""
        moments = np.concatenate((self.moments, other.moments))
        order = np.argsort(moments, kind="stable")
        rows, amounts = np.concatenate((self.rows, other.rows)), np.concatenate((self.amounts, other.amounts))
        return Changes(moments[order], rows[order], amounts[order])


def steps(moments: Sequence[float], rows: Sequence[int], levels: Sequence[float]) -> Changes:
    """Return changes from the levels that rows have from a moment on."""
    found = Changes.of(moments, rows, levels)
    order = np.lexsort((np.arange(len(found.rows)), found.rows))
    return Changes(found.moments, found.rows, _differences(found.amounts, found.rows, order))


def _differences(levels: Numbers, rows: Places, order: Places) -> Numbers:
    """Return by how much each level differs from the one before it in its row; `order` puts rows together."""
    sorted_levels, sorted_rows = levels[order], rows[order]
    before = np.concatenate(([0.0], sorted_levels[:-1])) if len(order) else sorted_levels
    before[np.flatnonzero(np.diff(sorted_rows)) + 1] = 0.0
    found = np.empty_like(levels)
    found[order] = sorted_levels - before
    return found


def levels_of(changes: Changes, order: Places) -> Numbers:
    """Return the level of a row after each of its changes; `order` puts rows together and keeps the order of time in each."""
    amounts, rows = changes.amounts[order], changes.rows[order]
    sums = np.cumsum(amounts)
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))
    starts = np.concatenate(([0.0], sums[:-1]))[firsts] if len(rows) else sums
    found = np.empty_like(sums)
    found[order] = sums - np.repeat(starts, np.diff(np.append(firsts, len(rows))))
    return found


def fragmentation(held: Changes, offered: Changes, end: float) -> float:
    """Return which part of what is free lies on nodes that are partly used, averaged over the time in which anything is free."""
    both = held.joined(offered)
    if not len(both.rows):
        return 0.0
    is_held = np.argsort(np.concatenate((held.moments, offered.moments)), kind="stable") < len(held.rows)
    order = np.lexsort((np.arange(len(both.rows)), both.rows))
    used = levels_of(Changes(both.moments, both.rows, np.where(is_held, both.amounts, 0.0)), order)
    whole = levels_of(Changes(both.moments, both.rows, np.where(is_held, 0.0, both.amounts)), order)
    free = np.maximum(whole - used, 0.0)
    partly = np.where(used > TINY, free, 0.0)
    sums = [np.cumsum(_differences(level, both.rows, order)) for level in (partly, free)]
    return _mean_part(sums[0], sums[1], np.diff(np.append(np.minimum(both.moments, end), end)))


TINY = 1e-9


def _mean_part(part: Numbers, whole: Numbers, seconds: Numbers) -> float:
    counts = (whole > TINY) & (seconds > 0)
    weights = seconds[counts]
    return float((part[counts] / whole[counts] * weights).sum() / weights.sum()) if weights.size else 0.0


def picture(changes: Changes, rows: int, edges: Numbers) -> Numbers:
    """Return the average level of each row between each two edges, as (row, column)."""
    columns, width = len(edges) - 1, float(edges[1] - edges[0])
    column = np.clip(np.searchsorted(edges, changes.moments, side="right") - 1, 0, columns - 1)
    is_inside = changes.moments < edges[-1]
    place = changes.rows * columns + column
    own = np.where(is_inside, changes.amounts * (edges[column + 1] - changes.moments), 0.0)
    later = np.where(is_inside & (column < columns - 1), changes.amounts * width, 0.0)
    within = np.bincount(place, own, rows * columns).reshape(rows, columns)
    after = np.roll(np.bincount(place, later, rows * columns).reshape(rows, columns), 1, axis=1)
    return (within + np.cumsum(after, axis=1)) / width
