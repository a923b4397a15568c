"""`phalanx simulate --seeds`: many seeds in parallel, means with intervals, and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.cli.parallel_jobs import Workers
from phalanx.cli.simulate_seeds import SeedsOutcome, hold_all
from phalanx.cli.simulation_jobs import SimulationJob
from phalanx.cli.simulation_load import SimulationInput, SimulationLoad
from phalanx.config.policies import policy_of_profile
from phalanx.sim.named_workloads import read_workload
from phalanx.sim.scenario import Scenario
from phalanx.sim.setup import Cast

LOAD = ("--workload", "generated:jobs=12,nodes=2,days=0.1", "--until", "3h")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments], prog_name="phalanx")


def answer(*arguments: str) -> Any:  # JSON
    result = run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_seed_is_simulated_under_every_policy_in_the_order_of_seeds() -> None:
    found = answer(*LOAD, "--seeds", "3..5", "--compare", "volcano,phalanx", "--processes", "1")
    assert [(item["seed"], item["profile"]) for item in found["runs"]] == [
        (seed, name) for seed in (3, 4, 5) for name in ("volcano", "phalanx")
    ]
    assert (found["comparison"]["seeds"], found["comparison"]["profiles"]) == ([3, 4, 5], ["volcano", "phalanx"])
    assert found["missing"] == []


def test_a_seed_among_several_gives_what_it_gives_alone() -> None:
    several = answer(*LOAD, "--seeds", "3..5", "--processes", "1")
    alone = answer(*LOAD, "--seed", "4")
    assert several["runs"][1]["metrics"] == alone["metrics"]


def test_several_processes_give_the_same_to_the_byte() -> None:
    one, two = (run(*LOAD, "--seeds", "1..4", "--processes", number) for number in ("1", "2"))
    assert (one.exit_code, two.exit_code) == (0, 0)
    assert one.stdout == two.stdout
    assert "means over 4 seeds" in one.stdout


def test_the_page_shows_the_comparison_of_all_seeds_and_the_charts_of_the_first(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(*LOAD, "--seeds", "1..3", "--compare", "volcano,phalanx", "--processes", "1", "--report", str(page)).exit_code == 0
    text = page.read_text()
    assert "means over 3 seeds" in text
    assert "volcano, seed 1" in text
    assert "volcano, seed 2" not in text


def test_a_configuration_file_is_compared_with_profiles(tmp_path: Path) -> None:
    config = tmp_path / "own.yaml"
    config.write_text("profile: phalanx\nactions: allocate\n")
    found = answer(*LOAD, "--seeds", "1..2", "--compare", f"phalanx,{config}", "--processes", "1")
    assert found["comparison"]["profiles"] == ["phalanx", str(config)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--seeds", "5..1"), "--seeds: '5..1': the last seed comes before the first; write 1..200"),
        (("--seeds", "1..2", "--seed", "3"), "--seed goes with one simulation, and --seeds asks for several"),
        (("--seeds", "1..2", "--speed", "1x"), "--speed goes with one simulation"),
        (("--on", "dask://127.0.0.1:1"), "--on: one simulation runs on this machine"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: tuple[str, ...], message: str) -> None:
    result = run(*LOAD, *options)
    assert (result.exit_code, message in result.output) == (2, True), result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--seeds", "1..2", "--on", "slurm://x"), "--on: 'slurm://x' is no cluster; write dask://HOST:PORT or ray://HOST:PORT"),
        (("--seeds", "1..2", "--on", "dask://127.0.0.1:1"), "--on: nobody answers at 'dask://127.0.0.1:1'"),
    ],
)
def test_a_cluster_that_is_none_is_refused(options: tuple[str, ...], message: str) -> None:
    result = run(*LOAD, *options)
    assert (result.exit_code, message in result.output) == (1, True), result.output


@pytest.mark.parametrize(
    ("work", "remedy"),
    [
        ("generated:jobs=12,nodes=2,seed=4", "leave out its own seed="),
        ("tiresias:tests/data/traces/tiresias", "jitter=0.1"),
    ],
)
def test_seeds_that_would_all_be_the_same_are_refused(work: str, remedy: str) -> None:
    result = run("--workload", work, "--seeds", "1..2")
    assert result.exit_code == 1
    assert "the work is the same for every seed" in result.output
    assert remedy in result.output


def test_a_trace_with_jitter_has_several_seeds() -> None:
    found = answer("--workload", "tiresias:tests/data/traces/tiresias,jitter=0.2", "--seeds", "1..2", "--processes", "1")
    first, second = (item["metrics"]["goodput"] for item in found["runs"])
    assert first != second


def test_manifests_in_which_nothing_is_random_vary_on_request() -> None:
    same = run("examples/deadlock", "--seeds", "1..2", "--processes", "1")
    assert "every seed gives the same: nothing in this load is random" in same.stdout
    found = answer("examples/deadlock", "--seeds", "1..2", "--jitter", "0.2", "--processes", "1")
    first, second = (item["metrics"]["goodput"] for item in found["runs"])
    assert first != second
    assert "--jitter: is for manifests" in run(*LOAD, "--seeds", "1..2", "--jitter", "0.2").output


class InterruptedJobs(list[SimulationJob]):
    """Jobs of which somebody presses Ctrl-C after the third."""

    def __iter__(self) -> Iterator[SimulationJob]:
        yield from self[:3]
        raise KeyboardInterrupt


def test_ctrl_c_keeps_the_seeds_that_are_complete_and_says_what_is_missing() -> None:
    given = SimulationInput(Cast(), Scenario(), None, 0, 3600.0, frozenset())
    text = "generated:jobs=5,nodes=2,days=0.1"
    load, policies = SimulationLoad(given, read_workload(text, 0), text), ("volcano", "phalanx")
    jobs = [SimulationJob(load, name, policy_of_profile(name), seed) for seed in (1, 2, 3) for name in policies]
    outcome = SeedsOutcome(policies, (1, 2, 3))
    assert not hold_all(InterruptedJobs(jobs), Workers(), outcome.done)
    assert outcome.complete == [1]
    assert outcome.compared().seeds == (1,)
    assert list(outcome.missing()) == [
        "interrupted: volcano is missing for 1 seed of 3: 3",
        "interrupted: phalanx is missing for 2 seeds of 3: 2..3",
    ]
