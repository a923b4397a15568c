"""Recordings as people make and use them: recorded, replayed, asked about, and damaged."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.config.policies import policy_of_profile
from phalanx.recording import log_writer
from phalanx.recording.entries import Decided, Header, Moment
from phalanx.recording.segments import SegmentReader, SegmentWriter, segment_paths
from tests.support import sim_worlds as worlds
from tests.support.recordings import all_entries, assert_same, recorded, replayed

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = (
    "deadlock", "coscheduling", "koordinator-gang-group", "kueue-pod-group", "native-podgroup", "scheduling-gates",
    "volcano-job-restart", "yunikorn", "kai-binder-rollback", "kai-shared-gpu", "kai-fair-share", "preempt", "reclaim",
    "stale-gang", "topology-hard", "unbound-volume",
)  # fmt: skip
BEGUN = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
WORK = ["--workload", "generated:jobs=40,nodes=4,days=1,load=1.2", "--seed", "3"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="phalanx")


def simulated(folder: Path, *arguments: str) -> Any:
    result = run("simulate", *arguments, "--record", str(folder), "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of a simulated day."""
    folder: Path = tmp_path_factory.mktemp("log")
    simulated(folder, *WORK)
    return folder


@pytest.mark.parametrize("profile", ["phalanx", "volcano", "kai", "coscheduling"])
def test_a_simulation_is_decided_again_as_it_was(profile: str, tmp_path: Path) -> None:
    plain = run("simulate", *WORK, "--profile", profile, "-o", "json")
    assert simulated(tmp_path, *WORK, "--profile", profile) == json.loads(plain.stdout), "recording changes nothing"
    result = run("replay", str(tmp_path), "-o", "json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["same"] is True
    assert answer["sessions"] > 50
    assert answer["carriedOut"]["bound"] > 40


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_with_controllers_are_decided_again_as_they_were(example: str, tmp_path: Path) -> None:
    simulated(tmp_path, str(ROOT / "examples" / example), *(("--profile", "kai") if example.startswith("kai") else ()))
    result = run("replay", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "every decision is the same" in result.stdout


def test_every_checkpoint_is_a_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "BETWEEN_BLOCKS_SECONDS", 0.01)  # segments are full soon
    world = worlds.world(nodes=4, gpus=2, is_served=True, policy=policy_of_profile("phalanx"))
    with recorded(world, tmp_path):
        for number in range(30):
            worlds.submit(world, worlds.gang(f"gang-{number}", tasks=3, duration="7m", gpus=1), at=100.0 * number)
        worlds.run(world, 7_200)
    headers = [entry for entry in all_entries(tmp_path) if isinstance(entry, Header)]
    assert len(headers) > 3
    whole = replayed(tmp_path)
    assert_same(whole)
    for header in headers[1:]:
        rest = replayed(tmp_path, since=header.now)
        assert 0 < len(rest) < len(whole)
        assert_same(rest)


def test_the_table_says_what_was_replayed(log: Path) -> None:
    result = run("replay", str(log))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("recorded by phalanx ")
    assert "(simulate), 2026-01-01T00:00:00Z to 2026-01-0" in lines[0]
    assert "times as fast as it happened" in lines[1]
    assert lines[-1] == "every decision is the same"


def _copied(log: Path, folder: Path, change: Any = None) -> Path:  # Any: a function of an entry
    """Copy a recording, with some entries changed."""
    for path in segment_paths(log):
        with SegmentWriter(folder, int(path.stem)) as segment:
            for entry in SegmentReader(path).entries():
                segment.add([entry if change is None else change(entry)])
                segment.flush()
    return folder


def _with_another_node(entry: Any) -> Any:  # Any: an entry
    """Let the first pod that was bound have gone elsewhere."""
    if not isinstance(entry, Decided) or not entry.decisions.get("", {}).get("binds"):
        return entry
    binds = dict.fromkeys(entry.decisions[""]["binds"], "elsewhere")
    return Decided(entry.now, entry.asks_all, {"": {**entry.decisions[""], "binds": binds}})


def test_the_first_difference_is_shown_and_the_exit_status_says_so(log: Path, tmp_path: Path) -> None:
    changed = _copied(log, tmp_path, _with_another_node)
    result = run("replay", str(changed))
    assert result.exit_code == 3
    assert "decides something else:" in result.stdout
    assert re.search(r"bind default/\S+ +elsewhere +node-\d+ +differs", result.stdout)
    assert re.search(r"gang default/\S+ +Inqueue, 1 BINDING +Inqueue, 1 BINDING\n", result.stdout), "what is the same is shown too"
    answer = json.loads(run("replay", str(changed), "-o", "json", "-v", "3").stdout)
    assert answer["same"] is False
    assert answer["firstDifference"]["session"] == 1
    assert set(answer["firstDifference"]["recorded"][""]["binds"].values()) == {"elsewhere"}
    assert "elsewhere" not in answer["firstDifference"]["decided"][""]["binds"].values()
    assert any(step["event"] == "placed" or "node" in step for step in answer["trace"])


def _with_a_worse_node(entry: Any) -> Any:  # Any: an entry
    """Let the pods that were bound first have gone to a node that is there, and that others are better than."""
    if not isinstance(entry, Decided) or not entry.decisions.get("", {}).get("binds"):
        return entry
    binds = dict.fromkeys(entry.decisions[""]["binds"], "node-00003")
    return Decided(entry.now, entry.asks_all, {"": {**entry.decisions[""], "binds": binds}})


def test_a_difference_is_shown_with_the_traces_of_both_sides(log: Path, tmp_path: Path) -> None:
    changed = _copied(log, tmp_path, _with_a_worse_node)
    result = run("replay", str(changed), "-v", "3")
    assert "they part at step 1, after 0 steps that both have:" in result.stdout
    assert re.search(r"\n +bind (default/\S+) to node-00003 +bind \1 to node-00000\n", result.stdout)
    assert re.search(r"node node-00003, where default/\S+ went then, looked at now: it fits; best scores for ", result.stdout)
    then, now = result.stderr.split("--- decided now: ")
    assert "--- recorded: from the log" in then
    assert re.search(r"\[log\] bind default/\S+ to node-00003\n", then)
    assert re.search(r"\[log\] gang default/\S+ stands at Inqueue: \d+ BINDING\n", then)
    assert re.search(r"\[log\] carried out: bound default/\S+: node-00000\n", then)
    assert re.search(r"\[3\] allocated task default/\S+ on node node-00000\n", now)


def test_programs_get_the_traces_of_both_sides_and_where_they_part(log: Path, tmp_path: Path) -> None:
    changed = _copied(log, tmp_path, _with_another_node)
    answer = json.loads(run("replay", str(changed), "-o", "json", "-v", "3").stdout)
    parting = answer["firstDifference"]["parting"]
    (first, *_) = parting["differing"]
    assert (parting["step"], first["recorded"]["node"], first["decided"]["node"]) == (1, "elsewhere", "node-00000")
    assert "it is not in the cluster of this session" in parting["recordedNodeNow"][0]
    then, now = answer["traces"]["recorded"], answer["traces"]["decided"]
    assert "how they came about is not in it" in then["source"]
    assert [step["node"] for step in then["steps"] if step["event"] == "bind"] == ["elsewhere"]
    assert now["steps"] == answer["trace"]
    assert "traces" not in json.loads(run("replay", str(changed), "-o", "json").stdout)


def test_another_profile_is_compared_with_the_traces_of_both(log: Path) -> None:
    result = run("replay", str(log), "--profile", "kai", "-v", "3")
    assert result.exit_code == 0, result.output
    assert re.search(r"session \d+ at \S+ is the first that kai decides otherwise, on the same cluster:", result.stdout)
    ours, kai = result.stderr.split("--- kai: traced")
    assert "--- phalanx: traced" in ours
    assert "try gang default/" in ours
    assert "try job default/" in kai, "KAI's profile has words of its own"
    answer = json.loads(run("replay", str(log), "--profile", "kai", "-v", "3", "-o", "json").stdout)["firstDifference"]
    assert all(answer["traces"][side] for side in ("simulated", "other"))
    assert any(pair["other"] is not None for pair in answer["parting"]["differing"])


def test_a_profile_that_decides_the_same_has_no_first_difference(log: Path) -> None:
    result = run("replay", str(log), "--profile", "phalanx", "-v", "3")
    assert "phalanx decides every recorded session as phalanx does" in result.stdout


def test_the_cluster_of_a_session_that_differs_can_be_scheduled_again(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    changed = _copied(log, tmp_path, _with_another_node)
    first = json.loads(run("replay", str(changed), "--snapshot", str(file), "-o", "json").stdout)["firstDifference"]
    result = run("schedule", "-f", str(file), "--now", first["time"], "-o", "json")
    assert json.loads(result.stdout)["binds"] == first["decided"][""]["binds"]
    stepped = run("schedule", "-f", str(file), "--now", first["time"], "--step", "--script", _script(tmp_path))
    assert stepped.exit_code == 0, stepped.output


def _script(folder: Path) -> str:
    (folder / "keys").write_text("next\nquit\n")
    return str(folder / "keys")


def test_no_snapshot_is_written_where_nothing_differs(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    result = run("replay", str(log), "--snapshot", str(file))
    assert result.exit_code == 0
    assert "not written, because no session differs" in result.stderr
    assert not file.exists()
    file.write_text("mine")
    refused = run("replay", str(log), "--snapshot", str(file))
    assert (refused.exit_code, file.read_text()) == (1, "mine")


def test_a_recording_of_a_killed_process_is_read_as_far_as_it_goes(log: Path, tmp_path: Path) -> None:
    path = segment_paths(_copied(log, tmp_path))[0]
    path.write_bytes(path.read_bytes()[:-3])
    result = run("replay", str(tmp_path))
    assert result.exit_code == 0
    assert "ends within block" in result.stderr
    assert "what was written before is whole" in result.stderr


def test_a_flipped_bit_is_said_and_nothing_crashes(log: Path, tmp_path: Path) -> None:
    path = segment_paths(_copied(log, tmp_path))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)
    result = run("replay", str(tmp_path))
    assert result.exit_code == 0
    assert "does not match its checksum: what follows in this segment is lost; nothing follows it" in result.stderr
    assert result.stdout.splitlines()[-1] == "every decision that can be read is the same"


def test_a_recording_whose_beginning_is_lost_is_refused(log: Path, tmp_path: Path) -> None:
    path = segment_paths(_copied(log, tmp_path))[0]
    data = bytearray(path.read_bytes())
    data[60] ^= 16  # in the first block
    path.write_bytes(data)
    result = run("replay", str(tmp_path))
    assert result.exit_code == 1
    assert "does not match its checksum" in result.stderr
    assert result.stderr.splitlines()[-1].endswith(
        "not even the beginning of the recording can be read; nothing in it can be replayed"
    )


@pytest.mark.parametrize(
    "arguments", [("replay", "FOLDER"), ("schedule", "--log", "FOLDER"), ("explain", "a/b", "--log", "FOLDER")]
)
@pytest.mark.parametrize(
    "content", [b"", b"hello", b"phalanx recording 0 (phalanx 0.1)\n", b"phalanx recording 1 (phalanx 9)\n\0\1"]
)
def test_what_is_no_recording_gets_a_sentence(content: bytes, arguments: Sequence[str], tmp_path: Path) -> None:
    (tmp_path / "000001.phx").write_bytes(content)
    result = run(*(str(tmp_path) if word == "FOLDER" else word for word in arguments))
    assert result.exit_code in (0, 1)
    assert "Traceback" not in result.output
    assert "error: " in result.stderr or "no session is in the recording" in result.stdout


def test_a_moment_of_a_recording_can_be_asked_about(log: Path) -> None:
    for time, is_known in (("2026-01-01T06:00:00Z", True), ("06:00", True), ("2031-01-01T00:00:00Z", False), ("noon", False)):
        result = run("schedule", "--log", str(log), "--at", time, "-o", "json")
        assert (result.exit_code in (0, 3)) is is_known, result.output
    early = json.loads(run("schedule", "--log", str(log), "--at", "2026-01-01T06:00:00Z", "-o", "json").stdout)
    gang = next(iter(early["groups"]))
    assert run("explain", gang, "--log", str(log), "--at", "2026-01-01T06:00:00Z").exit_code in (0, 3)
    assert run("explain", gang, "--log", str(log), "--at", "2026-01-01T00:00:00Z").exit_code == 1, "it was not there yet"
    eta = run("eta", "--log", str(log), "--at", "2026-01-01T06:00:00Z", "--seeds", "2", "--assume", "1h")
    assert eta.exit_code in (0, 3), eta.output
    tried = run("try", "-f", str(ROOT / "examples" / "deadlock"), "--log", str(log), "--at", "06:00")
    assert tried.exit_code in (0, 1, 3), tried.output


def test_the_day_of_a_time_of_day_is_told(log: Path) -> None:
    assert f"note: {log}: the cluster at 2026-01-03T06:01:00Z" in run("schedule", "--log", str(log), "--at", "06:01").stderr
    assert run("schedule", "--log", str(log), "--at", "2026-01-02T06:00:00Z").stderr == ""


def test_a_moment_in_a_gap_shows_the_cluster_before_it_and_says_so(tmp_path: Path) -> None:
    world = worlds.world(policy=policy_of_profile("phalanx"), start=BEGUN)
    for until in (100, 400):
        with recorded(world, tmp_path):
            worlds.run(world, until)
        worlds.run(world, until + 200)
    in_gap, known = (
        run("schedule", "--log", str(tmp_path), "--at", time) for time in ("2026-01-01T00:03:20Z", "2026-01-01T00:01:20Z")
    )
    gap = "nothing was recorded from 2026-01-01T00:01:40Z to 2026-01-01T00:05:00Z: this is the cluster as it was before that"
    assert (in_gap.stderr, known.stderr) == (f"note: {gap}\n", "")


def test_where_nothing_can_be_read_a_question_about_a_moment_says_why(tmp_path: Path) -> None:
    path = tmp_path / "000001.phx"
    with SegmentWriter(tmp_path, 1) as writer:
        writer.add([Moment(1.0)])
    whole = path.read_bytes()
    for content, why in (
        (whole[:-1], "000001.phx: ends within block 1, at byte "),
        (whole[:-1] + bytes([whole[-1] ^ 4]), "000001.phx: block 1 at byte "),
        (whole.partition(b"\n")[0] + b"\n", "000001.phx: nothing but its first line was written"),
    ):
        path.write_bytes(content)
        result = run("schedule", "--log", str(tmp_path))
        assert result.exit_code == 1
        assert f"no segment can be read; {why}" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("replay", ".", "--snapshot", "x", "--step"), "leave out --step, --to, --config and --profile"),
        (("schedule", "--at", "06:00", "-f", "x"), "name the recording with --log DIR"),
        (("explain", "a/b", "--log", ".", "--context", "c"), "the cluster and the time come from the recording"),
        (("simulate", "x", "--record", "y", "--compare", "kai,phalanx"), "--record and --compare exclude each other"),
        (("simulate", "x", "--record", "y", "--profile", "default-scheduler"), "only sessions of gangs are recorded"),
        (("simulate", "x", "--record", "y", "--record-size", "10"), "write for example 512Mi or 1Gi"),
        (("simulate", "x", "--record", "y", "--record-size", "lots"), "--record-size: 'lots' is not a size of 1Mi or more"),
        (("simulate", "x", "--record", "y", "--record-age", "long"), "write for example 90s, 2h30m or 7d"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: Sequence[str], text: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert text in result.stderr
