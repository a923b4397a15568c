"""Results of simulations in a folder: written while they run, read as they are, those that cannot be read are said."""

import json
from pathlib import Path

import pytest

from phalanx.errors import ConfigError
from phalanx.sim import served_results as module
from phalanx.sim.result import Run
from phalanx.sim.served_results import RUNNING, ResultFolder, ResultWriter
from tests.support import sim_results
from tests.support import sim_worlds as worlds


def write(folder: Path, name: str, found: object) -> None:
    (folder / f"{name}.json").write_text(json.dumps(found))


def test_a_simulation_that_runs_is_shown_as_such_until_it_is_over(tmp_path: Path) -> None:
    world, writer, shown = worlds.world(nodes=1, gpus=1), ResultWriter(tmp_path, "nightly", lambda: 0.0), ResultFolder(tmp_path)
    writer.pass_by(world, Run("phalanx", 1, ending=RUNNING))
    assert [(row.title, row.is_over) for row in shown.rows()] == [("nightly: phalanx, seed 1", False)]
    (tmp_path / "nightly.json").unlink()
    writer.write(sim_results.crowd(3))
    assert [(row.title, row.is_over) for row in shown.rows()] == [("nightly: phalanx, seed 7", True)]


def test_a_result_is_not_written_more_often_than_it_may_cost(tmp_path: Path) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.25  # what it takes to write
        return now[0]

    writer, world = ResultWriter(tmp_path, "nightly", clock), worlds.world(nodes=1, gpus=1)
    writer.pass_by(world, Run("phalanx", 1, ending=RUNNING))
    (tmp_path / "nightly.json").unlink()
    writer.pass_by(world, Run("phalanx", 1, ending=RUNNING))
    assert list(tmp_path.iterdir()) == []
    now[0] += 10.0
    writer.pass_by(world, Run("phalanx", 1, ending=RUNNING))
    assert [path.name for path in tmp_path.iterdir()] == ["nightly.json"]


def test_a_name_leads_to_no_other_folder(tmp_path: Path) -> None:
    ResultWriter(tmp_path, "../../etc/passwd", lambda: 0.0).write(sim_results.crowd(1))
    assert [path.name for path in tmp_path.iterdir()] == ["-..-etc-passwd.json"]


def test_one_result_has_the_charts_of_the_report(tmp_path: Path) -> None:
    write(tmp_path, "one", sim_results.deadlock())
    found = ResultFolder(tmp_path).packed("one")
    assert found is not None
    assert found["headline"]
    assert ResultFolder(tmp_path).packed("two") is None


def test_several_results_of_one_file_are_rows_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, "both", {"results": [sim_results.crowd(3), sim_results.crowd(3) | {"profile": "kai"}]})
    shown = ResultFolder(tmp_path)
    assert [row.name for row in shown.rows()] == ["both-1", "both-2"]
    compared = shown.compared(["both-1", "both-2"])
    assert compared["columns"] == ["both-1", "both-2"]
    assert all(len(row["cells"]) == 2 for row in compared["rows"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "bad.json is no result of a simulation: "), ("{}", "profile is missing"),
        ('{"results": []}', "it holds no results"), ('{"results": [{"profile": "x"}]}', "seed is missing"),
        ("[" * 100_000, "no result"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_said_beside_those_that_are(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    write(tmp_path, "good", sim_results.crowd(3))
    bad, good = ResultFolder(tmp_path).rows()
    assert problem in bad.problem
    assert (good.name, good.problem) == ("good", "")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    write(tmp_path, "large", sim_results.crowd(3))
    assert "larger than" in ResultFolder(tmp_path).rows()[0].problem


def test_a_folder_that_is_not_there_says_what_makes_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'phalanx simulate --results"):
        ResultFolder(tmp_path / "nothing")


def test_a_file_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    write(tmp_path, "one", sim_results.crowd(3))
    shown = ResultFolder(tmp_path)
    first = shown._files()[0][1]
    assert shown._files()[0][1] is first
