"""`phalanx tune`: a configuration that is better on seeds that the search has not seen, the same wherever it is searched."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.config.policies import policy_of
from phalanx.dev.processes import launch

pytest.importorskip("optuna", reason="searches need the extra tune")

LOAD = ("--workload", "generated:jobs=24,nodes=4,days=0.08,load=0.8", "--until", "2h")
SEARCH = (
    *LOAD, "--profile", "volcano", "--minimise", "fragmentation", "--trials", "6", "--batch", "3", "--seeds", "1..2",
    "--held-out", "11..13",
)  # fmt: skip
PATIENCE_SECONDS = 60.0
DEADLOCK = Path(__file__).parents[2] / "examples" / "deadlock"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["tune", *arguments], prog_name="phalanx")


def test_a_configuration_is_found_that_is_better_on_seeds_that_the_search_has_not_seen(tmp_path: Path) -> None:
    found = run(*SEARCH, "--processes", "1")
    assert found.exit_code == 0, found.output
    assert "GOAL, on seeds 11..13, which the search has not seen" in found.stdout
    text = (tmp_path / "tuned.yaml").read_text()
    assert text.startswith("# written by 'phalanx tune --to': minimise fragmentation.")
    policy_of(yaml.safe_load(text))
    compared = CliRunner().invoke(
        main, ["simulate", *LOAD, "--seeds", "11..13", "--compare", "volcano,tuned.yaml", "--processes", "1", "-o", "json"]
    )
    line = next(line for line in json.loads(compared.stdout)["comparison"]["metrics"] if line["metric"] == "fragmentation")
    assert [value["isBest"] for value in line["values"]] == [False, True]


def test_a_search_goes_on_where_it_was_and_finds_the_same(tmp_path: Path) -> None:
    whole = run(*SEARCH, "--processes", "1", "--state", "search.json")
    state = json.loads((tmp_path / "search.json").read_text())
    kept = list(state["results"].items())[:5]
    (tmp_path / "search.json").write_text(json.dumps({**state, "results": dict(kept)}))
    again = run(*SEARCH, "--processes", "1", "--state", "search.json", "-o", "json")
    assert "goes on with 5 simulations of search.json" in again.stderr
    assert json.loads(again.stdout)["isBetter"] == (whole.exit_code == 0)
    assert json.loads((tmp_path / "search.json").read_text()) == state


def test_the_state_of_another_search_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"form": "phalanx-tune/1", "question": {}, "results": {}}))
    found = run(*SEARCH, "--state", "other.json")
    assert found.exit_code == 1
    assert "--state: other.json is of another search, with another version, load, jitter, goal" in found.output


def test_where_nothing_is_better_nothing_is_written(tmp_path: Path) -> None:
    found = run(*LOAD, "--minimise", "gangs", "--trials", "1", "--seeds", "1", "--held-out", "11..12", "--processes", "1")
    assert found.exit_code == 3, found.output
    assert "not better than phalanx by more than chance" in found.stdout
    assert not (tmp_path / "tuned.yaml").exists()


def test_weights_of_queues_are_written_into_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text("queues: {team-1: {from: 1, to: 8}, team-4: {from: 1, to: 8}}\n")
    options = ("--space", "space.yaml", "--queues-to", "queues.yaml", "--processes", "1", "-o", "json")
    found = run(*LOAD, "--minimise", "mean wait", "--trials", "3", "--seeds", "1..2", "--held-out", "11..12", *options)
    answer = json.loads(found.stdout)
    assert [item["setting"] for item in answer["searched"]] == ["team-1: weight", "team-4: weight"]
    assert (tmp_path / "queues.yaml").exists() == answer["isBetter"]
    refused = run(*LOAD, "--minimise", "mean wait", "--space", "space.yaml")
    assert "--space: weights of queues are no part of a configuration; name a file for them with --queues-to" in refused.output


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ((), 2, "a search has one goal"),
        (("--minimise", "p95 wait"), 1, "--minimise: 'p95 wait' is no metric; write one of: gangs, "),
        (("--minimise", "p90 wait", "--subject-to", "x"), 1, "--subject-to: 'x' is no bound"),
        (("--minimise", "p90 wait", "--held-out", "1..9"), 2, "--held-out: the search must not have seen these seeds"),
        (("--minimise", "p90 wait", "--held-out", "9"), 2, "--held-out: two seeds at least"),
        (("--minimise", "p90 wait", "--profile", "default-scheduler"), 1, "schedules no gangs and has nothing to tune"),
        (("--minimise", "p90 wait", "--profile", "kai"), 1, "--space: which settings of profile 'kai' to search is not known"),
    ],
)
def test_what_cannot_be_searched_is_refused(options: tuple[str, ...], status: int, message: str) -> None:
    found = run(*LOAD, *options)
    assert (found.exit_code, message in found.output) == (status, True), found.output


def test_a_load_in_which_nothing_is_random_is_refused() -> None:
    found = run(
        str(DEADLOCK), "--minimise", "mean wait", "--trials", "1", "--seeds", "1", "--held-out", "11..12", "--processes", "1"
    )
    assert found.exit_code == 1
    assert "every seed gives the same: nothing in this load is random; let it vary with --jitter 0.1" in found.output


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "tuned.yaml").write_text("profile: volcano\n")
    found = run(*SEARCH)
    assert (found.exit_code, "exists, and was not written by 'phalanx tune'" in found.output) == (1, True)


# --- a cluster -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[str]:
    """Start a Dask cluster of two workers, and give its address."""
    pytest.importorskip("distributed", reason="a Dask cluster needs the package distributed")
    file = tmp_path / "scheduler.json"
    program = [sys.executable, "-W", "ignore", "-m", "dask"]
    scheduler = [*program, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    worker = [*program, "worker", "--scheduler-file", str(file), "--nworkers", "2", "--nthreads", "1", "--no-dashboard"]
    with (tmp_path / "log").open("w") as log:
        programs = [
            launch(command, stdout=log, stderr=log) for command in (scheduler, [*worker, "--local-directory", str(tmp_path)])
        ]
        end = time.monotonic() + PATIENCE_SECONDS
        while not _address(file) and time.monotonic() < end:
            time.sleep(0.1)
        assert _address(file), (tmp_path / "log").read_text()
        yield _address(file).replace("tcp://", "dask://")
        for started in reversed(programs):
            started.terminate()
            started.wait(PATIENCE_SECONDS)


def _address(file: Path) -> str:
    try:
        found: Any = json.loads(file.read_text())
    except (OSError, ValueError):
        return ""
    return str(found["address"])


@pytest.mark.timeout(300)
def test_a_dask_cluster_of_two_workers_finds_the_same_as_this_machine(dask: str, tmp_path: Path) -> None:
    here = run(*SEARCH, "--processes", "1", "--to", "here.yaml")
    there = run(*SEARCH, "--on", dask, "--to", "there.yaml")
    assert (here.exit_code, there.exit_code) == (0, 0), there.output
    assert there.stdout.replace("there.yaml", "here.yaml") == here.stdout
    assert (tmp_path / "there.yaml").read_text() == (tmp_path / "here.yaml").read_text()
