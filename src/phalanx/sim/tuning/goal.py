"""What a search is for: one metric to make as small or as large as possible, and bounds that others must keep."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from phalanx.errors import ConfigError
from phalanx.model.duration import seconds_in
from phalanx.sim.metrics import METRICS, SECONDS_PER_HOUR, Metric, Result, queue_metrics

_BOUND = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign><=|>=|<|>)\s*(?P<limit>\S+(\s*h)?)\s*")
_OF_QUEUE = " of queue "
_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Goal:
    """Which metric is to be as small, or as large, as possible."""

    metric: Metric
    is_maximised: bool

    def cost(self, results: Sequence[Result]) -> float:
        """Return what is to be made small: the mean over some results, negative where more is better."""
        mean = mean_of(self.metric, results)
        return -mean if self.is_maximised else mean

    def __str__(self) -> str:
        return f"{'maximise' if self.is_maximised else 'minimise'} {self.metric.label}"


@dataclass(frozen=True, slots=True)
class Bound:
    """What the mean of a metric must keep."""

    metric: Metric
    sign: str
    limit: float

    def violation(self, results: Sequence[Result]) -> float:
        """Return by how much some results break it; 0 or less where they keep it."""
        mean = mean_of(self.metric, results)
        if _HOLDS[self.sign](mean, self.limit):
            return min(-abs(mean - self.limit), 0.0)
        return max(abs(mean - self.limit), 1e-12)

    def __str__(self) -> str:
        return f"{self.metric.label} {self.sign} {self.metric.written(self.limit)}"


def mean_of(metric: Metric, results: Sequence[Result]) -> float:
    """Return the mean of a metric over the results that have it."""
    known = [value for result in results if (value := metric.value(result)) is not None]
    if not known:
        raise ConfigError(f"{metric.label!r} has no value in any simulation of this load; name another metric")
    return fmean(known)


def read_goal(minimise: str | None, maximise: str | None) -> Goal:
    """Read a goal as it is typed."""
    if (minimise is None) == (maximise is None):
        raise ConfigError("a search has one goal: write --minimise 'p90 wait', or --maximise goodput")
    option, name = ("--minimise", minimise) if minimise is not None else ("--maximise", maximise or "")
    return Goal(metric_named(name or "", option), maximise is not None)


def read_bound(text: str) -> Bound:
    """Read a bound as it is typed: ``fairness >= 0.95``, ``p99 wait <= 2h``, ``lost work of capacity <= 2%``."""
    found = _BOUND.fullmatch(text)
    if found is None:
        raise ConfigError(f"--subject-to: {text!r} is no bound; write a metric, <= or >=, and a number, as in 'fairness >= 0.95'")
    metric = metric_named(found["name"], "--subject-to")
    return Bound(metric, found["sign"], _limit(metric, found["limit"]))


def metric_named(name: str, option: str) -> Metric:
    """Return the metric of a name; any queue may have metrics of its own."""
    wanted = " ".join(name.split())
    queue = wanted.partition(_OF_QUEUE)[2]
    known: list[Metric] = [*METRICS, *(queue_metrics(queue) if queue else ())]
    found = next((metric for metric in known if metric.label.lower() == wanted.lower()), None)
    if found is None:
        names = ", ".join([*(metric.label for metric in METRICS), *(metric.label for metric in queue_metrics("NAME"))])
        raise ConfigError(f"{option}: {name!r} is no metric; write one of: {names}")
    return found


def _limit(metric: Metric, text: str) -> float:
    example, read = _READ_BY_FORM.get(metric.form, ("a number", _number))
    found = read(text)
    if found is None:
        raise ConfigError(f"--subject-to: {metric.label}: {text!r} is not {example}")
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _part(text: str) -> float | None:
    found = _number(text.removesuffix("%"))
    return found if found is None or not text.endswith("%") else found / 100


def _hours(text: str) -> float | None:
    found = _number(text.removesuffix("h").strip())
    return None if found is None else found * SECONDS_PER_HOUR


_READ_BY_FORM: Mapping[str, tuple[str, Callable[[str], float | None]]] = {
    "time": ("a duration such as 90s or 2h", seconds_in),
    "part": ("a part such as 0.02 or 2%", _part),
    "work": ("a number of hours such as 100h", _hours),
}
