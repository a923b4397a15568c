"""The report of a shadow as people ask for it: on recordings of clusters that other schedulers schedule."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.model.kinds import NODE, POD
from phalanx.recording.segments import segment_paths
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import deadlocked_worlds as deadlocks
from tests.support import sim_worlds as worlds
from tests.support.recordings import observed
from tests.support.recordings import recorded as own


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["shadow", "report", *arguments], prog_name="phalanx")


def reported(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return the report as plain data."""
    result = run(str(folder), *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def recorded(world: World, folder: Path, seconds: float) -> Path:
    """Record a world for some time."""
    with observed(world, folder):
        worlds.run(world, seconds)
    return folder


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of ten minutes with a deadlock."""
    world = deadlocks.deadlocked()
    worlds.submit(world, worlds.gang("early", tasks=2, gpus=1, duration="5s"), at=1)
    return recorded(world, tmp_path_factory.mktemp("log"), 600)


def test_a_deadlock_is_named_with_both_gangs(log: Path) -> None:
    found = reported(log)
    (deadlock,) = found["deadlocks"]
    assert (set(deadlock["gangs"]), deadlock["until"]) == ({"default/a", "default/b"}, None)
    assert {item["gang"]: (item["placed"], item["minimum"]) for item in found["halfStarted"]} == {
        "default/a": (2, 4), "default/b": (2, 4),
    }  # fmt: skip


def test_gangs_that_never_started_start_in_our_world(log: Path) -> None:
    found = reported(log)
    verdicts = {gang["name"]: gang["verdict"] for gang in found["gangs"]}
    assert verdicts == {"default/a": "earlier", "default/b": "earlier", "default/early": "same"}
    assert (found["earlier"], found["later"], found["same"]) == (2, 0, 1)
    totals = found["totals"]
    assert (totals["recorded"]["neverStarted"], totals["ours"]["neverStarted"]) == (2, 0)
    assert found["use"]["recorded"]["byWholeGangs"] < 0.1 < 0.9 < found["use"]["ours"]["byWholeGangs"]


def test_what_was_not_measured_is_said(log: Path) -> None:
    uncertainty = reported(log)["uncertainty"]
    assert (uncertainty["unmeasuredDurations"], uncertainty["gangs"]) == (2, 1)
    assert "2 of 3 durations could not be measured" in uncertainty["text"]
    assert "differences up to 1s mean nothing" in uncertainty["text"]


def test_text_and_page_have_the_same_words_and_numbers(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    text = run(str(log), "--html", str(path)).stdout
    page = path.read_text()
    plain = unescape(re.sub(r"<[^>]+>", " ", page.partition("<main>")[2]))
    assert plain.split() == [word for word in text.split() if word]
    assert "<script" not in page
    assert ":root { color-scheme: light dark; }" in page, "elsewhere it would leave the background white"


def test_the_text_has_the_numbers_of_the_data(log: Path) -> None:
    lines = run(str(log)).stdout.splitlines()
    found = reported(log)
    assert lines[1].startswith(f"under phalanx, {found['earlier']} gangs would have started earlier, {found['later']} later")
    hours = [line.split()[-1] for line in lines if re.match(r"default/[ab] +2/4 ", line)]
    assert hours == [f"{item['heldHours']:.4g}" for item in found["halfStarted"]]


def test_a_gang_that_another_scheduler_forgot_had_room(tmp_path: Path) -> None:
    world = deadlocks.without_gangs()
    group, *pods = worlds.gang("forgotten", tasks=2, gpus=1)
    for pod in pods:
        pod["spec"]["schedulerName"] = "asleep"
    worlds.submit(world, [group, *pods], at=10)
    with observed(world, tmp_path):
        world.cache.cluster.schedulers = frozenset({"default-scheduler"})
        worlds.run(world, 120)
    found = reported(tmp_path)
    ((gang, still),) = [(item["gang"], item["stillWaits"]) for item in found["waitedWithRoom"]]
    assert (gang, still) == ("default/forgotten", True)
    assert found["waitedWithRoom"][0]["seconds"] == pytest.approx(110, abs=6)
    assert any("no profile is known to resemble the scheduler 'asleep'" in note for note in found["notes"])


def test_nothing_is_gained_from_an_end_that_nobody_has_seen(tmp_path: Path) -> None:
    world = deadlocks.without_gangs()
    worlds.submit(world, worlds.gang("runs", tasks=4, gpus=1), at=5)
    worlds.submit(world, worlds.gang("waits", tasks=4, gpus=1), at=10)
    found = reported(recorded(world, tmp_path, 100.5))
    assert {gang["name"]: gang["ours"]["started"] for gang in found["gangs"]} == {"default/runs": True, "default/waits": False}
    assert any("still running at the end of the recording, taken to run on" in note for note in found["notes"])


def notebooks(world: World, at: float, until: float) -> None:
    """Let four pods without a gang take all GPUs for some time."""
    names = [f"note-{number}" for number in range(4)]
    pods = [{**build.pod(name, gpus=1), "metadata": {"name": name, "namespace": "default"}} for name in names]
    for pod in pods:
        pod["spec"] = {**pod["spec"], "schedulerName": "default-scheduler"}
    world.plan(at, lambda: world.submit([[pod] for pod in pods]))
    world.plan(until, lambda: [world.store.delete(POD, "default", name) for name in names])


@pytest.mark.parametrize("before", [True, False], ids=["there before", "came later"])
def test_single_pods_take_room_in_our_world_for_as_long_as_they_did(before: bool, tmp_path: Path) -> None:
    world = deadlocks.without_gangs()
    notebooks(world, at=5, until=65)
    worlds.submit(world, worlds.gang("train", tasks=4, gpus=1, duration="60s"), at=15)
    if before:
        worlds.run(world, 12)
    found = reported(recorded(world, tmp_path, 300))
    (gang,) = found["gangs"]
    assert gang["recorded"]["wait"] > 45
    assert gang["ours"]["wait"] == pytest.approx(gang["recorded"]["wait"], abs=2)
    assert found["uncertainty"]["agreeing"] == 1
    assert found["use"]["ours"] == {part: pytest.approx(value, abs=0.01) for part, value in found["use"]["recorded"].items()}
    assert found["use"]["recorded"]["byWholeGangs"] > 0.35


def test_both_worlds_count_what_is_held_in_the_same_way(tmp_path: Path) -> None:
    world = deadlocks.without_gangs()
    for number in range(3):
        gang = worlds.gang(f"train-{number}", tasks=2, gpus=1, duration="40s")
        worlds.submit(world, gang, at=5 + 7 * number)
    world.plan(60, lambda: world.store.create(build.node("node-9", gpus=1)))
    world.plan(100, lambda: world.faults.die("node-2"))
    world.plan(120, lambda: world.store.delete(NODE, "", "node-3"))
    found = reported(recorded(world, tmp_path, 200))
    assert found["use"]["ours"] == {part: pytest.approx(value, abs=0.005) for part, value in found["use"]["recorded"].items()}
    assert 0 < found["use"]["recorded"]["byWholeGangs"] < found["use"]["recorded"]["held"]
    ends = found["timeToEnd"]
    assert (ends["gangs"], ends["recorded"]) == (3, pytest.approx(50, abs=1))
    assert ends["ours"] == pytest.approx(ends["recorded"], abs=1)


def test_several_schedulers_are_named_and_what_stands_for_them_is_said(tmp_path: Path) -> None:
    world = deadlocks.without_gangs()
    for number, scheduler in enumerate(("default-scheduler", "volcano", "volcano")):
        group, *pods = worlds.gang(f"train-{number}", tasks=1, gpus=1, duration="20s")
        for pod in pods:
            pod["spec"]["schedulerName"] = scheduler
        worlds.submit(world, [group, *pods], at=5)
    found = reported(recorded(world, tmp_path, 100))
    assert found["schedulers"] == {"volcano": 2, "default-scheduler": 1}
    assert any(
        note.startswith("gangs of several schedulers: our world schedules all of them, and volcano") for note in found["notes"]
    )


def test_where_no_gang_ended_nothing_is_said_of_ends(tmp_path: Path) -> None:
    world = deadlocks.without_gangs()
    worlds.submit(world, worlds.gang("runs", tasks=2, gpus=1), at=5)
    result = run(str(recorded(world, tmp_path, 60)))
    assert result.exit_code == 0, result.output
    assert "time to the end" not in result.stdout
    assert "1 of 1 duration could not be measured" in result.stdout


def test_of_a_long_recording_it_is_said_how_often_the_cluster_was_looked_at(tmp_path: Path) -> None:
    world = deadlocks.without_gangs()
    worlds.submit(world, worlds.gang("runs", tasks=4, gpus=1, duration="1h"))
    notes = reported(recorded(world, tmp_path, 21_000))["notes"]
    assert "the cluster was looked at every 7s: what lasted less may not have been seen" in notes


def test_a_cluster_without_gangs_has_nothing_to_compare(tmp_path: Path) -> None:
    result = run(str(recorded(worlds.world(nodes=1), tmp_path, 60)))
    assert result.exit_code == 0, result.output
    assert "no gang was seen, so there is nothing to compare" in result.stdout
    assert "UNCERTAINTY" in result.stdout


def test_an_empty_cluster_is_no_failure(tmp_path: Path) -> None:
    assert reported(recorded(worlds.world(nodes=0), tmp_path, 60))["gangs"] == []


def test_where_nothing_waits_nothing_is_gained(tmp_path: Path) -> None:
    world = deadlocks.without_gangs()
    worlds.submit(world, worlds.gang("runs", tasks=2, gpus=1, duration="1m"))
    found = reported(recorded(world, tmp_path, 300))
    assert (found["earlier"], found["later"], found["same"]) == (0, 0, 1)
    assert (found["halfStarted"], found["deadlocks"], found["waitedWithRoom"]) == ([], [], [])


def test_a_recording_with_a_gap_is_read_and_the_gap_said(tmp_path: Path) -> None:
    world = deadlocks.deadlocked()
    with observed(world, tmp_path):
        worlds.run(world, 100)
    worlds.run(world, 200)
    with observed(world, tmp_path):
        worlds.run(world, 400)
    found = reported(tmp_path)
    assert any("the recording has 1 gap" in note for note in found["notes"])
    assert [set(item["gangs"]) for item in found["deadlocks"]] == [{"default/a", "default/b"}]
    assert found["deadlocks"][0]["seconds"] > 300


def test_a_missing_segment_is_told(tmp_path: Path) -> None:
    world = deadlocks.deadlocked()
    for seconds in (100, 200, 300):
        recorded(world, tmp_path, seconds)
    segment_paths(tmp_path)[1].unlink()
    result = run(str(tmp_path))
    assert result.exit_code == 0
    assert "segment 2 missing; reading goes on with the checkpoint of" in result.stderr


def test_the_profile_of_the_recorded_scheduler_can_be_named(log: Path) -> None:
    assert reported(log)["recordedProfile"] == "default-scheduler"
    assert reported(log, "--recorded-profile", "volcano")["recordedProfile"] == "volcano"


def test_a_recording_of_ours_says_by_which_profile_was_decided(tmp_path: Path) -> None:
    world = worlds.world(nodes=1)
    with own(world, tmp_path, profile="coscheduling"):
        world.submit([worlds.gang("train", tasks=2, cpu=1)])
        worlds.run(world, 60)
    assert reported(tmp_path)["recordedProfile"] == "coscheduling"
    assert reported(tmp_path, "--recorded-profile", "volcano")["recordedProfile"] == "volcano"


def test_our_world_can_be_another_profile(log: Path) -> None:
    assert reported(log, "--profile", "volcano")["profile"] == "volcano"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "error: nowhere: no such folder; name the one that was given to --record"),
        (["LOG", "--profile", "nobody"], "error: profile: unknown profile 'nobody'; known: "),
        (["LOG", "--recorded-profile", "volcan"], "error: profile: unknown profile 'volcan'; did you mean 'volcano'?"),
        (["LOG", "--html", "nowhere/page.html"], "error: --html: nowhere/page.html: cannot be written: No such file or directory"),
    ],
)
def test_wrong_input_is_a_sentence(arguments: list[str], sentence: str, log: Path) -> None:
    result = run(*(str(log) if word == "LOG" else word for word in arguments))
    assert result.exit_code == 1
    assert sentence in result.stderr


def test_an_empty_folder_is_a_sentence(tmp_path: Path) -> None:
    result = run(str(tmp_path))
    assert (result.exit_code, "no recording in it" in result.stderr) == (1, True)


def test_a_recording_of_another_version_is_a_sentence(log: Path, tmp_path: Path) -> None:
    first = segment_paths(log)[0]
    content = first.read_bytes()
    line, _, rest = content.partition(b"\n")
    (tmp_path / first.name).write_bytes(re.sub(rb"\b\d+\b", b"99", line, count=1) + b"\n" + rest)
    result = run(str(tmp_path))
    assert result.exit_code == 1
    assert "was written in format 99" in result.stderr


def test_two_rules_for_our_world_are_wrong_usage(log: Path) -> None:
    assert run(str(log), "--profile", "kai", "--config", "conf.yaml").exit_code == 2
