"""Score formulas, node by node over whole arrays. Whole-number divisions truncate, floats are IEEE doubles in the given order."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phalanx.placement import Amounts, Counts, Mask, Scores

TOP = 100


def least_allocated(capacity: Amounts, requested: Amounts) -> Counts:
    """Score free room: mean over the rows a node has of free * 100 / capacity; a row that overflows counts 0."""
    free = np.where(requested > capacity, 0, capacity - requested)
    return _mean_over_present(free * TOP, capacity)


def most_allocated(capacity: Amounts, requested: Amounts) -> Counts:
    """Score used room: mean over the rows a node has of used * 100 / capacity, at most 100."""
    return _mean_over_present(np.minimum(requested, capacity) * TOP, capacity)


def _mean_over_present(scaled: Amounts, capacity: Amounts) -> Counts:
    present = capacity > 0
    each = np.where(present, scaled // np.where(present, capacity, 1), 0)
    rows = present.sum(axis=0)
    return np.asarray(each.sum(axis=0) // np.maximum(rows, 1), dtype=np.int64)


def balanced(capacity: Amounts, before: Amounts, after: Amounts) -> Counts:
    """Score how much more evenly a node's rows are used with the task than without: 75 is no change."""
    present = capacity > 0
    gain = _evenness(capacity, after, present) - _evenness(capacity, before, present)
    return np.asarray(50 + (50 + gain) // 2, dtype=np.int64)


def _evenness(capacity: Amounts, used: Amounts, present: Mask) -> Counts:
    # Two rows (cpu and memory) on every node is the usual case: the deviation of two numbers is half their distance.
    if len(capacity) == 2 and present.all():
        first, second = np.minimum(1.0, used[0] / capacity[0]), np.minimum(1.0, used[1] / capacity[1])
        return np.asarray((1.0 - np.abs(first - second) / 2.0) * 100.0).astype(np.int64)
    fraction = np.where(present, np.minimum(1.0, used / np.where(present, capacity, 1)), 0.0)
    count = present.sum(axis=0)
    mean = fraction.sum(axis=0) / np.maximum(count, 1)
    squares = np.where(present, (fraction - mean) ** 2, 0.0).sum(axis=0)
    deviation = np.where(count == 2, _half_distance(fraction, present), np.sqrt(squares / np.maximum(count, 1)))
    return ((1.0 - deviation) * 100.0).astype(np.int64)


def _half_distance(fraction: Scores, present: Mask) -> Scores:
    high = np.where(present, fraction, -np.inf).max(axis=0, initial=-np.inf)
    low = np.where(present, fraction, np.inf).min(axis=0, initial=np.inf)
    return np.where(np.isfinite(high) & np.isfinite(low), np.abs(high - low) / 2.0, 0.0)


def normalise(raw: Counts, *, is_reversed: bool = False) -> Counts:
    """Scale raw scores to 0..100 by the largest one; reversed, the largest becomes 0."""
    top = max(int(raw.max(initial=0)), 0)
    if top == 0:
        return np.full_like(raw, TOP) if is_reversed else raw
    scaled = TOP * raw // top
    return TOP - scaled if is_reversed else scaled


def normalise_range(raw: Counts) -> Counts:
    """Scale raw scores so that the lowest becomes 0 and the highest 100; all equal gives 0."""
    low, high = (int(raw.min()), int(raw.max())) if raw.size else (0, 0)
    if high == low:
        return np.zeros_like(raw)
    return (100.0 * ((raw - low).astype(np.float64) / float(high - low))).astype(np.int64)


def pack(capacity: Amounts, used: Amounts, request: Sequence[tuple[int, int]], weights: Sequence[float]) -> Scores:
    """Score how full a node would be: weighted mean over the requested rows, 0 where a row overflows.

    `request` lists (row, amount) with a weight each; a row with no capacity or weight 0 only counts in the divisor.
    """
    total = np.zeros(capacity.shape[1], dtype=np.float64)
    overflow = np.zeros(capacity.shape[1], dtype=np.bool_)
    for (row, amount), weight in zip(request, weights, strict=True):
        if weight == 0:
            continue
        present = capacity[row] != 0
        wanted = (used[row] + amount).astype(np.float64)
        overflow |= present & (wanted > capacity[row])
        total += np.where(present, wanted * weight / np.where(present, capacity[row], 1), 0.0)
    weight_sum = float(sum(weights))
    if weight_sum > 0:
        total = total / weight_sum
    return np.where(overflow, 0.0, total)


def free_share(
    capacity: Amounts, used: Amounts, request: Sequence[tuple[int, int]], weights: Sequence[float]
) -> NDArray[np.float64]:
    """Score how empty a node would stay: weighted mean over the requested rows of (capacity - used - wanted) / capacity."""
    total = np.zeros(capacity.shape[1], dtype=np.float64)
    for (row, amount), weight in zip(request, weights, strict=True):
        present = capacity[row] != 0
        left = (capacity[row] - used[row] - amount).astype(np.float64)
        total += np.where(present, left * weight / np.where(present, capacity[row], 1), 0.0)
    weight_sum = float(sum(weights))
    return total / weight_sum if weight_sum > 0 else total
