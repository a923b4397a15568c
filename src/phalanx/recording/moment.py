"""The cluster of a recording at a moment: its objects as they were heard by then, and the configuration that was in force."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from phalanx.dialects.field_values import seconds
from phalanx.errors import RecordingError, SnapshotError
from phalanx.recording.entries import AnyEntry, Checkpoint, Config, Decided, Ended, Header, Moment, Planned
from phalanx.recording.reading import Recording
from phalanx.recording.replay import RecordedCluster

CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
GAP_SECONDS = 1.0
"""Where so much was not recorded before a moment, the cluster may have been another one by then."""
EXAMPLES = "write for example 2026-01-01T03:12:00Z, or 03:12 for the last time that it was so late, in UTC"


@dataclass(frozen=True, slots=True)
class ClusterThen:
    """A cluster as it was."""

    now: float
    documents: list[dict[str, Any]]  # Any: as JSON has it
    config: Config
    schedulers: tuple[str, ...] = ()
    """Whose pods the process that was recorded looked after; everybody's if there are none."""


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when there is a recording, in seconds since 1970."""

    begun: float
    ended: float

    def moment(self, text: str) -> float:
        """Return the moment that somebody means."""
        found = self._by_clock(match) if (match := CLOCK.fullmatch(text.strip())) else self._by_date(text)
        if not self.begun <= found <= self.ended:
            raise RecordingError(f"--at {text}: {time_text(found)} is not in the recording, which is from {self}")
        return found

    def _by_clock(self, match: re.Match[str]) -> float:
        last = datetime.fromtimestamp(self.ended, UTC)
        found = last.replace(hour=int(match[1]), minute=int(match[2]), second=int(match[3] or 0), microsecond=0)
        return (found if found <= last else found - timedelta(days=1)).timestamp()

    def _by_date(self, text: str) -> float:
        try:
            return seconds(text, where="--at")
        except SnapshotError:
            raise RecordingError(f"--at {text}: no time that can be understood; {EXAMPLES}") from None

    def __str__(self) -> str:
        return f"{time_text(self.begun)} to {time_text(self.ended)}"


def time_text(moment: float) -> str:
    """Return a moment as objects say it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span_of(recording: Recording) -> Span:
    """Return from when to when a recording is; only its last segment is read to its end."""
    headers = recording.headers()
    if not headers:
        raise RecordingError(f"{recording.paths[0].parent}: no segment can be read; {recording.first_damage()}")
    ended = headers[0][1].now
    for _, entry in recording.entries(since=headers[-1][1].now):
        if isinstance(entry, Header | Moment | Decided | Ended):
            ended = max(ended, entry.now)
    return Span(headers[0][1].now, ended)


def cluster_at(folder: Path, text: str | None, *, tell: Callable[[str], None]) -> ClusterThen:
    """Return the cluster of a recording at a moment; at its end without one. Which day a time of day is of is told."""
    span = span_of(Recording(folder, tell=lambda text: None))
    moment = span.ended if text is None else span.moment(text)
    if text is None or CLOCK.fullmatch(text.strip()):
        tell(f"{folder}: the cluster at {time_text(moment)}")
    return cluster_when(folder, moment, tell=tell)


def cluster_when(folder: Path, moment: float, *, tell: Callable[[str], None]) -> ClusterThen:
    """Return the cluster of a recording as it was so many seconds after 1970."""
    recording = Recording(folder, tell=tell)
    cluster, config, heard = RecordedCluster(), Config("", ""), moment
    for _, entry in recording.entries(since=moment):
        if isinstance(entry, Header | Moment | Decided | Planned | Checkpoint | Ended):
            if entry.now > moment:
                _tell_gap(heard, moment, entry, tell)
                break
            heard = entry.now
        if isinstance(entry, Header | Config):
            config = entry.config if isinstance(entry, Header) else entry
        cluster.enter(entry)
    schedulers = tuple(sorted(cluster.cache.cluster.schedulers))
    return ClusterThen(moment, [dict(item) for item in cluster.mirror.everything()], config, schedulers)


def _tell_gap(heard: float, moment: float, after: AnyEntry, tell: Callable[[str], None]) -> None:
    """Say that nothing is known of a moment, if what comes after it begins anew."""
    if isinstance(after, Header) and moment - heard > GAP_SECONDS:
        tell(f"nothing was recorded from {time_text(heard)} to {time_text(after.now)}: this is the cluster as it was before that")
