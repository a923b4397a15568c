"""`phalanx simulate` with an autoscaler, as people type it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from tests.support import sim_worlds as worlds

HEAD = "apiVersion: phalanx.dev/v1alpha1\nkind: Scenario\n"
POOL = """
autoscaler:
  pools:
  - name: gpu
    max: 8
    delay: 1m..3m
    failureRate: 0.2
    template: {allocatable: {cpu: 64, memory: 512Gi, nvidia.com/gpu: 8}}
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments], prog_name="phalanx")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    gang = worlds.gang("train", tasks=6, gpus=8, duration="30m")
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(gang))
    (tmp_path / "scenario.yaml").write_text(HEAD + POOL)
    return tmp_path


def answer(*arguments: str) -> Any:
    result = run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_same_seed_gives_the_same_output_and_another_one_another(folder: Path) -> None:
    first, again, other = (run(str(folder), "--seed", seed, "-o", "json").stdout for seed in ("3", "3", "4"))
    assert first == again
    assert first != other


def test_nodes_come_and_go_in_the_timeline_and_in_the_data(folder: Path) -> None:
    text, data = run(str(folder), "--seed", "1").stdout, answer(str(folder), "--seed", "1")
    assert "10s     pool gpu is asked for 6 nodes for 6 of 6 unschedulable pods\n" in text
    for metric in ("scale-ups", "nodes requested", "nodes delivered", "nodes failed", "nodes given back", "node hours paid"):
        assert f"\n{metric} " in text
    figures = data["autoscaler"]["pools"]["gpu"]
    assert data["metrics"]["autoscaler"] == figures
    assert figures["nodesRequested"] == figures["nodesDelivered"] + figures["nodesFailed"]
    assert figures["nodesGivenBack"] == figures["nodesDelivered"]
    assert data["gangs"][0]["finished"] is not None


def test_profiles_and_seeds_are_compared(folder: Path) -> None:
    result = run(str(folder), "--compare", "default-scheduler,phalanx", "--seeds", "1..3", "--processes", "1")
    assert result.exit_code == 0, result.output
    assert "\nnode hours paid " in result.stdout


def test_the_report_shows_pools_and_what_happened_to_them(folder: Path) -> None:
    assert run(str(folder), "--report", str(folder / "page.html")).exit_code == 0
    page = (folder / "page.html").read_text()
    assert "<h3>Autoscaler</h3>" in page
    assert "<td>pool gpu is asked for 6 nodes for 6 of 6 unschedulable pods</td>" in page
    assert "node hours paid" in page.lower()


def test_without_an_autoscaler_nothing_is_said_of_one(folder: Path) -> None:
    (folder / "scenario.yaml").write_text(HEAD)
    result = run(str(folder), "--report", str(folder / "page.html"))
    assert "scale-ups" not in result.stdout
    assert "Autoscaler" not in (folder / "page.html").read_text()
    assert "autoscaler" not in answer(str(folder))


def test_what_an_autoscaler_is_expected_to_do_is_checked(folder: Path) -> None:
    expected = "expect:\n- {scaleUps: 7, nodesDelivered: 0, nodesGivenBack: 0}\n"
    (folder / "scenario.yaml").write_text(HEAD + POOL + expected)
    result = run(str(folder))
    assert result.exit_code == 3
    for name in ("scaleUps: expected 7, got", "nodesDelivered: expected 0, got", "nodesGivenBack: expected 0, got"):
        assert f"expect[0]: {name}" in result.stderr


def test_a_wrong_pool_is_refused_with_its_line(folder: Path) -> None:
    (folder / "scenario.yaml").write_text(HEAD + POOL.replace("max: 8", "maxSize: 8"))
    result = run(str(folder))
    assert result.exit_code == 1
    assert "scenario.yaml, line 7: autoscaler.pools[0].maxSize: unknown; did you mean 'max'?" in result.stderr


def test_generated_work_runs_on_pools_too(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(HEAD + POOL)
    arguments = ("--workload", "generated:jobs=20,nodes=2,days=0.2,load=2", "--scenario", str(tmp_path / "scenario.yaml"))
    data = answer(*arguments, "--until", "8h")
    assert data["metrics"]["autoscaler"]["nodesDelivered"] > 0
    assert data == answer(*arguments, "--until", "8h")
