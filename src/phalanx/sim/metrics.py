"""The metrics of a simulation: their names, how they are written, and which way is better. The same for tables, pages and goals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from phalanx.sim.size_classes import SIZE_CLASSES, size_words

Result = Mapping[str, Any]  # plain data, as it is written to JSON
NOTHING = "-"
DIGITS = 4
SECONDS_PER_HOUR = 3600
WAITS = {"mean": "mean", "p50": "p50", "p90": "p90", "p99": "p99", "max": "longest"}
"""The words for the numbers of a distribution."""
PARTS_OF_CLASSES = ("p50", "p90", "p99")
"""Those that are shown for each class of size and each queue."""
AUTOSCALER = "autoscaler"
"""Where the figures of an autoscaler are, if there is one."""
MOST_QUEUES = 8
"""The waits of so many queues are shown, those with the most gangs."""

Form = Literal["count", "time", "part", "work", "number"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number about a result."""

    label: str
    path: tuple[str, ...]
    """Where it is in the metrics."""
    better: Literal["more", "less"] | None = None
    form: Form = "count"
    counts_gangs: bool = False
    """It can always be compared."""

    def value(self, result: Result) -> float | None:
        """Return the number; None where there is none."""
        if self.path == ("deadlocks",):
            return len(result["deadlocks"])
        found: Any = result["metrics"]
        for name in self.path:
            if isinstance(found, Mapping) and found.get("count") == 0:
                return None
            found = found.get(name) if found else None
        return None if found is None else float(found)

    def text(self, result: Result) -> str:
        """Write the number of a result as a person would."""
        return self.written(self.value(result))

    def written(self, value: float | None) -> str:
        """Write a number as a person would; a dash for none."""
        if value is None:
            return NOTHING
        return _WRITTEN[self.form](value)

    def is_better(self, one: float, other: float) -> bool:
        """Tell whether one number is better than another."""
        return one > other if self.better == "more" else one < other


def short_time(seconds: float | None) -> str:
    """Write seconds as a person would: ``12.5s``, ``1h02m``, ``3d04h``; a dash for none."""
    if seconds is None:
        return NOTHING
    if seconds < 0:
        return f"-{short_time(-seconds)}"
    if round(seconds, 1) < 60:
        return f"{round(seconds, 1):g}s"
    whole = round(seconds)
    for size, name, below, below_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size}{name}{rest:02}{below_name}" if rest else f"{whole // size}{name}"
    return f"{whole}s"


def percent_text(part: float) -> str:
    """Write a part as a percentage."""
    return f"{part:.1%}"


_WRITTEN: Mapping[Form, Callable[[float], str]] = {
    "count": lambda value: f"{value:.{DIGITS}g}" if value % 1 else f"{value:.0f}",
    "time": short_time,
    "part": percent_text,
    "work": lambda value: f"{value / SECONDS_PER_HOUR:.{DIGITS}g} h",
    "number": lambda value: f"{value:.3f}",
}


# --- all of them ---------------------------------------------------------------------------------------------------------


def _waits(words: str, *path: str, parts: Sequence[str] = tuple(WAITS)) -> Iterator[Metric]:
    for part in parts:
        yield Metric(f"{WAITS[part]} wait{words}", (*path, part), "less", "time")


METRICS = (
    Metric("gangs", ("gangs",)),
    Metric("gangs started", ("started",), "more", counts_gangs=True),
    Metric("gangs finished", ("finished",), "more", counts_gangs=True),
    Metric("gangs waiting", ("waiting",), "less", counts_gangs=True),
    Metric("deadlocks", ("deadlocks",), "less", counts_gangs=True),
    Metric("goodput", ("goodput",), "more", "work"),
    Metric("goodput of capacity", ("goodputPart",), "more", "part"),
    Metric("lost work", ("lostWork",), "less", "work"),
    Metric("lost work of capacity", ("lostPart",), "less", "part"),
    *_waits("", "wait"),
    *(metric for name in SIZE_CLASSES for metric in _waits(f" of {size_words(name)}", "waitBySize", name, parts=PARTS_OF_CLASSES)),
    Metric("mean bounded slowdown", ("slowdown", "mean"), "less", "number"),
    Metric("p90 bounded slowdown", ("slowdown", "p90"), "less", "number"),
    Metric("fairness", ("fairness",), "more", "number"),
    Metric("time below deserved", ("belowDeserved",), "less", "part"),
    Metric("held", ("allocation",), form="part"),
    Metric("held by whole gangs", ("occupancy",), "more", "part"),
    Metric("fragmentation", ("fragmentation",), "less", "part"),
    Metric("pods evicted", ("evictions",), "less"),
    Metric("gangs evicted", ("evictedGangs",), "less"),
    Metric("first arrival to last end", ("makespan",), "less", "time"),
    Metric("sessions", ("sessions",)),
    Metric("scale-ups", (AUTOSCALER, "scaleUps")),
    Metric("nodes requested", (AUTOSCALER, "nodesRequested")),
    Metric("nodes delivered", (AUTOSCALER, "nodesDelivered")),
    Metric("nodes failed", (AUTOSCALER, "nodesFailed")),
    Metric("nodes given back", (AUTOSCALER, "nodesGivenBack")),
    Metric("node hours paid", (AUTOSCALER, "nodeSeconds"), "less", "work"),
    Metric("hours of capacity paid", (AUTOSCALER, "amountSeconds"), "less", "work"),
)


def metrics_of_one(result: Result) -> list[Metric]:
    """Return what is shown of one result; where there is no autoscaler, nothing about it."""
    return [metric for metric in METRICS if metric.path[0] != AUTOSCALER or AUTOSCALER in result["metrics"]]


def queue_metrics(queue: str) -> Iterator[Metric]:
    """Yield what is measured of one queue."""
    return _waits(f" of queue {queue}", "waitByQueue", queue, parts=PARTS_OF_CLASSES)


def queues_of(results: Sequence[Result]) -> list[str]:
    """Return all queues of some results, those with the most gangs first."""
    counts: dict[str, int] = {}
    for result in results:
        for name, waits in result["metrics"]["waitByQueue"].items():
            counts[name] = max(counts.get(name, 0), waits["count"])
    return sorted(counts, key=lambda name: (-counts[name], name))


def metrics_of(results: Sequence[Result]) -> list[Metric]:
    """Return what is shown of some results: all metrics, and those of the queues with the most gangs."""
    shown = sorted(queues_of(results)[:MOST_QUEUES])
    return [*METRICS, *(metric for queue in shown for metric in queue_metrics(queue))]
