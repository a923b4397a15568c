"""The metrics of a simulation, and which of several results is best in each: the same for tables and for the page.

A star says that a profile is better, so it compares like with like. How many gangs started, finished, wait or are in a deadlock can
always be compared. Everything else only between results in which the same gangs started and finished, as many as in any, and none
is in a deadlock: who leaves two gangs undone is done earlier, and gangs that block each other hold everything. What is held has no
star at all: a gang that is bound and rolled back again and again holds much and does nothing. What whole gangs hold has one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Result = Mapping[str, Any]  # plain data, as it is written to JSON
NOTHING = "-"
DIGITS = 4
SECONDS_PER_HOUR = 3600
STAR_NOTE = (
    "* the best of its line; apart from the counts of gangs and deadlocks, only profiles are compared that started and finished"
    " the same gangs, without a deadlock"
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One number about a result."""

    label: str
    path: str
    """Its path in the metrics."""
    better: Literal["more", "less"] | None = None
    form: Literal["count", "time", "part", "work"] = "count"
    counts_gangs: bool = False
    """It can always be compared."""

    def value(self, result: Result) -> float | None:
        """Return the number; None where there is none."""
        if self.path == "deadlocks":
            return len(result["deadlocks"])
        found: Any = result["metrics"]
        if self.path.startswith("wait.") and not found["wait"]["count"]:
            return None
        for name in self.path.split("."):
            found = found.get(name) if found else None
        return None if found is None else float(found)

    def text(self, result: Result) -> str:
        """Write the number as a person would."""
        value = self.value(result)
        if value is None:
            return NOTHING
        if self.form == "time":
            return short_time(value)
        if self.form == "part":
            return percent_text(value)
        return f"{value / SECONDS_PER_HOUR:.{DIGITS}g} h" if self.form == "work" else f"{value:g}"


METRICS = (
    Metric("gangs", "gangs"),
    Metric("gangs started", "started", "more", counts_gangs=True),
    Metric("gangs finished", "finished", "more", counts_gangs=True),
    Metric("gangs waiting", "waiting", "less", counts_gangs=True),
    Metric("deadlocks", "deadlocks", "less", counts_gangs=True),
    *(Metric(f"wait, {name}", f"wait.{name}", "less", "time") for name in ("mean", "p50", "p90", "p99", "max")),
    Metric("held", "allocation", form="part"),
    Metric("held by whole gangs", "occupancy", "more", "part"),
    Metric("free but on partly used nodes", "fragmentation", "less", "part"),
    Metric("pods evicted", "evictions", "less"),
    Metric("gangs evicted", "evictedGangs", "less"),
    Metric("restarted work", "lostWork", "less", "work"),
    Metric("first arrival to last end", "makespan", "less", "time"),
    Metric("sessions", "sessions"),
)


def best_results(metric: Metric, results: Sequence[Result]) -> set[int]:
    """Return which results are best in a metric; none where all are equal, nothing is better, or they cannot be compared."""
    compared = range(len(results)) if metric.counts_gangs else comparable(results)
    values = {place: value for place in compared if (value := metric.value(results[place])) is not None}
    if metric.better is None or len(set(values.values())) < 2:
        return set()
    best = (max if metric.better == "more" else min)(values.values())
    return {place for place, value in values.items() if value == best}


def comparable(results: Sequence[Result]) -> list[int]:
    """Return the results in which the same gangs started and finished, as many as in any, and none is in a deadlock."""
    fates = [_fate(result) for result in results]
    most = max(((len(finished), len(started)) for started, finished in fates), default=(0, 0))
    leading = [place for place, (started, finished) in enumerate(fates) if (len(finished), len(started)) == most]
    is_same = len({fates[place] for place in leading}) == 1
    return [place for place in leading if is_same and not results[place]["deadlocks"]]


def _fate(result: Result) -> tuple[frozenset[str], frozenset[str]]:
    started, finished = (
        frozenset(gang["name"] for gang in result["gangs"] if gang[moment] is not None) for moment in ("started", "finished")
    )
    return started, finished


def short_time(seconds: float | None) -> str:
    """Write seconds as a person would: ``12.5s``, ``1h02m``, ``3d04h``; a dash for none."""
    if seconds is None:
        return NOTHING
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
