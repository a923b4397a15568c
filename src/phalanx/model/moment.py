"""Moments in time as Kubernetes writes them; inside they are seconds since 1970."""

from datetime import UTC, datetime
from functools import lru_cache


def moment_of(text: str) -> float | None:
    """Return the moment that a text names; None when it names none. A time without a zone is in UTC on every machine."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def micro_text(moment: float) -> str:
    """Write a moment to the microsecond, as leases and events have it."""
    return f"{moment_text(int(moment)).removesuffix('Z')}.{int(moment % 1 * 1e6):06d}Z"


@lru_cache(maxsize=1024)
def moment_text(moment: float) -> str:
    """Write a moment, with fractions of a second only if there are any."""
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
