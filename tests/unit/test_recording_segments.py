"""Segments of recordings: what is written is read, and what is damaged is said plainly."""

from pathlib import Path

import pytest

from phalanx.errors import RecordingError
from phalanx.recording.entries import FORMAT, Carried, Checkpoint, Config, Decided, Header, Moment, Put
from phalanx.recording.reading import Recording
from phalanx.recording.segments import BLOCK, SegmentReader, SegmentWriter, segment_paths

CONFIG = Config("phalanx", "")


def header(number: int, process: str = "p") -> Header:
    return Header(FORMAT, "1.0", process, "test", number, 100.0 * number, [], {}, CONFIG)


def write(folder: Path, number: int, *moments: float, process: str = "p") -> Path:
    """Write a segment with a checkpoint of one object and one block per moment."""
    with SegmentWriter(folder, number) as segment:
        segment.add([header(number, process), Checkpoint(100.0 * number), Put({"kind": "Node"}), Carried([], [], None)])
        segment.flush()
        for moment in moments:
            segment.add([Moment(moment)])
            segment.flush()
    return segment.path


def moments(path: Path) -> list[float]:
    return [entry.now for entry in SegmentReader(path).entries() if isinstance(entry, Moment)]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    decided = Decided(3.0, True, {"": {"binds": {"a/b": "node-1"}}})
    with SegmentWriter(tmp_path, 1) as segment:
        segment.add([header(1), Moment(1.0)])
        segment.add([decided])
    assert [*SegmentReader(segment.path).entries()] == [header(1), Moment(1.0), decided]


def test_a_segment_is_never_written_over(tmp_path: Path) -> None:
    write(tmp_path, 1)
    with pytest.raises(FileExistsError):
        SegmentWriter(tmp_path, 1)


@pytest.mark.parametrize("cut", [1, 3, BLOCK.size, BLOCK.size + 1])
def test_a_torn_tail_is_cut(cut: int, tmp_path: Path) -> None:
    path = write(tmp_path, 1, 1.0, 2.0, 3.0)
    path.write_bytes(path.read_bytes()[:-cut])
    reader = SegmentReader(path)
    assert [entry.now for entry in reader.entries() if isinstance(entry, Moment)] == [1.0, 2.0]
    assert reader.damage is not None
    assert reader.damage.is_torn_tail
    assert "ends within block 4" in str(reader.damage)


def test_every_single_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, 1, 1.0, 2.0, 3.0)
    whole = path.read_bytes()
    for place in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        reader = SegmentReader(path)
        found = [entry.now for entry in reader.entries() if isinstance(entry, Moment)]
        assert found == [1.0, 2.0, 3.0][: len(found)]
        assert len(found) < 3
        assert reader.damage is not None


def test_another_file_and_an_older_format_are_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "000001.phx").write_text("hello\n")
    with pytest.raises(RecordingError, match="does not begin as a recording does"):
        next(SegmentReader(tmp_path / "000001.phx").entries())
    for other in (FORMAT - 1, FORMAT + 1):
        (tmp_path / "000001.phx").write_text(f"phalanx recording {other} (phalanx 0.1.0)\n")
        with pytest.raises(RecordingError, match=rf"format {other} by phalanx 0\.1\.0.*replay it with that version"):
            next(SegmentReader(tmp_path / "000001.phx").entries())


@pytest.mark.parametrize("left", [0, 5, 20, 30])
def test_a_segment_that_ends_within_its_first_line_stops_nobody(left: int, tmp_path: Path) -> None:
    write(tmp_path, 1, 1.0)
    path = write(tmp_path, 2, 2.0)
    path.write_bytes(path.read_bytes()[:left])
    write(tmp_path, 3, 3.0)
    told: list[str] = []
    entries = [entry for _, entry in Recording(tmp_path, tell=told.append).entries()]
    assert [entry.now for entry in entries if isinstance(entry, Moment)] == [1.0, 3.0]
    assert told == ["000002.phx: ends within its first line: what was written before is whole"]


def test_what_was_written_before_an_update_is_left_out_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "000001.phx").write_text("phalanx recording 1 (phalanx 0.1.0)\n")
    with pytest.raises(RecordingError, match=r"format 1 by phalanx 0\.1\.0"):
        Recording(tmp_path, tell=pytest.fail)
    write(tmp_path, 2, 2.0)
    told: list[str] = []
    entries = [entry for _, entry in Recording(tmp_path, tell=told.append).entries()]
    assert [entry.now for entry in entries if isinstance(entry, Moment)] == [2.0]
    (text,) = told
    assert text.startswith("left out: ")
    assert "000001.phx: was written in format 1 by phalanx 0.1.0" in text


def test_a_block_that_no_version_wrote_is_said(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, 1) as segment:
        segment.add([header(1)])
        segment.flush()
        segment.add(["hello"])  # type: ignore[list-item]  # what another program might write
    reader = SegmentReader(segment.path)
    assert [*reader.entries()] == [header(1)]
    assert "block 2 cannot be understood" in str(reader.damage)


def test_segments_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 1_000_000):
        write(tmp_path, number)
    (tmp_path / "notes.txt").write_text("nothing of ours")
    assert [path.name for path in segment_paths(tmp_path)] == ["000009.phx", "000010.phx", "1000000.phx"]


def test_a_segment_that_goes_on_does_not_begin_anew(tmp_path: Path) -> None:
    write(tmp_path, 1, 1.0)
    write(tmp_path, 2, 2.0)
    kinds = [type(entry).__name__ for _, entry in Recording(tmp_path, tell=pytest.fail).entries()]
    assert kinds == ["Header", "Checkpoint", "Put", "Carried", "Moment", "Checkpoint", "Moment"]


def test_another_process_begins_anew(tmp_path: Path) -> None:
    write(tmp_path, 1, 1.0)
    write(tmp_path, 2, 2.0, process="q")
    kinds = [type(entry).__name__ for _, entry in Recording(tmp_path, tell=pytest.fail).entries()]
    assert kinds == ["Header", "Checkpoint", "Put", "Carried", "Moment"] * 2


def test_after_a_damaged_segment_the_next_one_begins_anew(tmp_path: Path) -> None:
    path = write(tmp_path, 1, 1.0)
    write(tmp_path, 2, 2.0)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    told: list[str] = []
    kinds = [type(entry).__name__ for _, entry in Recording(tmp_path, tell=told.append).entries()]
    assert kinds == ["Header", "Checkpoint", "Put", "Carried"] * 2 + ["Moment"]
    assert len(told) == 1
    assert "000001.phx: block 2 at byte" in told[0]
    assert "does not match its checksum: what follows in this segment is lost; reading goes on with 000002.phx" in told[0]


def test_a_missing_segment_is_named(tmp_path: Path) -> None:
    for number in (1, 4):
        write(tmp_path, number, float(number))
    told: list[str] = []
    entries = [entry for _, entry in Recording(tmp_path, tell=told.append).entries()]
    assert told == [f"{tmp_path}: segments 2 to 3 missing; reading goes on with the checkpoint of 000004.phx"]
    assert [entry.now for entry in entries if isinstance(entry, Moment)] == [1.0, 4.0]
    assert sum(isinstance(entry, Header) for entry in entries) == 2, "what follows a gap begins anew"


def test_a_moment_is_found_from_the_checkpoint_before_it(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write(tmp_path, number, 100.0 * number + 50)
    entries = [entry for _, entry in Recording(tmp_path, tell=pytest.fail).entries(since=210.0)]
    assert [entry.now for entry in entries if isinstance(entry, Moment)] == [250.0, 350.0]


def test_an_empty_folder_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no recording in it"):
        Recording(tmp_path, tell=pytest.fail)
    with pytest.raises(RecordingError, match="no such folder"):
        Recording(tmp_path / "none", tell=pytest.fail)
