"""Recordings made and replayed in tests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from phalanx.dialects.recorded_fields import recorded as recorded_of
from phalanx.model.kinds import Document
from phalanx.recording.entries import DECODER, ENCODER, AnyEntry, Config, Put
from phalanx.recording.log_writer import Bounds, LogWriter
from phalanx.recording.reading import Recording
from phalanx.recording.recorder import Recorded, Recorder
from phalanx.recording.replay import Replay, ReplayedSession
from phalanx.recording.segments import SegmentReader, segment_paths
from phalanx.sim.world import World

SMALL = Bounds(segment_bytes=4_000)
"""Segments that are full soon."""


def as_read(entry: AnyEntry | None) -> AnyEntry:
    """Return an entry as whoever reads a recording gets it."""
    assert entry is not None
    (found,) = DECODER.decode(ENCODER.encode([entry]))
    return found


def kept(document: Document) -> dict[str, Any]:  # Any: as JSON has it
    """Return what whoever reads a recording gets of an object."""
    found = as_read(Put(recorded_of(document)))
    assert isinstance(found, Put)
    return found.object


@contextmanager
def recorded(world: World, folder: Path, *, profile: str = "phalanx", text: str = "", bounds: Bounds = SMALL) -> Iterator[Recorder]:
    """Record what a world does inside the block."""
    writer = LogWriter(folder, bounds, report=_fail, is_patient=True)
    recorder = Recorder(Recorded("test", world.cache, world.store.everything, lambda: world.now), writer, Config(profile, text))
    recorder.follow(world.loop)
    if world.planner is not None:
        recorder.follow_gates(world.planner)
    recorder.turn()
    yield recorder
    recorder.close()


@contextmanager
def observed(world: World, folder: Path, *, profile: str = "phalanx") -> Iterator[Recorder]:
    """Record a world inside the block as `phalanx record` does: what happens in it, and nothing of who decides."""
    writer = LogWriter(folder, Bounds(), report=_fail, is_patient=True)
    recorder = Recorder(Recorded("record", world.cache, world.store.everything, lambda: world.now), writer, Config(profile, ""))
    recorder.turn()
    yield recorder
    recorder.close()


def _fail(text: str) -> None:
    raise AssertionError(text)


def replayed(folder: Path, *, since: float | None = None, tell: Callable[[str], None] = _fail) -> list[ReplayedSession]:
    """Decide everything of a recording again."""
    player = Replay()
    found = [player.enter(entry) for _, entry in Recording(folder, tell=tell).entries(since=since)]
    return [session for session in found if session is not None]


def all_entries(folder: Path) -> list[AnyEntry]:
    """Return what is in the segments, one after the other."""
    return [entry for path in segment_paths(folder) for entry in SegmentReader(path).entries()]


def assert_same(sessions: list[ReplayedSession]) -> None:
    """Fail with the first difference."""
    for session in sessions:
        assert session.is_same, [f"session {session.number}", *session.differences()]
