"""Means with confidence intervals, by Student's t distribution: what several seeds say about a number.

Seeds are drawn independently, and a profile has one number for each of them. The interval of the mean is that mean, plus and
minus the 97.5 % quantile of Student's t times the standard error. Two profiles are compared on the same seeds, by the mean of
their differences: what a seed makes easy or hard for both cancels out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import cos, inf, pi, sin, sqrt
from statistics import fmean, stdev

CONFIDENCE = 0.95
_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and between which bounds it lies with a confidence of 95 %; of a single number nothing is known about them."""

    mean: float
    half: float
    """Of the width."""
    count: int

    @property
    def low(self) -> float:
        """The lower bound."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper bound."""
        return self.mean + self.half

    @property
    def is_real(self) -> bool:
        """Tell whether it does not hold zero."""
        return self.low > 0 or self.high < 0


def interval(values: Sequence[float]) -> Interval | None:
    """Return the mean of some numbers with its interval; None when there are none."""
    if not values:
        return None
    if len(values) == 1:
        return Interval(values[0], inf, 1)
    # A tenth of a billionth of a value is what sums of equal numbers differ by.
    spread = stdev(values)
    is_constant = spread <= 1e-10 * max(map(abs, values))
    half = 0.0 if is_constant else student_quantile(len(values) - 1) * spread / sqrt(len(values))
    return Interval(fmean(values), half, len(values))


def paired(first: Sequence[float | None], second: Sequence[float | None]) -> Interval | None:
    """Return the mean of the differences of the first to the second, seed by seed, where both are known."""
    known = [(one, other) for one, other in zip(first, second, strict=True) if one is not None and other is not None]
    return interval([one - other for one, other in known])


@cache
def student_quantile(degrees: int) -> float:
    """Return how far from 0 Student's t is in 95 of 100 cases at most."""
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < CONFIDENCE else (low, middle)
    return sqrt(degrees) * sin(low) / cos(low)


def _within(angle: float, degrees: int) -> float:
    """Return how often t / sqrt(degrees) lies between plus and minus the tangent of an angle: a finite sum for whole degrees."""
    is_odd = degrees % 2 == 1
    term = total = cos(angle) if is_odd else 1.0
    for step in range(2 if is_odd else 1, degrees - 2 if is_odd else degrees - 1, 2):
        term *= cos(angle) ** 2 * step / (step + 1)
        total += term
    if is_odd:
        return 2 / pi * (angle + (sin(angle) * total if degrees > 1 else 0.0))
    return sin(angle) * total
