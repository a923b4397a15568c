"""Durations as Kubernetes objects and configurations write them: ``1h30m``, ``90s``, ``500ms``."""

import re
from functools import lru_cache
from math import inf, isnan

_PART = re.compile(r"(\d++(?:\.\d*+)?|\.\d++)(ns|us|µs|ms|s|m|h)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


NEVER = "never"
DAY_SECONDS = 86_400.0
RANGE = ".."
"""Between the shortest and the longest of a range of durations."""
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?")


def seconds_of(text: str) -> float | None:
    """Return a duration such as ``1h30m`` in seconds; None when it is not one."""
    text = text.strip()
    if not _WHOLE.fullmatch(text):
        return 0.0 if text == "0" else None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def seconds_in(text: str) -> float | None:
    """Return the seconds of a duration such as 90s, 2h30m, 7d12h or a plain number of seconds; None when it is none of these."""
    if _NUMBER.fullmatch(text):
        return float(text)
    days, sign, rest = text.rpartition("d")
    if not sign:
        return seconds_of(text)
    more = seconds_of(rest) if rest else 0.0
    return None if more is None or not _NUMBER.fullmatch(days) else float(days) * DAY_SECONDS + more


@lru_cache(maxsize=1 << 14)
def range_in(text: str) -> tuple[float, float] | None:
    """Return the shortest and the longest of a range such as 30m..2h, twice the same for one duration; None when it is neither."""
    low, sign, high = (part.strip() for part in text.partition(RANGE))
    first = seconds_in(low)
    last = seconds_in(high) if sign else first
    return None if first is None or last is None or last < first else (first, last)


def grace_of(text: str) -> float | None:
    """Return a period, given as a duration or as a number of seconds: `inf` for ``never`` and below 0, None when it is none."""
    text = text.strip()
    if text.lower() == NEVER:
        return inf
    try:
        seconds = float(text)
    except ValueError:
        return inf if text.startswith("-") and seconds_of(text[1:]) else seconds_of(text)
    return None if isnan(seconds) else (inf if seconds < 0 else seconds)


def age_text(seconds: float) -> str:
    """Write how long something has lasted, as kubectl does: 45s, 12m, 3h20m, 5d."""
    whole = max(int(seconds), 0)
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 120:
        return f"{minutes}m"
    return f"{hours}h{minutes % 60}m" if hours < 10 else f"{hours}h" if hours < 48 else f"{days}d"
