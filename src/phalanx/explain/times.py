"""Moments as people read them: how long ago or how soon, and when exactly."""

from phalanx.model.duration import age_text
from phalanx.model.moment import moment_text


def at_text(moment: float) -> str:
    """Write a moment to the second: ``2026-01-01T12:00:00Z``."""
    return moment_text(int(moment))


def due_text(moment: float, now: float) -> str:
    """Say how long ago a moment was, or how soon it comes, and when it is: ``12m ago (2026-01-01T12:00:00Z)``."""
    if not moment:
        return "at an unknown time"
    distance = age_text(abs(now - moment))
    return f"{f'{distance} ago' if moment <= now else f'in {distance}'} ({at_text(moment)})"
