"""Segments replayed at the same time: what comes out is the same, byte for byte, as in a row."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main, parallel_segments
from phalanx.config.policies import policy_of_profile
from phalanx.recording import log_writer
from phalanx.recording.entries import Decided, Ended
from phalanx.recording.reading import Recording
from phalanx.recording.replay import Replay
from phalanx.recording.replayed_segment import ReplayTally, all_together, replayed_segment
from phalanx.recording.segments import SegmentReader, SegmentWriter, segment_paths
from tests.support import sim_worlds as worlds
from tests.support.recordings import recorded


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of several segments."""
    folder: Path = tmp_path_factory.mktemp("log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_writer, "BETWEEN_BLOCKS_SECONDS", 0.01)  # segments are full soon
        world = worlds.world(nodes=4, gpus=2, is_served=True, policy=policy_of_profile("phalanx"))
        with recorded(world, folder):
            for number in range(30):
                worlds.submit(world, worlds.gang(f"gang-{number}", tasks=3, duration="7m", gpus=1), at=100.0 * number)
            worlds.run(world, 7_200)
    assert len(segment_paths(folder)) > 3
    return folder


@pytest.fixture(autouse=True)
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_segments, "LEAST_BYTES", 0)


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["replay", str(folder), "-o", "json", *arguments], prog_name="phalanx")


def copied(log: Path, folder: Path, *, other_from: int = 0) -> Path:
    """Copy a recording; the first bind from some segment on went elsewhere."""
    is_other = False
    for number, path in enumerate(segment_paths(log), 1):
        with SegmentWriter(folder, number) as segment:
            for entry in SegmentReader(path).entries():
                if isinstance(entry, Decided) and other_from and number >= other_from and not is_other:
                    is_other = bool(binds := dict.fromkeys(entry.decisions.get("", {}).get("binds", {}), "elsewhere"))
                    entry = Decided(entry.now, entry.asks_all, {"": {**entry.decisions[""], "binds": binds}}) if is_other else entry
                segment.add([entry])
    return folder


def in_a_row(folder: Path) -> ReplayTally:
    tally, player = ReplayTally(), Replay()
    for _, entry in Recording(folder, tell=lambda text: None).entries():
        session = tally.enter(entry, player)
        assert session is None or session.is_same
    return tally


def apart(folder: Path) -> ReplayTally:
    return all_together([replayed_segment(folder, path) for path in segment_paths(folder)])


def test_several_at_a_time_say_the_same_as_one(log: Path) -> None:
    one, two = run(log, "--processes", "1"), run(log, "--processes", "2")
    assert two.exit_code == 0, two.output
    assert one.stdout == two.stdout
    assert json.loads(two.stdout)["sessions"] > 20


def test_the_first_difference_is_found_in_a_row(log: Path, tmp_path: Path) -> None:
    folder = copied(log, tmp_path, other_from=2)
    one, two = run(folder, "--processes", "1"), run(folder, "--processes", "2")
    assert (one.exit_code, two.exit_code) == (3, 3)
    assert one.stdout == two.stdout
    assert json.loads(two.stdout)["firstDifference"]["recorded"][""]["binds"]


def test_whatever_is_missing_is_told_once(log: Path, tmp_path: Path) -> None:
    folder = copied(log, tmp_path)
    second, third = segment_paths(folder)[1:3]
    second.unlink()
    data = bytearray(third.read_bytes())
    data[-30] ^= 1
    third.write_bytes(data)
    one, two = run(folder, "--processes", "1"), run(folder, "--processes", "2")
    assert (one.exit_code, one.stdout, one.stderr) == (two.exit_code, two.stdout, two.stderr)
    problems = json.loads(two.stdout)["problems"]
    assert len(problems) == 2
    assert "segment 2 missing" in problems[0]
    assert "does not match its checksum" in problems[1]


def test_segments_count_together_as_in_a_row(log: Path, tmp_path: Path) -> None:
    assert apart(log) == in_a_row(log)
    torn = copied(log, tmp_path)
    path = segment_paths(torn)[1]
    path.write_bytes(path.read_bytes()[:-20])
    assert apart(torn) == in_a_row(torn), "what follows a torn segment begins anew"


def test_a_replay_lasts_until_the_process_ended(log: Path) -> None:
    *_, last = SegmentReader(segment_paths(log)[-1]).entries()
    assert isinstance(last, Ended)
    assert in_a_row(log).ended == apart(log).ended == last.now


def test_a_segment_ends_when_nobody_waits_for_it_any_more(log: Path) -> None:
    path = segment_paths(log)[0]
    assert replayed_segment(log, path, held=lambda: False).tally.sessions == 1


def test_small_recordings_are_replayed_in_a_row(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_segments, "LEAST_BYTES", 1 << 30)
    assert not parallel_segments.worth_parallel(segment_paths(log))
    monkeypatch.setattr(parallel_segments, "LEAST_BYTES", 0)
    assert parallel_segments.worth_parallel(segment_paths(log))
    assert not parallel_segments.worth_parallel(segment_paths(log)[:1])
