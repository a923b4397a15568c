"""Storms hold, are the same each time, get shorter when they fail, and find planted bugs."""

import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.testing.storm.plan import Incident, Plan, plan_of
from phalanx.testing.storm.shrink import shrunk
from phalanx.testing.storm.storm import Outcome, play
from tests.storm.mutants import everything
from tests.storm.planted import breaks, play_planted
from tests.storm.seeds import Finding, findings, kept

KNOWN = {"gang minimum ignored": 1, "two leaders": 3, "sessions without the lease": 19, "watch event lost": 1}
"""Planted bugs, each with a seed that finds it; `make planted` looks for all of them."""


@pytest.mark.parametrize("seed", range(1, 13))
def test_nothing_is_broken_in_a_storm(seed: int) -> None:
    outcome = play(plan_of(seed))
    assert outcome.violations == (), "\n".join(outcome.lines)
    assert outcome.sessions


@pytest.mark.parametrize("name", kept("misjudged"))
def test_what_is_right_is_not_taken_for_wrong(name: str) -> None:
    assert play(kept("misjudged")[name]).violations == ()


def test_the_same_seed_gives_the_same_storm() -> None:
    plan = plan_of(5)
    assert plan == plan_of(5)
    assert play(plan).lines == play(plan).lines


@pytest.mark.parametrize("amount", [0.05, 0.3, 1.0])
def test_a_process_crashes_at_one_of_its_next_writes(amount: float) -> None:
    incident = Incident(at=1.0, name="crash at write", target=1, seconds=30.0, amount=amount)
    outcome = play(replace(plan_of(1), incidents=(incident,)))
    assert outcome.violations == ()
    assert sum("crashes at" in line for line in outcome.lines) == 1


@pytest.mark.parametrize("name", KNOWN)
def test_a_planted_bug_is_found(name: str) -> None:
    mutant = everything()[name]
    assert breaks(mutant, play_planted(mutant, plan_of(KNOWN[name])))


def test_a_storm_that_fails_is_shortened() -> None:
    mutant, whole = everything()["sessions without the lease"], plan_of(KNOWN["sessions without the lease"])

    def planted(plan: Plan) -> Outcome:
        return play_planted(mutant, plan)

    shortest, kept = shrunk(planted(whole), play=planted)
    assert breaks(mutant, shortest)
    assert len(kept) == len(shortest.plan.incidents) < len(whole.incidents)


def test_a_seed_that_fails_is_told_with_what_led_to_it_and_how_to_replay_it() -> None:
    seed, mutant = KNOWN["two leaders"], everything()["two leaders"]
    with mutant.planted():
        found = CliRunner().invoke(main, ["test", "storm", "--seeds", f"{seed}", "--processes", "1"])
    told = [line.strip() for line in found.stdout.splitlines()]
    assert found.exit_code == 1
    assert re.fullmatch(rf"seed {seed}: \d+ violations", told[0])
    assert [line for line in told if "VIOLATION" in line] == [told[-3]]
    assert re.fullmatch(rf"replay: phalanx test storm --seeds {seed} --incidents '[\d,]*' --trace", told[-2])
    assert re.fullmatch(r"storm: 1 seeds, \d+ violations", told[-1])


def test_seeds_that_hold_end_well() -> None:
    found = CliRunner().invoke(main, ["test", "storm", "--seeds", "1..2", "--processes", "1"])
    assert (found.exit_code, found.stdout) == (0, "storm: 2 seeds, 0 violations\n")


def test_there_are_bugs_enough_to_plant() -> None:
    assert len(everything()) >= 25
    assert all(mutant.mechanism for mutant in everything().values())
    assert {f"V{number}" for number in range(1, 9)} <= {name.partition(":")[0] for name in everything()}


@pytest.mark.parametrize("name", everything())
def test_what_is_to_be_planted_is_there(name: str) -> None:
    with everything()[name].planted():
        assert everything()[name].breaks


@pytest.mark.parametrize("finding", findings(), ids=lambda finding: finding.found)
def test_what_a_storm_found_is_mended(finding: Finding) -> None:
    outcome = play(finding.plan)
    assert outcome.violations == (), "\n".join(outcome.lines)
    mutant = everything()[finding.before]
    assert breaks(mutant, play_planted(mutant, finding.plan)), "the storm does not tell the code from what it was before"
