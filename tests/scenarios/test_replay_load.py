"""The work of a recording as a load: simulated again it goes as it went, and other rules make of it what they would have."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.recording.segments import SegmentWriter

ROOT = Path(__file__).resolve().parents[2]
WORK = ("--workload", "generated:jobs=40,nodes=4,days=1,load=1.2", "--seed", "3")
STALE = (str(ROOT / "examples" / "stale-gang"),)
CASES = [(WORK, "phalanx"), (WORK, "kai"), (STALE, "phalanx"), (STALE, "volcano")]
SECOND = 1.0


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="phalanx")


def simulated(*arguments: str) -> Any:
    result = run("simulate", *arguments, "-o", "json")
    assert result.exit_code in (0, 3), result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of a simulated day."""
    folder: Path = tmp_path_factory.mktemp("log")
    simulated(*WORK, "--record", str(folder))
    return folder


def _fates(result: Any) -> dict[str, Any]:
    names = ("submitted", "started", "finished", "wait")
    return {
        gang["name"]: pytest.approx({name: gang[name] for name in names if gang[name] is not None}, abs=SECOND)
        for gang in result["gangs"]
    }


@pytest.mark.parametrize(("work", "profile"), CASES)
def test_a_load_goes_as_the_recording_went(work: Sequence[str], profile: str, tmp_path: Path) -> None:
    then = simulated(*work, "--profile", profile, "--record", str(tmp_path / "log"))
    file = tmp_path / "load.yaml"
    result = run("replay", str(tmp_path / "log"), "--to", str(file))
    assert result.exit_code == 0, result.output
    again = simulated(str(file), "--profile", profile)
    assert {gang["name"]: {key: gang[key] for key in ("submitted", "started", "finished", "wait") if gang[key] is not None}
            for gang in again["gangs"]} == _fates(then)  # fmt: skip
    assert [(gang["name"], gang["queue"], gang["minimum"], gang["tasks"], gang["evicted"]) for gang in again["gangs"]] == [
        (gang["name"], gang["queue"], gang["minimum"], gang["tasks"], gang["evicted"]) for gang in then["gangs"]
    ]
    assert again["metrics"]["evictions"] == then["metrics"]["evictions"]


def test_events_of_nodes_are_in_the_load(tmp_path: Path) -> None:
    simulated(*STALE, "--record", str(tmp_path))
    documents = list(yaml.safe_load_all(run("replay", str(tmp_path), "--to", "-").stdout))
    (scenario,) = (document for document in documents if document["kind"] == "Scenario")
    assert scenario["nodes"] == [
        {"at": "600s", "node": "gpu-1", "event": "die"}, {"at": "1800s", "node": "gpu-2", "event": "die"},
        {"at": "2700s", "node": "gpu-1", "event": "return"}, {"at": "2700s", "node": "gpu-2", "event": "return"},
    ]  # fmt: skip
    assert not any("nodeName" in document["spec"] or "status" in document for document in documents if document["kind"] == "Pod")


# --- other rules ---------------------------------------------------------------------------------------------------------


def test_other_rules_are_compared_gang_by_gang(log: Path) -> None:
    result = run("replay", str(log), "--profile", "kai", "-o", "json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["configurations"] == {"simulated": "phalanx", "other": "kai"}
    gangs = answer["gangs"]
    assert len(gangs) == 40
    assert [abs(gang["difference"]) for gang in gangs] == sorted((abs(gang["difference"]) for gang in gangs), reverse=True)
    assert gangs[0]["difference"] != 0
    for gang in gangs:
        assert gang["simulated"]["wait"] == pytest.approx(gang["recorded"]["wait"], abs=SECOND)
        assert gang["simulated"]["evicted"] == gang["recorded"]["evicted"]
        assert gang["difference"] == pytest.approx(gang["other"]["wait"] - gang["simulated"]["wait"], abs=0.01)
    assert answer["uncertainty"]["agreeing"] == answer["uncertainty"]["gangs"] == 40
    assert answer["uncertainty"]["evictions"] == 0
    for name, part in answer["totals"].items():
        outcomes = [gang[name] for gang in gangs]
        assert part["evictions"] == sum(outcome["evicted"] for outcome in outcomes)
        assert part["neverStarted"] == sum(not outcome["started"] for outcome in outcomes)
        assert part["meanWait"] == pytest.approx(sum(outcome["wait"] for outcome in outcomes) / 40, abs=0.01)


def test_the_table_says_the_same(log: Path) -> None:
    result = run("replay", str(log), "--profile", "kai")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[2].split() == [
        "GANG", "QUEUE", "WAIT", "IN", "phalanx", "IN", "kai", "DIFFERENCE", "EVICTED", "IN", "phalanx", "IN", "kai",
    ]  # fmt: skip
    assert len([line for line in lines if line.startswith("default/job-")]) == 40
    assert any(line.startswith("mean wait ") for line in lines)
    assert "uncertainty: the simulation of phalanx differs from what was recorded by 0s of waiting on average" in result.stdout
    assert "40 of 40 gangs agree within 1s, as many pods are evicted" in result.stdout


def test_the_same_rules_in_a_file_make_no_difference(tmp_path: Path) -> None:
    simulated(*STALE, "--record", str(tmp_path / "log"))
    (tmp_path / "same.yaml").write_text("profile: phalanx\n")
    result = run("replay", str(tmp_path / "log"), "--config", str(tmp_path / "same.yaml"), "-o", "yaml")
    assert result.exit_code == 0, result.output
    answer = yaml.safe_load(result.stdout)
    assert answer["configurations"]["other"] == "same.yaml"
    assert all(gang["other"] == gang["simulated"] for gang in answer["gangs"])
    assert answer["totals"]["simulated"]["evictions"] == answer["totals"]["recorded"]["evictions"] == 3


def test_pods_that_are_scheduled_one_by_one_may_never_start(tmp_path: Path) -> None:
    simulated(str(ROOT / "examples" / "deadlock"), "--record", str(tmp_path))
    answer = json.loads(run("replay", str(tmp_path), "--profile", "default-scheduler", "-o", "json").stdout)
    assert answer["totals"]["recorded"]["neverStarted"] == answer["totals"]["simulated"]["neverStarted"] == 0
    assert answer["totals"]["other"]["neverStarted"] == len([gang for gang in answer["gangs"] if not gang["other"]["started"]]) > 0
    assert " never " in run("replay", str(tmp_path), "--profile", "default-scheduler").stdout


# --- files and options ---------------------------------------------------------------------------------------------------


def test_a_file_of_somebody_else_stays(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "load.yaml"
    file.write_text("kind: Pod\n")
    result = run("replay", str(log), "--to", str(file))
    assert result.exit_code == 1
    assert "exists, and was not written by 'phalanx replay'; remove it, or name another file" in result.stderr
    assert file.read_text() == "kind: Pod\n"
    file.unlink()
    for _ in range(2):  # one of ours is written again
        assert run("replay", str(log), "--to", str(file)).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["load.yaml"]
    assert run("replay", str(log), "--to", str(tmp_path / "none" / "load.yaml")).exit_code == 1


@pytest.mark.parametrize("arguments", [("--to", "-"), ("--profile", "kai")])
def test_an_empty_recording_gets_a_sentence(arguments: Sequence[str], tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, 1):
        pass
    result = run("replay", str(tmp_path), *arguments)
    assert result.exit_code == 1
    assert "the recording is empty" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--to", "x", "--profile", "kai"), "leave out --config and --profile, and give them to 'simulate'"),
        (("--to", "x", "-o", "json"), "leave out -o"),
        (("--to", "x", "-v", "3"), "-v traces a session"),
        (("--profile", "kai", "--config", "x"), "--config and --profile exclude each other"),
        (("--assume", "1h"), "use it with --to, --config or --profile"),
        (("--to", "x", "--assume", "long"), "'long' is not a duration"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: Sequence[str], text: str, tmp_path: Path) -> None:
    result = run("replay", str(tmp_path), *arguments)
    assert result.exit_code == 2
    assert text in result.stderr


def test_an_unknown_profile_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    result = run("replay", str(tmp_path), "--profile", "kay")
    assert result.exit_code == 1
    assert "kay" in result.stderr
    assert "recording" not in result.stderr
