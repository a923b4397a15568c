"""The sessions of a recording, to be stepped through one after the other."""

from collections.abc import Iterator
from pathlib import Path

from phalanx.cli import output
from phalanx.errors import RecordingError
from phalanx.recording.moment import span_of, time_text
from phalanx.recording.reading import Recording
from phalanx.recording.replay import Replay
from phalanx.stepping.stepped_session import SteppedSession


def replayed_sessions(folder: str, at: str | None) -> Iterator[SteppedSession]:
    """Yield the sessions of a recording from a moment on; each is replayed when it is asked for."""
    recording = Recording(Path(folder), tell=output.note)
    since = None if at is None else span_of(Recording(Path(folder), tell=lambda text: None)).moment(at)
    sessions = _sessions(recording, since)
    first = next(sessions, None)
    if first is None:
        raise RecordingError(f"{folder}: no session is in it{f' from {at} on' if at else ''}")
    return _begin_with(first, sessions)


def _begin_with(first: SteppedSession, rest: Iterator[SteppedSession]) -> Iterator[SteppedSession]:
    yield first
    yield from rest


def _sessions(recording: Recording, since: float | None) -> Iterator[SteppedSession]:
    player = Replay()
    for _, entry in recording.entries(since=since):
        found = player.enter(entry)
        if found is not None and (since is None or found.now >= since):
            number = f" {found.number}" if since is None else ""
            yield SteppedSession(found.session.snapshot, found.profile, f"session{number} at {time_text(found.now)}")
