"""What metrics say of a recording: how much was written, and what was not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.live.metrics import Metrics
from phalanx.recording import log_writer
from phalanx.recording.entries import Carried, Checkpoint, Config, Header, Moment
from phalanx.recording.log_writer import Bounds, LogWriter, MakingMany
from phalanx.recording.segments import segment_paths
from tests.unit.test_recording_writer import eventually

PREFIX = "phalanx_recording_"


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "BETWEEN_BLOCKS_SECONDS", 0.01)


def checkpoint(number: int) -> MakingMany:
    header = Header(1, "1.0", "p", "test", number, float(number), [], {}, Config("phalanx", ""))
    return lambda: [[header, Checkpoint(float(number)), Carried([], [], None)]]


def shown(metrics: Metrics) -> Iterator[float | None]:
    for name in ("written_bytes_total", "segments_total", "dropped_changes_total", "interrupted"):
        yield metrics.registry.get_sample_value(f"{PREFIX}{name}")


def test_without_a_recording_everything_is_zero() -> None:
    assert [*shown(Metrics(lambda: 0.0))] == [0.0, 0.0, 0.0, 0.0]


def test_what_is_written_is_counted_in_bytes_and_segments(tmp_path: Path) -> None:
    metrics, writer = Metrics(lambda: 0.0), LogWriter(tmp_path, Bounds(), report=pytest.fail)
    metrics.recorded_by(writer)
    for number in (1, 2):
        writer.add_checkpoint(checkpoint(number))
        writer.add(lambda: [Moment(1.0)])
    writer.close()
    sizes = [path.stat().st_size for path in segment_paths(tmp_path)]
    assert [*shown(metrics)] == [sum(sizes), 2.0, 0.0, 0.0]


def test_the_time_of_the_thread_is_shown(tmp_path: Path) -> None:
    metrics, writer = Metrics(lambda: 0.0), LogWriter(tmp_path, Bounds(), report=pytest.fail)
    metrics.recorded_by(writer)
    writer.add_checkpoint(checkpoint(1))
    writer.add(lambda: [Moment(float(number)) for number in range(10_000)])
    writer.close()
    found = metrics.registry.get_sample_value(f"{PREFIX}cpu_seconds_total")
    assert found is not None
    assert 0.0 < found == writer.cpu_seconds < 10.0


def test_what_is_dropped_is_counted(tmp_path: Path) -> None:
    metrics, writer = Metrics(lambda: 0.0), LogWriter(tmp_path, Bounds(queued=0), report=lambda text: None)
    metrics.recorded_by(writer)
    writer.add_checkpoint(checkpoint(1))
    for number in range(5):
        writer.add(lambda number=number: [Moment(float(number))])  # type: ignore[misc]  # a default of a lambda has no type
    writer.close()
    assert [*shown(metrics)][2:] == [5.0, 0.0]


def test_a_disk_that_fails_shows(tmp_path: Path) -> None:
    folder, reports = tmp_path / "log", list[str]()
    metrics, writer = Metrics(lambda: 0.0), LogWriter(folder, Bounds(), report=reports.append)
    metrics.recorded_by(writer)
    folder.rmdir()
    writer.add_checkpoint(checkpoint(1))
    eventually(lambda: [*shown(metrics)][3] == 1.0)
    writer.close()
