"""Recordings of plans behind scheduling gates: they are planned again as they were, and what differs is said."""

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_gates, policy_of_profile
from phalanx.recording.entries import Header, Planned
from phalanx.recording.log_writer import Bounds
from phalanx.recording.segments import SegmentReader, SegmentWriter, segment_paths
from phalanx.session.cycle import Profile
from tests.support import gated_gangs as gated
from tests.support import sim_worlds as worlds
from tests.support.recordings import all_entries, assert_same, recorded, replayed

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "scheduling-gates"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="phalanx")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of the example with gates."""
    folder: Path = tmp_path_factory.mktemp("gates")
    result = run("simulate", str(EXAMPLE), "--record", str(folder))
    assert result.exit_code == 0, result.output
    return folder


def planned(folder: Path) -> list[Planned]:
    return [entry for entry in all_entries(folder) if isinstance(entry, Planned)]


def test_plans_behind_gates_are_made_again_as_they_were(log: Path) -> None:
    assert any(entry.plans["gates"].get("plans") for entry in planned(log))
    result = run("replay", str(log))
    assert result.exit_code == 0, result.output
    assert "every decision is the same" in result.stdout


def _elsewhere(entry: Any) -> Any:  # Any: an entry
    if not isinstance(entry, Planned) or not entry.plans["gates"].get("plans"):
        return entry
    plans = {key: [*plan[:2], "elsewhere", *plan[3:]] for key, plan in entry.plans["gates"]["plans"].items()}
    return Planned(entry.now, {"gates": {**entry.plans["gates"], "plans": plans}})


def test_a_plan_that_differs_is_shown_and_can_be_traced(log: Path, tmp_path: Path) -> None:
    for path in segment_paths(log):
        with SegmentWriter(tmp_path, int(path.stem)) as segment:
            for entry in SegmentReader(path).entries():
                segment.add([_elsewhere(entry)])
    result = run("replay", str(tmp_path), "-v", "3")
    assert result.exit_code == 3
    assert re.search(r"plan \S+/\S+ behind gates +\w+, \d+, elsewhere, .*differs", result.stdout)


def test_every_checkpoint_is_a_beginning_for_plans_too(tmp_path: Path) -> None:
    policy = policy_of_profile("phalanx")
    gates = policy_of_gates(policy)
    world = gated.world(policy=policy, gates=Profile(gates, catalogue_of(gates.catalogue)), nodes=2, cpu=4)
    with recorded(world, tmp_path, bounds=Bounds()) as recorder:
        for number in range(12):
            worlds.submit(world, gated.gang(f"gang-{number}", 2, cpu=2, notes={"phalanx.dev/duration": "10m"}), at=100.0 * number)
        for moment in (150.0, 650.0, 1_850.0):
            worlds.run(world, moment)
            recorder.writer.wants_checkpoint = True
            recorder.turn()
        worlds.run(world, 10_000)
    headers = [entry for entry in all_entries(tmp_path) if isinstance(entry, Header)]
    assert len(headers) == 4
    assert len(planned(tmp_path)) > 5
    assert_same(replayed(tmp_path))
    for header in headers[1:]:
        assert_same(replayed(tmp_path, since=header.now))
