"""Moments that come again, written as in a crontab: minute, hour, day of month, month, day of week, in UTC."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from phalanx.errors import ConfigError

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
LONGEST_DAYS = 366 * 8
"""How far back a moment is looked for: the 29th of February may be eight years ago."""


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    words: list[str]


_FIELDS = (
    _Field("minute", 0, 59, []), _Field("hour", 0, 23, []), _Field("day of month", 1, 31, []),
    _Field("month", 1, 12, MONTHS), _Field("day of week", 0, 7, DAYS),
)  # fmt: skip


class Cron:
    """A schedule."""

    def __init__(self, text: str) -> None:
        """Read five fields: ``0 0 * * mon`` is every Monday at midnight."""
        parts = text.lower().split()
        if len(parts) != len(_FIELDS):
            names = ", ".join(field.name for field in _FIELDS)
            raise ConfigError(f"{text!r} is not a schedule; write five fields: {names}, for example '0 0 * * mon'")
        minutes, hours, self._days, self._months, days = (_values(part, field) for part, field in zip(parts, _FIELDS, strict=True))
        self._minutes = sorted((hour * 60 + minute for hour in hours for minute in minutes), reverse=True)
        self._weekdays = {day % 7 for day in days}
        is_free = parts[2].startswith("*") or parts[4].startswith("*")
        self._agree: Callable[[tuple[bool, bool]], bool] = all if is_free else any

    def last(self, now: float) -> float | None:
        """Return the latest moment of the schedule that is not after now; None when there is none for years."""
        today = datetime.fromtimestamp(now, UTC).date()
        for back in range(LONGEST_DAYS):
            day = today - timedelta(days=back)
            if self._has(day):
                start = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
                moments = (start + minute * 60 for minute in self._minutes)
                if (found := next((moment for moment in moments if moment <= now), None)) is not None:
                    return found
        return None

    def _has(self, day: date) -> bool:
        """Tell whether a day counts: if both kinds of days are restricted, either will do, as cron has it."""
        weekday = day.isoweekday() % 7
        return day.month in self._months and self._agree((day.day in self._days, weekday in self._weekdays))


def _values(text: str, field: _Field) -> set[int]:
    return {value for part in text.split(",") for value in _range(part, field)}


def _range(text: str, field: _Field) -> range:
    span, slash, step = text.partition("/")
    low, dash, high = span.partition("-")
    if span == "*":
        first, last = field.low, field.high
    else:
        first = _number(low, field)
        last = _number(high, field) if dash else (field.high if slash else first)
    if first > last or (slash and not (step.isdecimal() and int(step))):
        raise _wrong(text, field)
    return range(first, last + 1, int(step) if slash else 1)


def _number(text: str, field: _Field) -> int:
    if text in field.words:
        return field.words.index(text) + field.low
    if not text.isdecimal() or not field.low <= int(text) <= field.high:
        raise _wrong(text, field)
    return int(text)


def _wrong(text: str, field: _Field) -> ConfigError:
    return ConfigError(f"{text!r} is no {field.name}; write {field.low} to {field.high}, a list, a range, '*' or '*/2'")
