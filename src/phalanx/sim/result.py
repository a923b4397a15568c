"""What came out of a simulation, as one plain dict: gangs, evictions, deadlocks, metrics, and pictures of nodes and queues.

It is made the same way from a world that has come to its end and from one that was interrupted. Times are seconds from the
start. Gangs that have not started count with the time they have waited until the end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.explain.reason_text import as_counted
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey
from phalanx.sim import curves
from phalanx.sim.autoscaler_result import autoscaler_metrics, autoscaler_result
from phalanx.sim.curves import Changes, Numbers
from phalanx.sim.deadlocks import deadlocks
from phalanx.sim.fairness import fairness
from phalanx.sim.queue_claims import queue_claims
from phalanx.sim.recorder import EvictionRecord, GangRecord, Recorder
from phalanx.sim.size_classes import SIZE_CLASSES, size_class
from phalanx.sim.work_done import lost_work_of, slowdown_of, work_of
from phalanx.sim.world import World

MOST_ROWS, MOST_COLUMNS = 200, 200
DIGITS = 6
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be said about a simulation besides what happened in it."""

    profile: str
    seed: int = 0
    end: float | None = None
    """When it ended, in seconds from the start, if not at the last moment of the world."""
    ending: str = "reached"
    """Why it ended: one of `playback.End`."""
    is_quiet: bool = False
    """Nothing more could happen."""
    weight_by_queue: Mapping[str, float] | None = None
    """By which queues are entitled to their shares, if not by the weights that the scheduler sees."""


def result(world: World, run: Run) -> dict[str, Any]:
    """Return everything about a simulation."""
    recorder = world.recorder
    end = world.now - world.start if run.end is None else run.end
    whys, slowdowns = world.reasons(), _slowdowns(world, end)
    gangs = [{**_gang(record, end, whys), "slowdown": slowdowns[key]} for key, record in recorder.gangs.items()]
    held, offered, names = _node_changes(recorder)
    fair = fairness(list(recorder.gangs.values()), offered, queue_claims(world, run.weight_by_queue), end)
    found: dict[str, Any] = _rounded({
        "profile": run.profile, "seed": run.seed, "start": moment_text(int(world.start)),
        "seconds": end, "ending": run.ending, "resource": recorder.resource,
        "gangs": gangs, "evictions": [_eviction(record) for record in recorder.evictions],
        "timeouts": [{"time": record.moment, "gang": record.gang, "message": record.message} for record in recorder.timeouts],
        "deadlocks": deadlocks(recorder, end, is_quiet=run.is_quiet),
        "metrics": {**_use(recorder, held, offered, end), "sessions": world.loop.count, **_counts(recorder, gangs),
                    **_work(recorder, end, offered.total(end)), "makespan": _makespan(gangs, end),
                    "slowdown": distribution(slowdowns.values()), "fairness": fair.index, "belowDeserved": fair.below,
                    **_waits(gangs)},
        "nodes": _nodes(held, offered, names, end), "queues": _queues(recorder, end),
    })  # fmt: skip
    return found if world.autoscaler is None else _with_autoscaler(found, world, end)


def _with_autoscaler(found: dict[str, Any], world: World, end: float) -> dict[str, Any]:
    """Add what the autoscaler did; a node is nothing while it is not there."""
    assert world.autoscaler is not None, "asked for where there is one"
    own = _rounded(autoscaler_result(world.autoscaler.provider, world.recorder.resource, world.start + end))
    metrics = {**found["metrics"], "autoscaler": _rounded(autoscaler_metrics(own))}
    held, offered, names = _node_changes(world.recorder)
    nodes = _nodes(held, offered, names, end, shows_gaps=True)
    return {**found, "metrics": metrics, "nodes": _rounded(nodes), "autoscaler": own}


def _rounded(value: Any) -> Any:
    """Return the same with numbers of a few digits: sums of floats differ in the last ones, and nobody reads them."""
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


# --- gangs ---------------------------------------------------------------------------------------------------------------


def _gang(record: GangRecord, end: float, whys: Mapping[str, str]) -> dict[str, Any]:
    waits = not record.spans or (record.spans[-1][1] is not None and record.finished is None)
    run = sum((end if to is None else to) - since for since, to in record.spans)
    return {
        "name": record.name, "queue": record.queue, "priority": record.priority, "tasks": record.tasks, "minimum": record.minimum,
        "amount": record.amount, "submitted": record.submitted, "started": record.started, "finished": record.finished,
        "evicted": record.evicted, "wait": (end if record.started is None else record.started) - record.submitted, "run": run,
        "spans": [list(span) for span in record.spans], "why": whys.get(record.name, "") if waits else "",
    }  # fmt: skip


def _eviction(record: EvictionRecord) -> dict[str, Any]:
    return {
        "time": record.moment, "pod": record.pod, "gang": record.gang, "action": record.action, "for": record.preemptor,
        "message": record.message,
    }  # fmt: skip


def _slowdowns(world: World, end: float) -> dict[GangKey, float]:
    records = world.recorder.gangs.items()
    expected = {key: world.work.expected_seconds(key) for key, record in records if record.finished is None}
    return {key: slowdown_of(record, expected.get(key), end) for key, record in records}


# --- metrics -------------------------------------------------------------------------------------------------------------


def _use(recorder: Recorder, held: Changes, offered: Changes, end: float) -> dict[str, float]:
    moments, levels = [moment for moment, _ in recorder.useful], [level for _, level in recorder.useful]
    useful = curves.steps(moments, [0] * len(moments), levels)
    whole = offered.total(end)
    allocation, occupancy = (changes.total(end) / whole if whole else 0.0 for changes in (held, useful))
    return {"allocation": allocation, "occupancy": occupancy, "fragmentation": curves.fragmentation(held, offered, end)}


def _work(recorder: Recorder, end: float, capacity: float) -> dict[str, float]:
    """Return what was useful and what was lost, in amount times seconds, and as parts of all that nodes offered."""
    lost = sum(lost_work_of(record, end) for record in recorder.gangs.values())
    useful = sum(work_of(record, end) for record in recorder.gangs.values()) - lost
    parts = (amount / capacity if capacity else 0.0 for amount in (useful, lost))
    return dict(zip(("goodput", "lostWork", "goodputPart", "lostPart"), (useful, lost, *parts), strict=True))


def _counts(recorder: Recorder, gangs: list[dict[str, Any]]) -> dict[str, int]:
    started, finished = (sum(gang[key] is not None for gang in gangs) for key in ("started", "finished"))
    return {
        "gangs": len(gangs), "started": started, "finished": finished, "waiting": sum(_is_waiting(gang) for gang in gangs),
        "evictions": len(recorder.evictions), "evictedGangs": sum(gang["evicted"] > 0 for gang in gangs),
    }  # fmt: skip


def _is_waiting(gang: Mapping[str, Any]) -> bool:
    return gang["finished"] is None and not (gang["spans"] and gang["spans"][-1][1] is None)


def _makespan(gangs: list[dict[str, Any]], end: float) -> float | None:
    """Return the seconds from the first arrival to the last end, or to the end of all where a gang has not come to its own."""
    ends = [end if gang["finished"] is None else gang["finished"] for gang in gangs]
    return max(ends) - min(gang["submitted"] for gang in gangs) if ends else None


def _waits(gangs: list[dict[str, Any]]) -> dict[str, Any]:
    by_queue: dict[str, list[float]] = {queue: [] for queue in sorted({gang["queue"] for gang in gangs})}
    by_size: dict[str, list[float]] = {name: [] for name in SIZE_CLASSES}
    for gang in gangs:
        by_queue[gang["queue"]].append(gang["wait"])
        by_size[size_class(gang["tasks"])].append(gang["wait"])
    return {
        "wait": distribution([gang["wait"] for gang in gangs]),
        "waitByQueue": {name: distribution(waits) for name, waits in by_queue.items()},
        "waitBySize": {name: distribution(waits) for name, waits in by_size.items() if waits},
    }


def distribution(values: Iterable[float]) -> dict[str, float]:
    """Return count, mean, percentiles and the largest; all 0 when there are none."""
    found = np.array(list(values), dtype=np.float64)
    if not found.size:
        return {"count": 0, "mean": 0.0, **{f"p{part}": 0.0 for part in PERCENTILES}, "max": 0.0}
    parts = np.percentile(found, PERCENTILES)
    named = {f"p{part}": float(value) for part, value in zip(PERCENTILES, parts, strict=True)}
    return {"count": int(found.size), "mean": float(found.mean()), **named, "max": float(found.max())}


# --- pictures ------------------------------------------------------------------------------------------------------------


def _node_changes(recorder: Recorder) -> tuple[Changes, Changes, list[str]]:
    """Return what is held and what is offered on nodes, and their names in the order of the rows."""
    names = {name for _, name, _ in recorder.capacity_changes} | {change.node for change in recorder.changes}
    ordered = sorted(names, key=as_counted)
    rows = {name: row for row, name in enumerate(ordered)}
    held = Changes.of(
        [change.moment for change in recorder.changes], [rows[change.node] for change in recorder.changes],
        [change.amount for change in recorder.changes],
    )  # fmt: skip
    moments, places, levels = (
        ([moment for moment, _, _ in recorder.capacity_changes], [rows[name] for _, name, _ in recorder.capacity_changes],
         [level for _, _, level in recorder.capacity_changes])
    )  # fmt: skip
    return held, curves.steps(moments, places, levels), ordered


def _edges(end: float) -> Numbers:
    return np.linspace(0.0, end, MOST_COLUMNS + 1)


def _nodes(held: Changes, offered: Changes, names: list[str], end: float, *, shows_gaps: bool = False) -> dict[str, Any]:
    """Return which part of each node is held over time; with `shows_gaps` None while it offers nothing."""
    if end <= 0 or not names:
        return {"names": [], "times": [], "held": []}
    size = -(-len(names) // MOST_ROWS)
    groups = [names[first : first + size] for first in range(0, len(names), size)]
    used, whole = (
        curves.picture(Changes(part.moments, part.rows // size, part.amounts), len(groups), _edges(end)) for part in (held, offered)
    )
    parts = np.divide(used, whole, out=np.zeros_like(used), where=whole > curves.TINY)
    labels = [group[0] if len(group) == 1 else f"{group[0]}..{group[-1]}" for group in groups]
    shown = np.clip(parts, 0.0, 1.0)
    if shows_gaps:
        shown = np.where(whole > curves.TINY, shown, np.nan)
    rows = [[None if value != value else value for value in row] for row in shown.tolist()] if shows_gaps else shown.tolist()
    return {"names": labels, "times": _edges(end)[:-1].tolist(), "held": rows}


def _queues(recorder: Recorder, end: float) -> dict[str, Any]:
    names = sorted({change.queue for change in recorder.changes if change.queue} | {gang.queue for gang in recorder.gangs.values()})
    if end <= 0 or not names:
        return {}
    rows = {name: row for row, name in enumerate(names)}
    known = [change for change in recorder.changes if change.queue in rows]
    changes = Changes.of([item.moment for item in known], [rows[item.queue] for item in known], [item.amount for item in known])
    held, times = curves.picture(changes, len(names), _edges(end)), _edges(end)[:-1].tolist()
    return {
        name: {"times": times, "held": held[row].tolist(), "deserved": _deserved(recorder, name, _edges(end)[1:])}
        for name, row in rows.items()
    }


def _deserved(recorder: Recorder, queue: str, moments: Numbers) -> list[float]:
    """Return what a queue deserved at these moments, as the session before each found; empty when none ever said."""
    known = [(moment, level) for moment, name, level in recorder.deserved if name == queue]
    if not known:
        return []
    places = np.searchsorted([moment for moment, _ in known], moments, side="right") - 1
    levels = np.array([level for _, level in known])
    found: list[float] = levels[np.maximum(places, 0)].tolist()
    return found
