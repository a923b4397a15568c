"""The writer of recordings: segments follow each other, what is too much goes, and nothing stops the scheduler."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from phalanx.cli.record_options import RecordOptions, bounds_of
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import RecordingError
from phalanx.recording import log_writer
from phalanx.recording.entries import Carried, Checkpoint, Config, Dropped, Header, Moment, Put
from phalanx.recording.log_writer import Bounds, Item, LogWriter, MakingMany
from phalanx.recording.reading import Recording
from phalanx.recording.recorder import Recorded, Recorder
from phalanx.recording.segments import SegmentWriter, segment_paths
from phalanx.scheduling.cache import SchedulerCache
from tests.support.recordings import all_entries

PATIENCE_SECONDS = 10.0


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "BETWEEN_BLOCKS_SECONDS", 0.01)
    monkeypatch.setattr(log_writer, "AFTER_ERROR_SECONDS", 0.02)


def checkpoint(number: int) -> MakingMany:
    header = Header(1, "1.0", "p", "test", number, float(number), [], {}, Config("phalanx", ""))
    return lambda: [[header, Checkpoint(float(number)), Carried([], [], None)]]


def heard(number: int, size: int = 0) -> Item:
    return lambda: [Moment(float(number)), Put({"metadata": {"name": f"{number}", "note": Random(number).randbytes(size).hex()}})]


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.005)


def test_everything_is_written_in_order(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, Bounds(), report=pytest.fail)
    writer.add_checkpoint(checkpoint(1))
    for number in range(1000):
        writer.add(heard(number))
    writer.close()
    assert [entry.now for entry in all_entries(tmp_path) if isinstance(entry, Moment)] == [float(number) for number in range(1000)]
    assert writer.dropped == 0


def test_a_full_segment_asks_for_a_checkpoint_and_the_next_one_begins_with_it(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, Bounds(segment_bytes=200), report=pytest.fail)
    writer.add_checkpoint(checkpoint(1))
    assert not writer.wants_checkpoint
    writer.add(heard(1, size=500))
    eventually(lambda: writer.wants_checkpoint)
    writer.add_checkpoint(checkpoint(2))
    writer.close()
    assert [path.name for path in segment_paths(tmp_path)] == ["000001.phx", "000002.phx"]


def test_the_oldest_segments_go_when_there_is_too_much(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, Bounds(total_bytes=3_000, segment_bytes=1_000), report=pytest.fail)
    for number in range(1, 13):
        writer.add_checkpoint(checkpoint(number))
        for each in range(40):
            writer.add(heard(each * number, size=40))
    writer.close()
    kept = segment_paths(tmp_path)
    assert kept[-1].name == "000012.phx"
    assert 1 <= len(kept) < 12
    assert sum(path.stat().st_size for path in kept[:-1]) <= 3_000


def test_nothing_that_is_older_than_was_asked_for_is_kept_until_the_next_segment(tmp_path: Path) -> None:
    for number, ended in ((1, 85.0), (2, 75.0)):
        SegmentWriter(tmp_path, number).close()
        os.utime(tmp_path / f"{number:06}.phx", times=(time.time() - ended,) * 2)
    writer = LogWriter(tmp_path, Bounds(age_seconds=100.0, segment_seconds=10.0), report=pytest.fail)
    writer.add_checkpoint(checkpoint(3))
    writer.close()
    assert [path.name for path in segment_paths(tmp_path)] == ["000002.phx", "000003.phx"]


@pytest.mark.parametrize(("age", "segment"), [(7 * 86_400.0, 3600.0), (1600.0, 100.0), (60.0, 10.0)])
def test_a_recording_of_any_age_has_many_segments(age: float, segment: float) -> None:
    assert bounds_of(RecordOptions(record_age=age)).segment_seconds == segment


def test_the_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        writer = LogWriter(tmp_path, Bounds(), report=pytest.fail)
        writer.add_checkpoint(checkpoint(1))
        writer.close()
    assert [path.name for path in segment_paths(tmp_path)] == ["000001.phx", "000002.phx"]


def test_what_cannot_be_written_in_time_is_counted_and_said(tmp_path: Path) -> None:
    reports: list[str] = []
    writer = LogWriter(tmp_path, Bounds(queued=10), report=reports.append)

    def slow() -> list[Moment]:
        time.sleep(0.2)
        return [Moment(0.0)]

    writer.add_checkpoint(checkpoint(1))
    writer.add(slow)
    for number in range(100):
        writer.add(heard(number))
    assert writer.wants_checkpoint
    assert writer.dropped >= 88
    lost = writer.dropped
    eventually(lambda: not writer._queue)
    writer.add(heard(1000))
    assert writer.dropped == lost + 1, "what follows a gap means nothing before the next checkpoint"
    writer.add_checkpoint(checkpoint(2))
    writer.add(heard(2000))
    writer.close()
    entries = all_entries(tmp_path)
    assert [entry.count for entry in entries if isinstance(entry, Dropped)] == [lost + 1]
    assert reports == [f"the recording in {tmp_path} is not complete: {lost + 1} changes could not be written"]
    assert isinstance(entries[-2], Moment)
    assert entries[-2].now == 2000.0


def test_a_failing_disk_is_reported_once_and_tried_again(tmp_path: Path) -> None:
    folder, reports = tmp_path / "log", list[str]()
    writer = LogWriter(folder, Bounds(), report=reports.append)
    folder.rmdir()
    writer.add_checkpoint(checkpoint(1))
    eventually(lambda: bool(reports))
    writer.add(heard(1))
    assert writer.wants_checkpoint
    folder.mkdir()
    time.sleep(0.05)
    writer.add_checkpoint(checkpoint(2))
    writer.add(heard(2))
    writer.close()
    assert len(reports) == 2
    assert reports[0].startswith(f"the recording in {folder} is interrupted: ")
    assert "is not complete" in reports[1]
    assert [entry.now for entry in all_entries(folder) if isinstance(entry, Moment)] == [2.0]


def test_a_folder_that_cannot_be_made_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="name another folder with --record"):
        LogWriter(tmp_path / "file", Bounds(), report=pytest.fail)


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    first = LogWriter(tmp_path, Bounds(), report=pytest.fail)
    with pytest.raises(RecordingError, match="another process records in it; name another folder with --record"):
        LogWriter(tmp_path, Bounds(), report=pytest.fail)
    first.close()
    LogWriter(tmp_path, Bounds(), report=pytest.fail).close()


def test_a_folder_without_rights_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)  # tests may run as root, who may do everything
    with pytest.raises(RecordingError, match="cannot be written: Permission denied; name another folder with --record"):
        LogWriter(tmp_path, Bounds(), report=pytest.fail)


def test_a_full_disk_leaves_no_file_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(segment: SegmentWriter, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    reports: list[str] = []
    writer = LogWriter(tmp_path, Bounds(), report=reports.append)
    with monkeypatch.context() as full:
        full.setattr(SegmentWriter, "_write", refuse)
        writer.add_checkpoint(checkpoint(1))
        eventually(lambda: bool(reports))
    assert segment_paths(tmp_path) == []
    for number in range(3):
        writer.add(heard(number))
    writer.close()
    assert reports[0].endswith("is interrupted: No space left on device; tried again in 0.02 s")
    assert reports[1:] == [f"the recording in {tmp_path} is not complete: 3 changes could not be written"]


def test_whoever_is_patient_drops_nothing(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, Bounds(queued=5), report=pytest.fail, is_patient=True)
    writer.add_checkpoint(checkpoint(1))
    for number in range(200):
        writer.add(heard(number))
    writer.close()
    assert writer.dropped == 0
    assert sum(isinstance(entry, Moment) for entry in all_entries(tmp_path)) == 200


def test_what_a_disk_has_lost_is_marked_and_the_next_segment_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(segment: SegmentWriter, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    reports: list[str] = []
    writer, cache = LogWriter(tmp_path, Bounds(), report=reports.append), SchedulerCache(ObjectCluster(), report=pytest.fail)
    recorder = Recorder(Recorded("test", cache, list, lambda: 1.0), writer, Config("phalanx", ""))
    recorder.turn()
    eventually(lambda: writer.is_idle)
    with monkeypatch.context() as full:
        full.setattr(SegmentWriter, "_write", refuse)
        recorder.configure(Config("kai", ""))
        eventually(lambda: writer.is_interrupted and writer.is_idle)
    recorder.configure(Config("volcano", ""))
    time.sleep(0.05)
    recorder.turn()
    recorder.close()
    found = [entry for _, entry in Recording(tmp_path, tell=pytest.fail).entries()]
    assert sum(isinstance(entry, Header) for entry in found) == 2, "what was lost is in the second checkpoint"
    assert sum(entry.count for entry in found if isinstance(entry, Dropped)) >= 1


def test_what_was_dropped_last_is_marked_too(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, Bounds(queued=1), report=list[str]().append)
    writer.add_checkpoint(checkpoint(1))
    while not writer.dropped:
        writer.add(heard(1))
    writer.close()
    assert [entry.count for entry in all_entries(tmp_path) if isinstance(entry, Dropped)] == [writer.dropped]


def test_what_is_dropped_right_after_a_checkpoint_makes_a_gap_too(tmp_path: Path) -> None:
    writer, cache = (
        LogWriter(tmp_path, Bounds(queued=2), report=list[str]().append),
        SchedulerCache(ObjectCluster(), report=pytest.fail),
    )
    recorder = Recorder(Recorded("test", cache, list, lambda: 1.0), writer, Config("phalanx", ""))

    def slow() -> list[Moment]:
        time.sleep(0.1)
        return [Moment(0.0)]

    recorder.turn()
    eventually(lambda: writer.is_idle)
    writer.add(slow)
    eventually(lambda: not writer._queue)
    writer.add(heard(1))
    writer.wants_checkpoint = True
    recorder.turn()
    writer.add(heard(2))
    assert writer.dropped == 1
    recorder.turn()
    recorder.close()
    assert sum(isinstance(entry, Header) for _, entry in Recording(tmp_path, tell=pytest.fail).entries()) == 3
