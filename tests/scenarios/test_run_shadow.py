"""A shadow as a process, beside a cluster in memory that is served over HTTP: what it asks for, records, says and shows."""

import json
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.dev.processes import launch
from tests.support import deadlocked_worlds as deadlocks
from tests.support import sim_worlds as worlds
from tests.support.http_api import Gatekeeper, served
from tests.support.store_contract import eventually

SOON_SECONDS = 120.0


@pytest.fixture
def gate() -> Gatekeeper:
    return Gatekeeper()


@pytest.fixture
def kubeconfig(gate: Gatekeeper, tmp_path: Path) -> Iterator[str]:
    """Serve a cluster with two gangs that have met halfway."""
    world = deadlocks.deadlocked()
    worlds.run(world, 60)
    path = tmp_path / "config.yaml"
    with served(world.store, gatekeeper=gate) as connection:
        contexts, clusters = {"context": {"cluster": "c"}}, {"cluster": {"server": connection.server}}
        config = {"current-context": "c", "contexts": [{"name": "c", **contexts}], "clusters": [{"name": "c", **clusters}]}
        path.write_text(yaml.safe_dump(config))
        yield str(path)


def test_a_shadow_asks_for_nothing_but_reading_and_reports_at_its_end(kubeconfig: str, gate: Gatekeeper, tmp_path: Path) -> None:
    log, folder = tmp_path / "shadow.log", tmp_path / "recording"
    words = (
        sys.executable, "-m", "phalanx", "run", "--shadow", "--kubeconfig", kubeconfig, "--record", str(folder),
        "--http", "127.0.0.1:0", "--shadow-every", "1s",
    )  # fmt: skip
    with log.open("wb") as file, launch(words, stdout=file, stderr=file) as process:
        assert eventually(lambda: "health and metrics at" in log.read_text(), seconds=SOON_SECONDS), log.read_text()
        place = re.search(r"health and metrics at (\S+)", log.read_text())
        assert place is not None
        assert eventually(lambda: "phalanx_shadow_gangs{" in _metrics(place[1]), seconds=SOON_SECONDS), log.read_text()
        metrics = _metrics(place[1])
        process.terminate()
        assert process.wait(timeout=SOON_SECONDS) == 0
    assert {method for method, _ in gate.asked} == {"GET"}
    assert not [path for _, path in gate.asked if "lease" in path]
    assert 'phalanx_shadow_mean_wait_seconds{world="ours"}' in metrics
    assert "report: 0 gangs earlier, 0 later and 0 the same in our world" in log.read_text()
    found = json.loads(CliRunner().invoke(main, ["shadow", "report", str(folder), "-o", "json"]).stdout)
    assert {gang["name"] for gang in found["gangs"]} == {"default/a", "default/b"}


def _metrics(place: str) -> str:
    with urllib.request.urlopen(f"{place}/metrics") as answer:
        text: str = answer.read().decode()
        return text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--shadow", "--controllers", "queue"], "--controllers: a shadow writes nothing to the cluster; leave it out"),
        (["--shadow", "--no-leader-elect"], "--leader-elect: a shadow writes nothing to the cluster; leave it out"),
        (["--shadow-every", "1m"], "--shadow-every: is for a shadow; add --shadow"),
        (["--shadow", "--profile", "kai", "--config", "x"], "--config and --profile exclude each other"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(options: list[str], sentence: str) -> None:
    result = CliRunner().invoke(main, ["run", *options])
    assert (result.exit_code, sentence in result.stderr) == (2, True), result.stderr


def test_a_wrong_profile_is_refused_before_anything_is_watched() -> None:
    result = CliRunner().invoke(main, ["run", "--shadow", "--recorded-profile", "nobody"])
    assert (result.exit_code, "unknown profile 'nobody'" in result.stderr) == (1, True), result.stderr
