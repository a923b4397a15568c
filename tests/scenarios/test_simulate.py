"""`phalanx simulate` as people type it: what it reads and writes, and how it ends."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.dev.processes import launch
from phalanx.plugins.gang import GangPlugin
from phalanx.session.session import Session
from phalanx.sim.traces import FORMATS
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import Verdict
from phalanx.testing import build
from tests.support import sim_worlds as worlds
from tests.support import volcano_jobs as jobs

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "tests" / "data" / "traces"
HEAD = "apiVersion: phalanx.dev/v1alpha1\nkind: Scenario\n"
GANG_PROFILES = ("phalanx", "volcano", "kai")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments], prog_name="phalanx")


def answer(*arguments: str) -> Any:
    result = run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with three nodes of one GPU and two gangs that want all of them for ten minutes each."""
    objects = [build.node(f"gpu-{number}", gpus=1) for number in (1, 2, 3)]
    for name in ("bert", "resnet"):
        objects += worlds.gang(name, tasks=3, duration="10m", gpus=1)  # type: ignore[arg-type]  # documents are dicts here
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return tmp_path


def with_scenario(folder: Path, text: str) -> str:
    (folder / "scenario.yaml").write_text(HEAD + text)
    return str(folder)


def test_two_gangs_block_each_other_without_gang_scheduling_and_not_with_it(folder: Path) -> None:
    deadlocked = answer(str(folder), "--profile", "default-scheduler", "--until", "2h")
    assert deadlocked["deadlocks"] == [{"since": 0.0, "gangs": ["default/bert", "default/resnet"], "holds": 3.0}]
    assert deadlocked["metrics"]["started"] == 0
    for profile in GANG_PROFILES:
        found = answer(str(folder), "--profile", profile)
        assert found["deadlocks"] == []
        assert [(gang["started"], gang["finished"]) for gang in found["gangs"]] == [(1.0, 601.0), (602.0, 1202.0)]


# --- the trace -----------------------------------------------------------------------------------------------------------


def test_the_trace_of_every_session_goes_to_stderr_and_changes_nothing(folder: Path) -> None:
    silent, told = run(str(folder)), run(str(folder), "-v", "3")
    assert told.stdout == silent.stdout
    assert silent.stderr == ""
    first, _, rest = told.stderr.partition("\n")
    assert first == "session 1 of phalanx at 0s"
    assert "[3] try gang default/bert of queue default\n" in rest
    assert "\nsession 2 of phalanx at " in rest


def test_the_trace_of_a_gang_leaves_sessions_and_lines_of_others_out(folder: Path) -> None:
    told = run(str(folder), "-v", "5", "--gang", "default/bert").stderr
    assert "[3] bind task default/bert-0 to node gpu-1\n" in told
    assert "resnet" not in told
    sessions = [run(str(folder), "-v", "3", *more).stderr.count("session ") for more in (("--gang", "default/bert"), ())]
    assert sessions[0] < sessions[1]


def test_the_trace_is_in_an_answer_for_programs(folder: Path) -> None:
    assert "trace" not in answer(str(folder))
    steps = answer(str(folder), "-v", "3", "--gang", "default/resnet")["trace"]
    bound = [step for step in steps if step["event"] == "bind"]
    assert [(step["task"], step["level"], step["seconds"]) for step in bound] == [
        (f"default/resnet-{number}", 3, bound[0]["seconds"]) for number in range(3)
    ]
    assert bound[0]["session"] > steps[0]["session"]


def test_the_deadlock_is_told_in_plain_words(folder: Path) -> None:
    shown = run(str(folder), "--profile", "default-scheduler").stdout
    assert "since 0s default/bert and default/resnet hold 3 nvidia.com/gpu together; none of them has its minimum" in shown
    assert "2 gangs still wait, and for a day nothing has changed\n" in shown
    assert shown.endswith("default-scheduler: 2 of 2 gangs never started: default/bert, default/resnet\n")


def test_the_table_has_a_timeline_gangs_waits_and_figures(folder: Path) -> None:
    shown = run(
        with_scenario(folder, "nodes:\n- {at: 5m, node: gpu-1, event: die}\n- {at: 6m, node: gpu-1, event: return}\n")
    ).stdout
    assert re.search(r"^0s +default/bert arrives with 3 tasks$", shown, re.MULTILINE)
    assert re.search(r"^5m +node gpu-1 dies\n5m +default/bert is interrupted\n6m +node gpu-1 returns$", shown, re.MULTILINE)
    assert re.search(r"^6m\w+ +default/\w+ starts( again)?$", shown, re.MULTILINE)
    assert re.search(r"^GANG +QUEUE +TASKS +MIN +ARRIVES +STARTS +FINISHES +WAIT +RUN +EVICTED +WHY$", shown, re.MULTILINE)
    assert re.search(r"^queue default +2 ", shown, re.MULTILINE)
    assert re.search(r"^lost work +0\.\d+ h$", shown, re.MULTILINE)
    assert shown.endswith("nothing more can happen\n")


def test_long_tables_are_cut_with_a_count() -> None:
    shown = run("--workload", "generated:jobs=60,nodes=20,days=1,load=0.2").stdout
    assert re.search(r"^and \d+ more events; -o json has all of them$", shown, re.MULTILINE)
    assert "and 20 more gangs; -o json has all of them" in shown


def test_a_comparison_has_a_column_per_profile_and_marks_the_best(folder: Path) -> None:
    result = run(str(folder), "--compare", "volcano,kai,phalanx,default-scheduler", "--until", "1h")
    lines = {line[:30].strip(): line[30:] for line in result.stdout.splitlines()}
    assert lines["gangs finished"].split() == ["2", "*", "2", "*", "2", "*", "0"]
    assert lines["deadlocks"].split() == ["0", "*", "0", "*", "0", "*", "1"]
    assert lines["pods evicted"].split() == ["0", "0", "0", "0"]
    assert "default-scheduler: deadlock since 0s default/bert and default/resnet hold 3" in result.stdout
    both = answer(str(folder), "--compare", "phalanx,volcano")["results"]
    assert [found["profile"] for found in both] == ["phalanx", "volcano"]
    assert both[0] == answer(str(folder), "--profile", "phalanx")


def test_yaml_holds_the_same_as_json(folder: Path) -> None:
    assert yaml.safe_load(run(str(folder), "-o", "yaml").stdout) == answer(str(folder))


@pytest.mark.parametrize("arguments", [("--profile", "kai"), ("--compare", "volcano,phalanx"), ("-o", "json")])
def test_the_same_twice_gives_the_same_bytes(folder: Path, arguments: tuple[str, ...]) -> None:
    path = with_scenario(folder, "delays: {bind: 0s..2s, pull: 1s..20s}\ndurations: [{match: '*', duration: 1m..9m}]\n")
    assert run(path, *arguments).stdout_bytes == run(path, *arguments).stdout_bytes
    assert run(path, *arguments).stdout_bytes != run(path, *arguments, "--seed", "5").stdout_bytes


def test_the_command_line_goes_before_the_scenario_and_its_own_file_before_that_in_the_folder(folder: Path, tmp_path: Path) -> None:
    path = with_scenario(folder, "until: 20s\nseed: 3\n")
    assert (answer(path)["seconds"], answer(path)["seed"]) == (20.0, 3)
    found = answer(path, "--until", "1m", "--seed", "4")
    assert (found["seconds"], found["seed"]) == (60.0, 4)
    own = tmp_path / "other"
    own.write_text(HEAD + "until: 5s\n")
    assert answer(path, "--scenario", str(own))["seconds"] == 5.0


def test_an_expectation_that_is_not_met_is_told_and_exits_with_3(folder: Path) -> None:
    path = with_scenario(folder, "expect:\n- deadlocks: 0\n  gangs: {resnet: {finishes: true, after: bert, waits: 9m..11m}}\n")
    assert run(path).exit_code == 0
    result = run(path, "--profile", "default-scheduler")
    assert result.exit_code == 3
    place = f"not as expected: {folder}/scenario.yaml, line 4: expect[0]"
    assert f"{place}: deadlocks: expected 0, got 1\n" in result.stderr
    assert f"{place}.gangs.default/resnet: finishes: expected true; finished at None\n" in result.stderr


def test_pods_that_run_already_run_on() -> None:
    shown = answer(str(ROOT / "examples" / "preempt"))
    by_name = {gang["name"]: gang for gang in shown["gangs"]}
    assert by_name["research/bert"]["started"] == 0.0
    assert by_name["research/llama"]["started"] > 0.0
    assert {eviction["for"] for eviction in shown["evictions"]} == {"research/llama"}


@pytest.mark.parametrize("name", FORMATS)
def test_traces_are_simulated(name: str) -> None:
    files = TRACES / name / "trace_seren.csv" if name == "acme" else TRACES / name
    found = answer("--workload", f"{name}:{files}", "--until", "30m")
    assert found["metrics"]["gangs"] > 0
    assert found["metrics"]["started"] > 0


WRONG = [
    ((), 2, "nothing to simulate"),
    (("--workload", "weather"), 1, "--workload: 'weather' is unknown; write generated:jobs=1000,nodes=100, or FORMAT:PATH"),
    (("--workload", "philly:"), 1, "--workload: philly: names no file; write for example philly:traces/philly"),
    (("--workload", "philly:x,nodes=many"), 1, "--workload: philly: 'many' is not a number of nodes; write for example nodes=100"),
    (("--workload", "generated:jobs=0"), 1, "generated: jobs: '0' is not possible"),
    (("x", "--profile", "kai", "--compare", "kai"), 2, "--config, --profile and --compare exclude each other"),
    (("x", "--until", "soon"), 2, "--until: 'soon' is not a duration; write for example 90s, 2h30m or 7d"),
    (("x", "--speed", "fast"), 2, "--speed: 'fast' is not a factor; write for example 1x, 10x or max"),
    (("x", "--speed", "nan"), 2, "--speed: 'nan' is not between"),
    (("x", "--jitter", "nan"), 2, "Invalid value for '--jitter': 'nan' is not a number."),
    (("x", "--speed", "0x"), 2, "--speed: time does not stand still"),
    (("x", "--report", "nowhere/out.html"), 2, "--report: there is no folder 'nowhere'; make it first"),
    (("x", "--compare", "phalanx,vulcano"), 1, "did you mean 'volcano'?"),
    (("no-such-folder",), 1, "no-such-folder: no such file or folder"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "status", "problem"), WRONG)
def test_wrong_usage_says_what_to_write(arguments: tuple[str, ...], status: int, problem: str, folder: Path) -> None:
    result = run(*(str(folder) if argument == "x" else argument for argument in arguments))
    assert (result.exit_code, result.stdout) == (status, "")
    assert problem in result.stderr


BROKEN = [
    ("nodes:\n- {at: 5m, node: gpu-1, event: dies}", "line 4: nodes[0].event: 'dies' is unknown; write one of die, return, drain,"),
    ("nodes:\n- {at: 5m, node: gpu-7, event: die}", "line 4: nodes[0].node: 'gpu-7' does not exist; write one of the nodes,"),
    ("arrivals:\n- {at: 5m, gangs: [gpt]}", "line 4: arrivals[0].gangs: no gang is called 'default/gpt'; known are default/bert,"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), BROKEN)
def test_a_wrong_scenario_names_its_line(text: str, problem: str, folder: Path) -> None:
    path = with_scenario(folder, text)
    result = run(path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {path}/scenario.yaml, {problem}")


def test_two_scenarios_or_none_in_the_file_that_was_named_are_refused(folder: Path, tmp_path: Path) -> None:
    with_scenario(folder, "")
    (folder / "second.yaml").write_text(HEAD)
    assert "2 scenarios, in" in run(str(folder)).stderr
    empty = tmp_path / "empty"
    empty.write_text("seed: 1\n")
    assert (
        "no scenario in it; begin it with 'apiVersion: phalanx.dev/v1alpha1'" in run(str(folder), "--scenario", str(empty)).stderr
    )


def started(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "phalanx", "simulate", *arguments]
    return launch(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("speed", ["1x", "max"])
def test_ctrl_c_ends_cleanly_with_what_is_known_so_far(folder: Path, speed: str) -> None:
    load = [str(folder)] if speed == "1x" else ["--workload", "generated:jobs=2000,nodes=50,load=2"]
    process = started(*load, "--speed", speed, "-o", "json")
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    shown, words = process.communicate(timeout=60)
    assert process.returncode == 130, words
    found = json.loads(shown)
    assert found["metrics"]["gangs"] >= 1
    assert found["seconds"] > 0
    assert "interrupted; this is what was known by then" in words


@pytest.mark.parametrize("form", ["table", "json"])
def test_ctrl_c_in_a_comparison_says_what_is_missing(folder: Path, form: str) -> None:
    timer = Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = run(str(folder), "--speed", "1x", "--compare", "phalanx,volcano,kai", "-o", form)
    timer.join()
    assert result.exit_code == 130
    said = result.stdout if form == "table" else result.stderr
    assert "interrupted before volcano, kai: they are missing here\n" in said


def test_progress_is_shown_on_a_terminal_and_taken_away(folder: Path) -> None:
    reader, writer = pty.openpty()
    command = [sys.executable, "-m", "phalanx", "simulate", str(folder), "--speed", "10x", "--until", "10s"]
    shown = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stdout=subprocess.PIPE, stderr=writer, check=True
    )
    os.close(writer)
    progress = os.read(reader, 1 << 16).decode()
    os.close(reader)
    assert re.search(r"\rphalanx: [0-9.]+s of 10s, 0 of 2 gangs finished, \d+ s", progress)
    assert progress.endswith("\r\033[K")
    assert b"gangs finished," not in shown.stdout


def test_real_time_takes_its_time(folder: Path) -> None:
    begun = time.monotonic()
    found = answer(str(folder), "--speed", "10x", "--until", "20s")
    assert time.monotonic() - begun >= 1
    assert found["gangs"][0]["started"] == 1.0


def test_a_job_whose_pods_are_refused_again_and_again_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    job = jobs.job("train", jobs.task("worker"))
    job["spec"]["tasks"][0]["template"]["spec"]["priorityClassName"] = "nowhere"
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [build.node("n0"), job]}))
    result = run(str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "for a day nothing has changed" in result.output


# --- faults of ours ------------------------------------------------------------------------------------------------------

FAULT = "note: phalanx: gang default/bert: the scheduler failed on this gang and leaves it out (ZeroDivisionError: of bert)"


@pytest.fixture
def broken_on_bert(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the plugin gang a fault that one gang brings to light."""
    whole = GangPlugin.gang_valid

    def gang_valid(self: GangPlugin, session: Session, gang: GangState) -> Verdict:
        if gang.key == "default/bert":
            raise ZeroDivisionError("of bert")
        return whole(self, session, gang)

    monkeypatch.setattr(GangPlugin, "gang_valid", gang_valid)


@pytest.mark.usefixtures("broken_on_bert")
def test_a_simulation_goes_on_without_a_gang_on_which_sessions_fail_and_names_it(folder: Path) -> None:
    result = run(str(folder), "--until", "2h", "-o", "json")
    assert result.exit_code == 0, result.output
    assert result.stderr.count(FAULT) == 1
    assert "Traceback" not in result.output
    gangs = {gang["name"]: gang for gang in json.loads(result.stdout)["gangs"]}
    assert (gangs["default/bert"]["started"], gangs["default/resnet"]["finished"]) == (None, 601.0)
    assert "of bert" in gangs["default/bert"]["why"]


@pytest.mark.usefixtures("broken_on_bert")
def test_where_a_session_fails_on_a_gang_is_shown_once_with_all_details(folder: Path) -> None:
    result = run(str(folder), "--until", "2h", "-v", "5")
    assert result.exit_code == 0
    assert result.stderr.count("gang default/bert: Traceback (most recent call last):") == 1


def test_a_fault_for_which_no_gang_is_to_blame_ends_it_with_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: GangPlugin, session: Session) -> None:
        raise KeyError("always")

    monkeypatch.setattr(GangPlugin, "open", fail)
    result = run(str(folder))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: phalanx: the simulation failed at session 1, ")
    assert result.stderr.endswith(" after the start, please report it: KeyError: 'always'; '-v 5' shows where\n")
    assert "Traceback" in run(str(folder), "-v", "5").stderr
