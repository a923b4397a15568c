"""What tuned settings gain and cost, on seeds that the search has not seen: differences of all metrics, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from phalanx.sim.intervals import Interval, paired
from phalanx.sim.metrics import Metric, Result, metrics_of


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much a metric differs, as the mean over seeds."""

    metric: Metric
    base: float
    tuned: float
    found: Interval

    @property
    def is_gain(self) -> bool:
        """Tell whether it is better by more than chance."""
        return self._is_real and self.metric.is_better(self.found.mean, 0.0)

    @property
    def is_cost(self) -> bool:
        """Tell whether it is worse by more than chance."""
        return self._is_real and not self.metric.is_better(self.found.mean, 0.0)

    @property
    def _is_real(self) -> bool:
        return self.metric.better is not None and self.found.is_real

    @property
    def text(self) -> str:
        """The difference with half of the width of its interval."""
        sign = "+" if self.found.mean > 0 else ""
        half = f" ±{self.metric.written(self.found.half)}" if isfinite(self.found.half) else ""
        return f"{sign}{self.metric.written(self.found.mean)}{half}"

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        bounds = {"low": self.found.low, "high": self.found.high} if isfinite(self.found.half) else {}
        return {
            "metric": self.metric.label, "better": self.metric.better, "base": self.base, "tuned": self.tuned,
            "difference": self.found.mean, **bounds, "isGain": self.is_gain, "isCost": self.is_cost,
        }  # fmt: skip


def differences(base: Sequence[Result], tuned: Sequence[Result]) -> list[Difference]:
    """Return how all metrics differ, seed by seed, where both have them."""
    found = []
    for metric in metrics_of([*base, *tuned]):
        before, after = ([metric.value(result) for result in results] for results in (base, tuned))
        known = [(one, other) for one, other in zip(before, after, strict=True) if one is not None and other is not None]
        difference = paired(after, before)
        if difference is not None:
            means = [sum(values) / len(known) for values in zip(*known, strict=True)]
            found.append(Difference(metric, means[0], means[1], difference))
    return found
