"""The example with an extender, against the real process."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.dev.processes import launch

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "extender"


@pytest.fixture
def address() -> Iterator[str]:
    """Start the example's process on a free port."""
    command = [sys.executable, str(FOLDER / "server.py"), "--port", "0"]
    with launch(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1]
        server.terminate()


def schedule(folder: Path, address: str, **more: object) -> Result:
    """Decide with the example's configuration, at another address."""
    document: dict[str, Any] = yaml.safe_load((FOLDER / "volcano-scheduler.conf").read_text())
    document["tiers"][1]["plugins"][1]["arguments"].update({"extender.urlPrefix": address, **more})
    (folder / "scheduler.conf").write_text(yaml.safe_dump(document))
    now = yaml.load((FOLDER / "expected.yaml").read_text(), Loader=yaml.BaseLoader)["now"]
    arguments = ["schedule", "-f", str(FOLDER), "--now", now, "--config", str(folder / "scheduler.conf"), "-o", "json"]
    return CliRunner().invoke(main, arguments, prog_name="phalanx")


def test_the_example_is_decided_as_expected(tmp_path: Path, address: str) -> None:
    expected = yaml.load((FOLDER / "expected.yaml").read_text(), Loader=yaml.BaseLoader)
    result = schedule(tmp_path, address)
    answer = msgspec.json.decode(result.stdout)
    assert answer["binds"] == expected["binds"]
    for key, gang in expected["gangs"].items():
        assert gang.get("why", "") in answer["groups"][key]["why"]
    assert result.exit_code == 3


def test_nothing_is_placed_while_the_process_does_not_answer(tmp_path: Path) -> None:
    answer = msgspec.json.decode(schedule(tmp_path, "http://127.0.0.1:9").stdout)
    assert answer["binds"] == {}
    assert "the extender did not answer" in answer["groups"]["studio/render"]["why"]


def test_sessions_go_on_without_an_extender_that_may_be_ignored(tmp_path: Path) -> None:
    answer = msgspec.json.decode(schedule(tmp_path, "http://127.0.0.1:9", **{"extender.ignorable": True}).stdout)
    assert len(answer["binds"]) == 4


def test_the_readme_shows_the_commands() -> None:
    text = (FOLDER / "README.md").read_text()
    assert "python3 examples/extender/server.py" in text
    assert "phalanx schedule -f examples/extender --config examples/extender/volcano-scheduler.conf" in text
