"""What queues have used lately, as a part of what the cluster had: samples integrated over a window, old ones counting less.

A sample holds until the next one of its series; the last one until now, but not longer than the staleness period. Time counts
half as much for every half-life that has passed since. Both what a queue used and what the cluster had are weighed so, and the
quotient is the usage: 0.25 for a queue that had a quarter of the cluster all the time. If nothing was measured for longer than the
staleness period, nothing is known and usage is 0.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from phalanx.errors import ConfigError
from phalanx.model.cron import Cron
from phalanx.model.duration import seconds_of
from phalanx.model.queue_usage import RESOURCES, QueueHistory, Series

WEEK_SECONDS = 7 * 86400.0
STALE_SECONDS = 300.0
KINDS = ("sliding", "tumbling", "cron")


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """Which part of the past counts, and how much."""

    kind: str = "sliding"
    size_seconds: float = WEEK_SECONDS
    half_life_seconds: float = 0.0
    """0: everything in the window counts the same."""
    first_start: float = 0.0
    """When a tumbling window began for the first time."""
    schedule: Cron | None = None
    """When a cron window begins anew."""
    stale_seconds: float = STALE_SECONDS

    def start(self, now: float) -> float:
        """Return when the present window began."""
        earliest = now - self.size_seconds
        if self.kind == "tumbling":
            return now - (now - self.first_start) % self.size_seconds
        if self.kind == "cron" and self.schedule is not None:
            last = self.schedule.last(now)
            return earliest if last is None else max(last, earliest)
        return earliest


def usage_by_queue(
    history: QueueHistory | None, window: UsageWindow, now: float, capacity: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Return the usage of every queue that was measured, by resource; `capacity` stands in where the cluster's was not."""
    if history is None or now - history.measured > window.stale_seconds:
        return {}
    totals = {name: _capacity(history, window, now, name, capacity.get(name, 0.0)) for name in RESOURCES}
    return {
        queue: {
            name: _together(lines, window, now) / totals[name] if totals.get(name, 0.0) > 0 else 0.0 for name, lines in used.items()
        }
        for queue, used in history.used.items()
    }


def _capacity(history: QueueHistory, window: UsageWindow, now: float, resource: str, amount: float) -> float:
    measured = history.capacity.get(resource)
    if measured:
        return _together(measured, window, now)
    return amount * _weight(window.start(now), now, now, window.half_life_seconds)


def _together(lines: tuple[Series, ...], window: UsageWindow, now: float) -> float:
    return sum(integral(series, window, now) for series in lines)


def integral(series: Series, window: UsageWindow, now: float) -> float:
    """Return amount times seconds over the window, each moment weighed by its age."""
    start = window.start(now)
    ends = [*(moment for moment, _ in series[1:]), series[-1][0] + window.stale_seconds] if series else []
    return sum(
        amount * _weight(max(moment, start), min(end, now), now, window.half_life_seconds)
        for (moment, amount), end in zip(series, ends, strict=True)
    )


def _weight(begin: float, end: float, now: float, half_life: float) -> float:
    """Return how much the time between two moments counts: its seconds, or less if old moments count less."""
    if end <= begin:
        return 0.0
    if not half_life:
        return end - begin
    # The integral of 0.5 ** (age / half_life) over the ages between both moments.
    return half_life / math.log(2) * (_left(now - end, half_life) - _left(now - begin, half_life))


def _left(age: float, half_life: float) -> float:
    return float(0.5 ** (age / half_life))


# --- settings ------------------------------------------------------------------------------------------------------------

_DURATIONS = {"windowSize": WEEK_SECONDS, "halfLifePeriod": 0.0, "stalenessPeriod": STALE_SECONDS}
SETTINGS = ("windowType", *_DURATIONS, "tumblingWindowStartTime", "cronWindowDurationString")


def read_window(given: Mapping[str, object], where: str) -> UsageWindow:
    """Read a window by KAI's names; `where` says in an error whose it is."""
    for key in given:
        if key not in SETTINGS:
            raise ConfigError(f"{where}.{key}: unknown setting; known: {', '.join(SETTINGS)}")
    kind = str(given.get("windowType") or "sliding")
    if kind not in KINDS:
        raise ConfigError(f"{where}.windowType: {kind!r} is unknown; write 'sliding', 'tumbling' or 'cron'")
    size, half_life, stale = (_seconds(given, key, default, where) for key, default in _DURATIONS.items())
    if not size:
        raise ConfigError(f"{where}.windowSize: a window of no time holds nothing; write for example '168h'")
    return UsageWindow(kind, size, half_life, _first_start(given, where), _schedule(given, kind, where), stale)


def _seconds(given: Mapping[str, object], key: str, default: float, where: str) -> float:
    text = given.get(key)
    if text is None:
        return default
    seconds = seconds_of(str(text))
    if seconds is None:
        raise ConfigError(f"{where}.{key}: {text!r} is not a duration; write for example '168h'")
    return seconds


def _first_start(given: Mapping[str, object], where: str) -> float:
    text = str(given.get("tumblingWindowStartTime") or "1970-01-01T00:00:00Z")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        example = "write for example '2026-01-01T00:00:00Z'"
        raise ConfigError(f"{where}.tumblingWindowStartTime: {text!r} is not a time; {example}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _schedule(given: Mapping[str, object], kind: str, where: str) -> Cron | None:
    text = given.get("cronWindowDurationString")
    if kind == "cron" and not text:
        raise ConfigError(f"{where}.cronWindowDurationString: missing; say when the window begins anew, for example '0 0 * * mon'")
    try:
        return Cron(str(text)) if text else None
    except ConfigError as problem:
        raise ConfigError(f"{where}.cronWindowDurationString: {problem}") from problem
