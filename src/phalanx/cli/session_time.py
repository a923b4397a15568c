"""The time of a session that a command holds: the one that was typed, or now."""

from datetime import UTC, datetime

import click


def session_time(text: str | None) -> float:
    """Return the time of a session in seconds since 1970; `text` is what was typed behind --now."""
    from phalanx.dialects.field_values import seconds
    from phalanx.errors import SnapshotError

    if text is None:
        return datetime.now(UTC).timestamp()
    try:
        return seconds(text, where="--now")
    except SnapshotError as problem:
        raise click.UsageError(str(problem)) from problem
