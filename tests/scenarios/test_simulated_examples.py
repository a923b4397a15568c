"""The commands in the READMEs of examples/ are run as their reader types them: they end well, and show what is shown there.

A scenario says what must come out, and `phalanx simulate` ends with 3 when it does not; each of these claims can fail.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from tests.support.doc_transcripts import first_missing, transcripts

ROOT = Path(__file__).resolve().parents[2]
READMES = sorted(file for file in (ROOT / "examples").glob("*/README.md") if not (file.parent / "server.py").exists())
"""Examples with a process of their own have a test of their own."""
SCENARIOS = sorted((ROOT / "examples").rglob("scenario.yaml"))
STORIES = (
    "autoscaler", "contention", "coscheduling", "coscheduling-optimistic", "deadlock", "decode-and-prefill", "koordinator",
    "koordinator-gang-group", "partial-failure", "preempt", "preempt-inside-a-job", "reclaim",
    "scheduling-timeout", "shard", "stale-gang", "tensorflow-1-ps-7-workers", "topology-hard", "topology-soft",
)  # fmt: skip
COUNTS = ("deadlocks", "evictions", "scaleUps", "nodesDelivered", "nodesGivenBack")
DONE, NOT_ALL_PLACED, NOT_AS_EXPECTED = 0, 3, 3


@dataclass(frozen=True)
class Command:
    """What follows `phalanx` in a README, and the lines that are shown below it."""

    words: list[str]
    shown: list[str] = field(default_factory=list)

    @property
    def is_simulation(self) -> bool:
        return self.words[0] == "simulate"

    def run(self, *more: str) -> Result:
        return CliRunner().invoke(main, [*self.words, *more], prog_name="phalanx")


def commands_of(readme: Path) -> list[Command]:
    return [Command(found.command.split()[1:], found.shown) for found in transcripts(readme.read_text())]


def named(path: Path) -> str:
    return str(path.parent.relative_to(ROOT / "examples"))


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_what_gang_scheduling_is_about_is_told_by_examples() -> None:
    assert set(STORIES) <= {named(file).split("/")[0] for file in SCENARIOS}


@pytest.mark.parametrize("readme", READMES, ids=named)
def test_the_commands_of_a_readme_show_what_it_says(readme: Path) -> None:
    commands = commands_of(readme)
    assert commands
    for command in commands:
        result = command.run()
        allowed = (DONE,) if command.is_simulation else (DONE, NOT_ALL_PLACED)
        assert result.exit_code in allowed, f"{command.words}\n{result.output}"
        assert first_missing(command.shown, result.stdout) is None, f"{command.words}\n{result.stdout}"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_the_readme_simulates_its_scenario_and_shows_what_comes_out(scenario: Path) -> None:
    assert any(command.shown for command in simulations_of(scenario))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_it_comes_out_as_expected_under_everybody_whom_a_scenario_names(scenario: Path) -> None:
    paths = [word for word in simulations_of(scenario)[0].words[1:] if Path(word).is_dir()]
    for name in deciders(yaml.safe_load(scenario.read_text())):
        option = "--config" if Path(name).is_file() else "--profile"
        result = Command(["simulate", *paths, option, name]).run()
        surprises = [line for line in result.stderr.splitlines() if "has no effect: no plugin of the configuration" not in line]
        assert (result.exit_code, surprises) == (DONE, []), name


def deciders(scenario: dict[str, Any]) -> list[str]:
    """Return the profiles and configurations for which something is expected."""
    return list(dict.fromkeys(name for entry in scenario["expect"] for name in entry.get("profiles", ())))


def simulations_of(scenario: Path) -> list[Command]:
    folder = scenario.parent.relative_to(ROOT)
    readme = ROOT.joinpath(*folder.parts[:2], "README.md")
    return [command for command in commands_of(readme) if command.is_simulation and str(folder) in command.words]


# --- what is expected can fail -------------------------------------------------------------------------------------------


def other(value: Any) -> Any:
    """Return another value of the same kind than what a scenario expects."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else "0s..0s" if ".." in value else "nobody says this"


def turned(claims: dict[str, Any]) -> dict[str, Any]:
    """Return what a scenario expects with every claim turned into a wrong one; for whom they hold stays as it is."""
    return {
        key: value if key == "profiles" else {name: turned(of) for name, of in value.items()} if key == "gangs" else other(value)
        for key, value in claims.items()
    }


def places(expectations: list[dict[str, Any]]) -> Iterator[str]:
    """Yield how a complaint begins, for each claim."""
    for number, entry in enumerate(expectations):
        yield from (f"expect[{number}]: {key}: " for key in COUNTS if key in entry)
        yield from (f"expect[{number}].gangs.{name}: {key}: " for name, of in entry.get("gangs", {}).items() for key in of)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_every_claim_of_a_scenario_fails_when_it_is_wrong(scenario: Path, tmp_path: Path) -> None:
    found, file = yaml.safe_load(scenario.read_text()), tmp_path / "scenario.yaml"
    assert list(places(found["expect"]))
    file.write_text(yaml.safe_dump({**found, "expect": [turned(entry) for entry in found["expect"]]}))
    results = [command.run("--scenario", str(file)) for command in simulations_of(scenario)]
    assert all(result.exit_code == NOT_AS_EXPECTED for result in results)
    complaints = "".join(result.stderr for result in results)
    assert [place for place in places(found["expect"]) if place not in complaints] == []
