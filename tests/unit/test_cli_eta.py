"""`phalanx eta`: what it reads, what it writes, and how it ends."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.cli.eta_simulations import (
    EtaInput,
    EtaSettings,
    SimulationPlan,
    _in_processes,
    _Inputs,
    _one_by_one,
    eta_cluster,
    simulated,
)
from phalanx.cli.session_input import cluster_for, input_of
from phalanx.config.policies import policy_of_profile
from phalanx.model.moment import moment_of
from phalanx.sim.eta import EtaRun
from phalanx.store.input_files import take_in
from phalanx.testing import build

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "when-does-it-start")
NOW = "2026-01-05T09:00:00Z"


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(main, ["eta", *arguments], input=given, prog_name="phalanx")


def example(*arguments: str, seeds: int = 10) -> Result:
    return run("-f", EXAMPLE, "--now", NOW, "--seeds", str(seeds), *arguments)


def data(*arguments: str, seeds: int = 10) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(example("-o", "json", *arguments, seeds=seeds).stdout)
    return found


def test_the_table_shows_when_and_after_whom_gangs_start() -> None:
    found = example()
    header, whisper, llama, mixtral, _, summary = found.stdout.splitlines()
    assert header.split() == ["GANG", "QUEUE", "WAITING", "STARTS", "AT", "BY", "AFTER"]
    assert whisper.startswith("research/whisper  default  20m      in 3")
    assert whisper.endswith("after research/resnet-4 has finished")
    assert "after research/whisper, research/bert and research/resnet-4 have finished" in llama
    assert mixtral.endswith("  unknown: research/notebook has no known duration")
    assert summary == "10 simulations, and 3 with arrivals as in the last 1d (6 gangs), each up to 7d from 2026-01-05T09:00:00Z"
    assert found.stderr.splitlines() == [
        "note: no duration is known for research/notebook: assumed never to end; --assume 4h says otherwise",
        "note: only a deadline is known for research/llama: assumed to end at any time before it",
    ]
    assert found.exit_code == 3


def test_one_gang_may_be_asked_for_and_the_exit_status_is_about_it() -> None:
    found = example("research/whisper")
    assert [line.split()[0] for line in found.stdout.splitlines()[1:-2]] == ["research/whisper"]
    assert found.exit_code == 0
    assert example("research/mixtral", seeds=1).exit_code == 3


def test_a_gang_that_runs_does_not_wait() -> None:
    found = example("research/bert")
    assert (found.stdout, found.exit_code) == ("research/bert: Runs; it does not wait.\n", 0)


def test_a_gang_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    found = example("research/gpt")
    assert found.exit_code == 1
    assert "there is no gang research/gpt; there are research/bert, research/llama, research/mixtral" in found.stderr
    assert "there is no gang whispr; did you mean research/whisper?" in example("whispr").stderr


def test_a_gang_is_named_as_for_explain() -> None:
    whole = example("research/whisper", seeds=1).stdout
    for typed in (["whisper"], ["whisper", "-n", "research"], ["gang/research/whisper"], ["whisp"]):
        assert example(*typed, seeds=1).stdout == whole
    assert example("whisper", "-n", "default").exit_code == 1


def test_a_gang_is_found_by_its_owner() -> None:
    documents = [build.node("node-0", gpus=1), *build.gang("group-of-a", gpus=1)]
    documents[1]["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "1"}]
    found = run("a", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    assert found.stdout.splitlines()[1].startswith("default/group-of-a "), found.output


def test_a_group_that_cannot_be_read_is_an_error() -> None:
    documents = [build.node("node-0", gpus=1), *build.gang("a", gpus=1), *build.gang("b", gpus=1)]
    documents[1]["spec"]["minMember"] = "many"
    found = run("default/a", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    assert (found.exit_code, found.stdout) == (1, "")
    assert "spec.minMember" in found.stderr.splitlines()[-1]


def test_durations_in_a_history_are_not_negative(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('{"gang": "ml/a", "seconds": -4}\n')
    found = example("--history", str(tmp_path / "history.jsonl"))
    assert found.exit_code == 1
    assert "line 1: Expected `float` >= 0" in found.stderr


def test_json_holds_quantiles_and_what_is_known() -> None:
    found = data()
    whisper = next(gang for gang in found["gangs"] if gang["gang"] == "research/whisper")
    assert 0 < whisper["p50Seconds"] <= whisper["p90Seconds"] <= 3601
    assert (whisper["startedIn"], whisper["waitingSince"], whisper["after"]) == (10, "2026-01-05T08:40:00Z", ["research/resnet-4"])
    assert whisper["startsAt"].startswith("2026-01-05T09:3")
    known = {gang: (item["from"], item["medianSeconds"], item["doneSeconds"]) for gang, item in found["durations"].items()}
    assert known["research/bert"] == ("annotation", 7200, 3600)
    assert known["research/resnet-4"] == ("history", 5400, 4200)
    assert known["research/notebook"] == ("unknown", None, 3600)


def test_yaml_holds_the_same_as_json() -> None:
    assert yaml.safe_load(example("-o", "yaml", seeds=1).stdout) == data(seeds=1)


def p50_and_p90(found: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {gang["gang"]: (gang["p50Seconds"], gang["p90Seconds"]) for gang in found["gangs"] if gang["p50Seconds"] is not None}


def test_later_submissions_delay_p90_and_never_p50() -> None:
    found, alone = data(), data("--arrivals", "none")
    assert (found["arrivals"], alone["arrivals"]) == ({"gangs": 6, "seconds": 86_400.0, "seeds": 3}, None)
    late, early = p50_and_p90(found), p50_and_p90(alone)
    assert all(late[gang][0] == early[gang][0] and late[gang][1] >= early[gang][1] for gang in early)
    assert late["research/llama"][1] > early["research/llama"][1]


def test_the_same_input_gives_the_same_answer() -> None:
    assert data(seeds=2) == data(seeds=2)


def test_too_few_submissions_say_nothing_about_later_ones() -> None:
    found = run("-f", EXAMPLE, "--now", "2026-01-06T08:45:00Z", "--seeds", "2")
    assert (
        "note: arrivals, gangs that are submitted later, are not counted: fewer than 5 submissions of known duration in the last 1d"
        in found.stderr.splitlines()
    )
    assert "not counted" not in example("--arrivals", "none", seeds=1).stderr


# --- overdue -------------------------------------------------------------------------------------------------------------


def test_a_gang_that_has_run_longer_than_expected_is_named_with_what_is_assumed() -> None:
    found = run("-f", EXAMPLE, "--now", "2026-01-05T10:30:00Z", "--seeds", "1")
    assert (
        "note: research/bert has run for 2h30m, longer than expected (annotation phalanx.dev/duration: 2h at most): "
        "assumed to end within another 2h30m"
    ) in found.stderr.splitlines()
    assert "resnet-4 has run" not in found.stderr


def test_overdue_gangs_are_marked_and_noted_in_json() -> None:
    found = json.loads(run("-f", EXAMPLE, "--now", "2026-01-05T10:30:00Z", "--seeds", "1", "-o", "json").stdout)
    assert {gang for gang, item in found["durations"].items() if item["isOverdue"]} == {"research/bert"}
    assert any(text.startswith("research/bert has run for 2h30m") for text in found["notes"])


def test_an_old_file_is_said_to_be_old_with_the_moment_to_ask_for() -> None:
    found = run("-f", EXAMPLE, "--seeds", "1")
    advice = "note: the input is old: its newest time is 2026-01-05T08:55:00Z; to ask as of then, write --now 2026-01-05T08:55:00Z"
    assert advice in found.stderr.splitlines()
    assert sum("longer than expected" in line for line in found.stderr.splitlines()) == 2
    assert "the input is old" not in run("-f", EXAMPLE, "--seeds", "1", "--now", "2026-01-05T10:30:00Z").stderr
    assert "overdue" not in run("-f", EXAMPLE, "--seeds", "1", "--now", "2026-01-05T08:55:00Z").stderr


def test_an_assumption_lets_gangs_of_unknown_duration_end() -> None:
    found = example("research/mixtral", "--assume", "2h..3h", seeds=1)
    assert found.exit_code == 0
    assert "note: no duration is known for research/notebook: assumed as --assume says" in found.stderr


def test_a_history_says_how_long_gangs_of_a_name_take(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text("".join(f'{{"gang": "research/notebook", "seconds": {seconds}}}\n' for seconds in (7000, 7200, 7400)))
    assert data("--history", str(history), seeds=1)["durations"]["research/notebook"]["source"] == (
        "3 finished gangs of the name research/notebook"
    )
    assert example("research/mixtral", "--history", str(history), seeds=1).exit_code == 0


def test_finished_gangs_can_be_kept_as_a_history(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    example("--write-history", str(history), seeds=1)
    first = history.read_text()
    assert json.loads(first.splitlines()[0]) == {
        "gang": "research/resnet-1", "seconds": 4800.0, "image": "resnet:4", "finished": "2026-01-02T11:20:00Z",
    }  # fmt: skip
    example("--history", str(history), "--write-history", str(history), seeds=1)
    assert history.read_text() == first


def test_nobody_waits() -> None:
    documents = [build.node("node-0", gpus=1), *build.gang("a", gpus=1)]
    documents[2]["spec"]["nodeName"], documents[2]["status"] = "node-0", {"phase": "Running"}
    found = run("-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    assert (found.stdout, found.exit_code) == ("No gang waits.\n", 0)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--horizon", "soon"), "--horizon: 'soon' is not a duration; write for example 90s, 2h30m or 7d"),
        (("--timeout", "0"), "--timeout: '0' is not a duration"),
        (("--assume", "2h..1h"), "--assume: '2h..1h' is not a duration; write for example 4h or 30m..6h"),
        (("--server", "http://127.0.0.1:1"), "-f names files, and --server, --kubeconfig and --context a cluster"),
        (("--now", "soon"), "--now: "),
        (("--config", "a.yaml", "--profile", "kai"), "--config and --profile exclude each other"),
    ],
)
def test_wrong_usage_says_what_to_write(arguments: tuple[str, ...], problem: str) -> None:
    found = example(*arguments)
    assert found.exit_code == 2
    assert problem in found.stderr


# --- time ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def given() -> EtaInput:
    now = moment_of(NOW)
    assert now is not None
    policy = policy_of_profile("phalanx")
    read = input_of(take_in([EXAMPLE], cluster_for(policy, ())), policy, (), now)
    return eta_cluster(read, EtaSettings(86_400.0)).input


def test_processes_find_what_one_process_finds(given: EtaInput) -> None:
    small = replace(given, question=replace(given.question, gangs=given.question.gangs[-1:]))
    end = time.monotonic() + 60
    first = small.run(0, end)
    inputs = _Inputs(
        replace(small, question=small.question.without_arrivals(2)),
        replace(small, question=small.question.with_arrivals(2, first)),
    )
    found = sorted(_in_processes(inputs, end), key=lambda run: (run.has_arrivals, run.seed))
    assert [(run.has_arrivals, run.seed) for run in found] == [(False, 1), (True, 0), (True, 1)]
    assert found == sorted(_one_by_one(inputs, end), key=lambda run: (run.has_arrivals, run.seed))


def test_a_gang_that_cannot_start_does_not_make_simulations_longer(given: EtaInput) -> None:
    """mixtral waits for a gang that never ends, whatever comes later: who else starts decides when a simulation is over."""
    found = simulated(given, SimulationPlan(2, 1), time.monotonic() + 60, divides=False).runs
    assert [run.has_arrivals for run in found].count(True) == 1
    assert all(run.reached < 43_200 and "research/mixtral" not in run.starts for run in found)


def test_simulations_of_both_kinds_come_in_turn(given: EtaInput) -> None:
    question = given.question
    first = EtaRun(0, {"research/whisper": 60.0}, {}, {}, 60.0)
    inputs = _Inputs(
        replace(given, question=question.without_arrivals(4)), replace(given, question=question.with_arrivals(2, first))
    )
    assert [is_crowded for _, is_crowded in inputs.plan] == [True, False, False, True, False]


def test_no_simulation_begins_when_the_time_is_over(given: EtaInput) -> None:
    found = simulated(given, SimulationPlan.of(20), time.monotonic())
    assert [(run.seed, run.is_whole) for run in found.runs] == [(0, False)]


def test_fewer_simulations_are_said() -> None:
    assert "1 simulation of 10, then the time was over" in example("--timeout", "0.001s").stdout
