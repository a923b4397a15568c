"""Results packed for the charts of the report page: short rows, and curves no finer than a screen can show.

Curves are steps: a value holds from its time to the next one, the last to the end of the simulation.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phalanx.sim.report_text import Result, resource_word
from phalanx.sim.size_classes import size_words

HEAT_COLUMNS, HEAT_ROWS = 400, 200
CURVE_POINTS = 1000
FIELDS = (
    "name",
    "queue",
    "priority",
    "tasks",
    "minimum",
    "amount",
    "submitted",
    "started",
    "finished",
    "evicted",
    "wait",
    "run",
    "why",
)
"""Of a gang, as they are; its size, spans, marks of evictions and the span of a deadlock follow."""

Packed = dict[str, Any]  # becomes JSON
Numbers = NDArray[np.float64]


def pack(result: Result) -> Packed:
    """Return what the charts of one result need."""
    queues = sorted({gang["queue"] for gang in result["gangs"]})
    return {
        "seconds": _short(result["seconds"]),
        "resource": resource_word(result),
        "queues": queues,
        "sizes": [size_words(name) for name in result["metrics"]["waitBySize"]],
        "fields": [*FIELDS, "size", "spans", "marks", "stuck"],
        "gangs": _gangs(result, {queue: index for index, queue in enumerate(queues)}),
        "heat": heat(result),
        "shares": [_share(name, curve, result["seconds"]) for name, curve in result["queues"].items()],
    }


def _gangs(result: Result, index_by_queue: dict[str, int]) -> list[list[Any]]:
    marks, stuck, sizes = _marks(result), _stuck_since(result), _least_tasks(result)
    ordered = sorted(result["gangs"], key=lambda gang: (gang["queue"], gang["submitted"], gang["name"]))
    return [
        [
            *_plain(gang, index_by_queue),
            bisect_right(sizes, gang["tasks"]) - 1,
            spans := [_shortened(span) for span in gang["spans"]],
            marks.get(gang["name"], []),
            stuck_span(spans, stuck.get(gang["name"])),
        ]
        for gang in ordered
    ]


def _plain(gang: Packed, index_by_queue: dict[str, int]) -> list[Any]:
    return [index_by_queue[gang[field]] if field == "queue" else _short(gang[field]) for field in FIELDS]


def _least_tasks(result: Result) -> list[int]:
    """Return the least number of tasks of each size, ascending; the name of a size begins with it: "2-4"."""
    return [int(name.rstrip("+").partition("-")[0]) for name in result["metrics"]["waitBySize"]]


def stuck_span(spans: list[list[Any]], since: float | None) -> list[float | None] | None:  # Any: JSON
    """Return from when to when a deadlock held a gang: until it became whole after all, or to the end (None)."""
    if since is None:
        return None
    return [_short(since), next((begin for begin, _ in spans if begin > since), None)]


def _stuck_since(result: Result) -> dict[str, float]:
    since: dict[str, float] = {}
    for deadlock in result["deadlocks"]:
        for gang in deadlock["gangs"]:
            since[gang] = min(deadlock["since"], since.get(gang, deadlock["since"]))
    return since


def _marks(result: Result) -> dict[str, list[float]]:
    """Return when each gang lost pods, each moment once."""
    moments: dict[str, dict[float, None]] = {}
    for eviction in result["evictions"]:
        moments.setdefault(eviction["gang"], {})[_short(eviction["time"])] = None
    return {gang: list(found) for gang, found in moments.items()}


# --- nodes ---------------------------------------------------------------------------------------------------------------


def heat(result: Result) -> Packed:
    """Return per cent held, in even columns of time and rows of one node or several neighbours; -1 where there was no node."""
    nodes = result["nodes"]
    if not nodes["names"] or not nodes["times"]:
        return {"rows": [], "values": []}
    held = np.array(nodes["held"], dtype=np.float64)
    columns = even_columns(np.array(nodes["times"], dtype=np.float64), held, result["seconds"], HEAT_COLUMNS)
    edges = np.linspace(0, len(held), min(HEAT_ROWS, len(held)) + 1).round().astype(int)
    rows = [_mean_rows(columns[begin:end]) for begin, end in pairwise(edges)]
    labels = [_row_label(nodes["names"][begin:end]) for begin, end in pairwise(edges)]
    values = [np.where(np.isnan(row), -1, np.round(np.clip(row, 0, 1) * 100)).astype(int).tolist() for row in rows]
    return {"rows": labels, "values": values}


def _row_label(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)} nodes)"


def _mean_rows(rows: Numbers) -> Numbers:
    known = ~np.isnan(rows)
    sums, counts = np.where(known, rows, 0).sum(axis=0), known.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def node_means(result: Result) -> list[tuple[str, float | None, float | None]]:
    """Return each node with what was held of it on average and at most."""
    nodes = result["nodes"]
    if not nodes["names"] or not nodes["times"]:
        return [(name, None, None) for name in nodes["names"]]
    held = np.array(nodes["held"], dtype=np.float64)
    means = even_columns(np.array(nodes["times"], dtype=np.float64), held, result["seconds"], 1)[:, 0]
    most = np.where(np.isnan(held), -1, held).max(axis=1)
    found = zip(nodes["names"], means.tolist(), most.tolist(), strict=True)
    return [(name, _known(mean), None if top < 0 else top) for name, mean, top in found]


# --- step curves ---------------------------------------------------------------------------------------------------------


def even_columns(times: Numbers, values: Numbers, seconds: float, count: int) -> Numbers:
    """Return the mean of step curves (row, time) in `count` even columns from 0 to `seconds`; NaN where nothing is known."""
    edges = np.linspace(0, max(seconds, 1e-9), count + 1)
    known = ~np.isnan(values)
    areas = _areas_until(edges, times, np.where(known, values, 0))
    spans = _areas_until(edges, times, known.astype(np.float64))
    sums, lengths = np.diff(areas, axis=1), np.diff(spans, axis=1)
    return np.where(lengths > 1e-12, sums / np.maximum(lengths, 1e-12), np.nan)


def _areas_until(moments: Numbers, times: Numbers, values: Numbers) -> Numbers:
    """Return the area under step curves (row, time) up to each moment."""
    steps = np.diff(times)
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values[:, :-1] * steps, axis=1)], axis=1)
    last = np.clip(np.searchsorted(times, moments, side="right") - 1, 0, len(times) - 1)
    return np.asarray(sums[:, last] + values[:, last] * np.maximum(moments - times[last], 0))


def curve_mean(curve: Packed, key: str, seconds: float) -> float | None:
    """Return the mean of a queue's curve over the whole simulation; None where it was never known."""
    if not curve["times"] or not curve[key]:
        return None
    mean = even_columns(np.array(curve["times"], dtype=np.float64), _values(curve[key])[np.newaxis], seconds, 1)[0, 0]
    return _known(float(mean))


def _share(name: str, curve: Packed, seconds: float) -> Packed:
    """Return the curves of a queue; one that is empty was never known."""
    curve = {key: values or [None] * len(curve["times"]) for key, values in curve.items()}
    if len(curve["times"]) <= CURVE_POINTS:
        return {
            "queue": name,
            "times": _shortened(curve["times"]),
            "held": _shortened(curve["held"]),
            "deserved": _shortened(curve["deserved"]),
        }
    both = np.stack([_values(curve["held"]), _values(curve["deserved"])])
    held, deserved = even_columns(np.array(curve["times"], dtype=np.float64), both, seconds, CURVE_POINTS).tolist()
    times = np.linspace(0, seconds, CURVE_POINTS, endpoint=False).tolist()
    return {"queue": name, "times": _shortened(times), "held": _shortened(held), "deserved": _shortened(deserved)}


def _values(values: Sequence[float | None]) -> Numbers:
    """Return values as an array, NaN where one is missing or has no end."""
    array = np.array(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)


def _shortened(values: Sequence[float | None]) -> list[Any]:
    return [_short(value) for value in values]


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def _short(value: Any) -> Any:  # a number becomes shorter, all else stays
    if not isinstance(value, float):
        return value
    if not isfinite(value):
        return None
    return int(value) if value.is_integer() else round(value, 3)
