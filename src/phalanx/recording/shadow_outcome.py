"""What a shadow reports: the cluster as others scheduled it beside the same work as we would have, as plain data.

The other world is a simulation, so its differences to the recording are worth no more than the simulator. How far that is from what
happens is measured where it can be: by a simulation under the rules that resemble those of the recorded scheduler. Gangs that were
half-started are left out of that measure: which gangs meet halfway is chance, and no simulation repeats it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from phalanx.model.resources import CPU, GPU
from phalanx.recording.cluster_watch import ClusterWatch, Deadlock, RoomSpan
from phalanx.recording.half_starts import HalfStart
from phalanx.recording.moment import time_text
from phalanx.recording.other_outcome import AGREED_SECONDS, ComparedGang, Distance, distance, totals
from phalanx.recording.use_over_time import UseOverTime

Json = dict[str, Any]  # Any: as JSON has it
EARLIER, LATER, SAME = "earlier", "later", "same"
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Worlds:
    """The gangs in both worlds, and how far the simulator is from what happened."""

    rows: Sequence[ComparedGang]
    """What was recorded; `same` under the rules that resemble it, `other` under ours."""
    distance: Distance

    @classmethod
    def of(cls, rows: Sequence[ComparedGang], half_started: Iterable[str]) -> "Worlds":
        """Measure the distance over the gangs that did not meet halfway."""
        left_out = set(half_started)
        return cls(rows, distance(row for row in rows if row.name not in left_out))

    @property
    def margin(self) -> float:
        """Differences of waits that are no larger mean nothing, in seconds."""
        return max(AGREED_SECONDS, self.distance.high)

    def verdict(self, row: ComparedGang) -> str:
        """Say whether a gang starts earlier or later in our world; nothing for one that ran before."""
        if row.ran_before:
            return ""
        difference = gain(row)
        return SAME if abs(difference) <= self.margin else LATER if difference > 0 else EARLIER

    def count(self, verdict: str) -> int:
        """Count the gangs of a verdict."""
        return sum(self.verdict(row) == verdict for row in self.rows)

    def document(self) -> Json:
        """Return it as plain data."""
        rows = sorted(self.rows, key=lambda row: (-abs(gain(row)), row.name))
        return {
            **{word: self.count(word) for word in (EARLIER, LATER, SAME)},
            "gangs": [_gang(row, self.verdict(row)) for row in rows],
            "totals": {
                "recorded": totals(self.rows, lambda row: row.recorded).document(),
                "ours": totals(self.rows, lambda row: row.other).document(),
            },
            "timeToEnd": _time_to_end(self.rows),
        }


def gain(row: ComparedGang) -> float:
    """Return how much longer a gang waits in our world than it did, in seconds."""
    return row.other.wait - row.recorded.wait


def _time_to_end(rows: Iterable[ComparedGang]) -> Json:
    """Return how long gangs took from their arrival to their end, those that ended in both worlds: evictions cost time there."""
    both = [(row.recorded.end, row.other.end) for row in rows if row.recorded.end is not None and row.other.end is not None]
    recorded, ours = (round(fmean(ends), 3) for ends in zip(*both, strict=True)) if both else (None, None)
    return {"gangs": len(both), "recorded": recorded, "ours": ours}


def _gang(row: ComparedGang, verdict: str) -> Json:
    return {
        "name": row.name, "queue": row.queue, "ranBefore": row.ran_before, "recorded": row.recorded.document(),
        "ours": row.other.document(), "difference": round(gain(row), 3), "verdict": verdict,
    }  # fmt: skip


# --- what was seen -------------------------------------------------------------------------------------------------------


def counted_resource(use: UseOverTime) -> str:
    """Return the resource that is counted: GPUs where there are any."""
    return GPU if use.totals.of(GPU)[2] else CPU


def both_uses(recorded: UseOverTime, simulated: Mapping[str, Any]) -> Json:  # Any: the metrics of a simulation
    """Return which part of the cluster was held, and by gangs that had their minimum and single pods, in both worlds."""
    resource = counted_resource(recorded)
    held, by_whole, offered, given = recorded.totals.of(resource)
    occupancy = simulated.get("occupancy")
    at_work = None if occupancy is None else occupancy + (given / offered if offered else 0.0)  # they are no gangs in a simulation
    ours = {"held": simulated.get("allocation"), "byWholeGangs": at_work}
    return {
        "resource": resource, "recorded": {"held": _part(held, offered), "byWholeGangs": _part(by_whole, offered)},
        "ours": {name: _rounded(part) for name, part in ours.items()},
    }  # fmt: skip


def _part(amount: float, whole: float) -> float | None:
    return _rounded(amount / whole) if whole else None


def _rounded(part: float | None) -> float | None:
    return None if part is None else round(part, 4)


def seen(watch: ClusterWatch, resource: str) -> Json:
    """Return what looks at the cluster showed: half-started gangs, deadlocks, and gangs that waited although there was room."""
    return {
        "halfStarted": [_half_start(half, resource) for half in watch.all_half_starts()],
        "deadlocks": [_deadlock(item) for item in watch.deadlocks],
        "waitedWithRoom": _room(watch.all_room(), watch.room),
        "looks": watch.looks,
    }  # fmt: skip


def _half_start(half: HalfStart, resource: str) -> Json:
    return {
        "gang": half.gang, "placed": half.placed, "minimum": half.minimum, **_span(half.since, half.seen, is_over=half.is_over),
        "heldHours": round(half.held_seconds.get(resource, 0.0) / SECONDS_PER_HOUR, 4),
    }  # fmt: skip


def _deadlock(item: Deadlock) -> Json:
    return {"gangs": list(item.gangs), **_span(item.since, item.seen, is_over=item.is_over)}


def _span(since: float, until: float, *, is_over: bool) -> Json:
    return {"since": time_text(since), "until": time_text(until) if is_over else None, "seconds": round(until - since, 3)}


def _room(spans: Sequence[RoomSpan], current: Mapping[Any, RoomSpan]) -> list[Json]:  # Any: keys of gangs
    """Return the gangs that had room, each once with the sum of its times, the longest first."""
    by_gang: dict[str, list[RoomSpan]] = {}
    for span in spans:
        by_gang.setdefault(span.gang, []).append(span)
    rows = [
        {
            "gang": gang, "since": time_text(found[0].since), "seconds": round(sum(span.seconds for span in found), 3),
            "stillWaits": any(current.get(gang) is span for span in found),
        }
        for gang, found in by_gang.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row["seconds"], row["gang"]))
