"""Results side by side, as tables, pages and JSON show them: the same words, numbers and stars, made here and nowhere else.

A star says that a profile is better than every other one. With several seeds it stands only where that is more than chance:
the 95 % interval of the differences to each other profile, seed by seed, does not hold zero. With one seed it says what was
better in this one simulation.

A star compares like with like. How many gangs started, finished, wait or are in a deadlock can always be compared, and so can
simulations of the same length: gangs that have not started or ended by then count in every metric. Otherwise only results are
compared in which the same gangs started and finished, as many as in any, and none is in a deadlock: who leaves two gangs
undone is done earlier, and gangs that block each other hold everything. What is held has no star at all: a gang that is bound
and rolled back again and again holds much and does nothing. What whole gangs hold has one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from typing import Any

from phalanx.sim.intervals import Interval, interval, paired
from phalanx.sim.metrics import MOST_QUEUES, Metric, Result, metrics_of, queues_of
from phalanx.sim.playback import End

_LIKE_WITH_LIKE = (
    "; apart from the counts of gangs and deadlocks, only profiles are compared that were simulated for the same time (--until),"
    " or that started and finished the same gangs, without a deadlock"
)
ONE_SEED_NOTE = "* the best of its line in this simulation, which may be chance: --seeds 1..20 tells" + _LIKE_WITH_LIKE
SEEDS_NOTE = (
    "* better than every profile without a star: the 95 % interval of the differences, seed by seed, does not hold zero"
    + _LIKE_WITH_LIKE
)
INTERVAL_NOTE = "means over {count} seeds, ± half of the 95 % interval by Student's t"
EQUAL_SEEDS_NOTE = "every seed gives the same: nothing in this load is random, so that intervals say nothing; try --jitter 0.1"
UNFINISHED_NOTE = (
    "gangs that have not started count with their wait until the end, and those that have not ended with the least slowdown"
    " they can still come to"
)


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """What one profile has in a line."""

    profile: str
    mean: float | None
    half: float | None
    """Of the width of the interval; None where there is one seed only."""
    text: str
    is_best: bool

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        bounds = {} if self.mean is None or self.half is None else {"low": self.mean - self.half, "high": self.mean + self.half}
        return {"profile": self.profile, "mean": self.mean, **bounds, "text": self.text, "isBest": self.is_best}


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """One line."""

    metric: Metric
    values: tuple[ComparedValue, ...]

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "metric": self.metric.label,
            "better": self.metric.better,
            "values": [value.as_data() for value in self.values],
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All lines, and what is to be said about them."""

    profiles: tuple[str, ...]
    seeds: tuple[int, ...]
    lines: tuple[ComparedMetric, ...]
    notes: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "seeds": list(self.seeds), "profiles": list(self.profiles), "metrics": [line.as_data() for line in self.lines],
            "notes": list(self.notes),
        }  # fmt: skip


def compared(results_by_profile: Mapping[str, Sequence[Result]]) -> Comparison:
    """Compare profiles, each of which has one result for each seed, in the same order."""
    every = [result for results in results_by_profile.values() for result in results]
    columns = list(results_by_profile.values())
    seeds = tuple(int(result["seed"] or 0) for result in columns[0]) if columns else ()
    comparable = comparable_profiles(columns)
    lines = [
        _line(metric, results_by_profile, range(len(columns)) if metric.counts_gangs else comparable)
        for metric in metrics_of(every)
    ]
    known = tuple(line for line in lines if any(value.mean is not None for value in line.values))
    return Comparison(tuple(results_by_profile), seeds, known, _notes(every, len(columns), len(seeds)))


def _notes(results: Sequence[Result], profiles: int, seeds: int) -> tuple[str, ...]:
    found = [INTERVAL_NOTE.format(count=seeds)] if seeds > 1 else []
    if profiles > 1:
        found.append(SEEDS_NOTE if seeds > 1 else ONE_SEED_NOTE)
    if seeds > 1 and len({json.dumps(result["metrics"], sort_keys=True) for result in results[:seeds]}) == 1:
        found.append(EQUAL_SEEDS_NOTE)
    left_out = len(queues_of(results)) - MOST_QUEUES
    if left_out > 0:
        found.append(
            f"the waits of {left_out} more queues, with fewer gangs, are left out here; those of a single profile show all"
        )
    return (*found, UNFINISHED_NOTE)


def _line(metric: Metric, results_by_profile: Mapping[str, Sequence[Result]], comparable: Sequence[int]) -> ComparedMetric:
    values = [[metric.value(result) for result in results] for results in results_by_profile.values()]
    best = best_columns(metric, values, comparable)
    return ComparedMetric(
        metric,
        tuple(_value(metric, name, values[place], is_best=place in best) for place, name in enumerate(results_by_profile)),
    )


def _value(metric: Metric, profile: str, values: Sequence[float | None], *, is_best: bool) -> ComparedValue:
    found = interval([value for value in values if value is not None])
    if found is None:
        return ComparedValue(profile, None, None, metric.written(None), is_best)
    half = found.half if isfinite(found.half) else None
    return ComparedValue(profile, found.mean, half, interval_text(metric, found), is_best)


def interval_text(metric: Metric, found: Interval) -> str:
    """Write a mean with half of the width of its interval, if that is known."""
    return metric.written(found.mean) + (f" ±{metric.written(found.half)}" if isfinite(found.half) else "")


# --- stars ---------------------------------------------------------------------------------------------------------------


def best_columns(metric: Metric, columns: Sequence[Sequence[float | None]], comparable: Sequence[int]) -> set[int]:
    """Return which profiles are best in a metric; none where all are equal, nothing is better, or nothing can be told."""
    known = {place: found for place in comparable if (found := _mean(columns[place])) is not None}
    if metric.better is None or len(known) < 2:
        return set()
    leader = (max if metric.better == "more" else min)(known, key=lambda place: known[place])
    equals = {place for place in known if list(columns[place]) == list(columns[leader])}
    others = set(known) - equals
    return equals if others and all(_is_real(columns[leader], columns[place]) for place in others) else set()


def _mean(values: Sequence[float | None]) -> float | None:
    found = interval([value for value in values if value is not None])
    return None if found is None else found.mean


def _is_real(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Tell whether a difference is more than chance; where there is one seed, that cannot be asked."""
    difference = paired(one, other)
    if difference is None or len(one) == 1:
        return difference is not None and difference.mean != 0
    return difference.is_real


def comparable_profiles(columns: Sequence[Sequence[Result]]) -> list[int]:
    """Return the profiles that can be compared in every seed."""
    rows = zip(*columns, strict=True)
    found = [comparable(row) for row in rows]
    return [place for place in range(len(columns)) if all(place in row for row in found)]


def comparable(results: Sequence[Result]) -> list[int]:
    """Return which results of one seed can be compared: all, if they are equally long, or those with the same fate of gangs."""
    if all(result["ending"] == End.REACHED for result in results) and len({result["seconds"] for result in results}) == 1:
        return list(range(len(results)))
    fates = [result.get("fate") or fate_of(result) for result in results]
    most = max((fate[:2] for fate in fates), default=(0, 0))
    leading = [place for place, fate in enumerate(fates) if fate[:2] == most]
    is_same = len({fates[place] for place in leading}) == 1
    return [place for place in leading if is_same and not results[place]["deadlocks"]]


def fate_of(result: Result) -> tuple[int, int, str]:
    """Return how many gangs finished and started, and a digest of which."""
    started, finished = (
        sorted(gang["name"] for gang in result["gangs"] if gang[moment] is not None) for moment in ("started", "finished")
    )
    return len(finished), len(started), sha256("\n".join((*finished, "", *started)).encode()).hexdigest()


def outline(result: Result) -> Result:
    """Return of a result what can be compared, without its gangs and pictures."""
    kept = ("profile", "seed", "seconds", "ending", "resource", "metrics", "deadlocks")
    return {**{key: result[key] for key in kept}, "fate": fate_of(result)}
