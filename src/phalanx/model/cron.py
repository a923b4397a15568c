"""Moments that come again, written as in a crontab: minute, hour, day of month, month, day of week; in UTC or another time zone."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple

from phalanx.errors import ConfigError

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
MOST_DIGITS = 9
LONGEST_DAYS = 366 * 8
"""How far a moment is looked for: the 29th of February may be eight years away."""
FIELDS_BY_WORD = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip


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
        """Read five fields, or a word for them: ``0 0 * * mon`` is every Monday at midnight, ``@hourly`` every full hour."""
        parts = FIELDS_BY_WORD.get(text.strip().lower(), text.lower()).split()
        if len(parts) != len(_FIELDS):
            names = ", ".join(field.name for field in _FIELDS)
            raise ConfigError(f"{text!r} is not a schedule; write five fields: {names}, for example '0 0 * * mon'")
        minutes, hours, self._days, self._months, days = (_values(part, field) for part, field in zip(parts, _FIELDS, strict=True))
        self._minutes = sorted((hour * 60 + minute for hour in hours for minute in minutes), reverse=True)
        self._weekdays = {day % 7 for day in days}
        is_free = parts[2].startswith("*") or parts[4].startswith("*")
        self._agree: Callable[[tuple[bool, bool]], bool] = all if is_free else any

    def last(self, now: float, zone: tzinfo = UTC) -> float | None:
        """Return the latest moment of the schedule that is not after now; None when there is none for years."""
        today = datetime.fromtimestamp(now, zone).date()
        for back in range(LONGEST_DAYS):
            found = max((moment for moment in self._moments(today - timedelta(days=back), zone) if moment <= now), default=None)
            if found is not None:
                return found
        return None

    def next(self, now: float, zone: tzinfo = UTC) -> float | None:
        """Return the first moment of the schedule after now; None when there is none for years."""
        today = datetime.fromtimestamp(now, zone).date()
        for ahead in range(LONGEST_DAYS):
            found = min((moment for moment in self._moments(today + timedelta(days=ahead), zone) if moment > now), default=None)
            if found is not None:
                return found
        return None

    def _moments(self, day: date, zone: tzinfo) -> Iterator[float]:
        """Yield the moments of a day. What a clock skips in spring does not happen, what it shows twice in autumn happens twice."""
        if not self._has(day):
            return
        start = datetime(day.year, day.month, day.day, tzinfo=zone)
        for minute in self._minutes:
            wall = start.replace(hour=minute // 60, minute=minute % 60)
            for fold in (0,) if zone is UTC else (0, 1):
                moment = wall.replace(fold=fold).timestamp()
                if zone is UTC or _shows(moment, wall, fold):
                    yield moment

    def _has(self, day: date) -> bool:
        """Tell whether a day counts: if both kinds of days are restricted, either will do, as cron has it."""
        weekday = day.isoweekday() % 7
        return day.month in self._months and self._agree((day.day in self._days, weekday in self._weekdays))


def _shows(moment: float, wall: datetime, fold: int) -> bool:
    """Tell whether clocks of a zone show this at that moment, for the first or the second time."""
    found = datetime.fromtimestamp(moment, wall.tzinfo)
    return found.replace(tzinfo=None, fold=0) == wall.replace(tzinfo=None) and found.fold == fold


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
    if first > last or (slash and not (_is_number(step) and int(step))):
        raise _wrong(text, field)
    return range(first, last + 1, int(step) if slash else 1)


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= MOST_DIGITS


def _number(text: str, field: _Field) -> int:
    if text in field.words:
        return field.words.index(text) + field.low
    if not _is_number(text) or not field.low <= int(text) <= field.high:
        raise _wrong(text, field)
    return int(text)


def _wrong(text: str, field: _Field) -> ConfigError:
    return ConfigError(f"{text!r} is no {field.name}; write {field.low} to {field.high}, a list, a range, '*' or '*/2'")
