"""Every folder under examples/ with an expected.yaml comes out as it says, through the same command that its reader types."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(file.parent for file in (ROOT / "examples").glob("*/expected.yaml") if not (file.parent / "server.py").exists())
"""Examples with a process of their own have a test of their own."""
CONFIG = "volcano-scheduler.conf"
WAITS = ("Waits", "Pipelined", "Evicted")


def expectation(folder: Path) -> dict[str, Any]:
    found = yaml.load((folder / "expected.yaml").read_text(), Loader=yaml.BaseLoader)
    assert isinstance(found, dict)
    return found


def choice(folder: Path) -> list[str]:
    """Return how the example says to decide: by its own configuration, by a profile, or by default."""
    if (folder / CONFIG).exists():
        return ["--config", str(folder / CONFIG)]
    profile = expectation(folder).get("profile")
    return ["--profile", profile] if profile else []


def schedule(folder: Path, *more: str) -> Result:
    now = expectation(folder)["now"]
    return CliRunner().invoke(main, ["schedule", "-f", str(folder), "--now", now, *choice(folder), *more], prog_name="phalanx")


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


def test_there_are_examples() -> None:
    assert len(FOLDERS) >= 9


def test_every_example_says_what_it_shows_and_what_comes_out(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    assert text.startswith("# ")
    profile = expectation(folder).get("profile")
    assert f"phalanx schedule -f examples/{folder.name}{f' --profile {profile}' if profile else ''}" in text


def test_an_example_is_decided_as_expected(folder: Path) -> None:
    expected = expectation(folder)
    result = schedule(folder, "-o", "json")
    assert result.stderr == ""
    answer = msgspec.json.decode(result.stdout)
    assert answer["binds"] == expected["binds"]
    assert {pod: eviction["for"] for pod, eviction in answer["evictions"].items()} == expected.get("evictions", {})
    assert set(answer["groups"]) == set(expected["gangs"])
    waits = [gang for gang in expected["gangs"].values() if gang["status"] in WAITS]
    assert result.exit_code == (3 if waits else 0)


def test_an_example_gives_the_expected_reasons(folder: Path) -> None:
    groups = msgspec.json.decode(schedule(folder, "-o", "json").stdout)["groups"]
    for key, expected in expectation(folder)["gangs"].items():
        why = groups[key]["why"]
        assert expected["why"] in why if "why" in expected else why == ""
        messages = [condition["message"] for condition in groups[key]["conditions"]]
        assert "condition" not in expected or any(expected["condition"] in message for message in messages)


def test_the_table_of_an_example_shows_where_each_gang_stands(folder: Path) -> None:
    table = schedule(folder).stdout.partition("\n\n")[0].splitlines()[1:]
    words_by_gang = {line.split()[0]: line.split()[2] for line in table}
    assert words_by_gang == {key: gang["status"] for key, gang in expectation(folder)["gangs"].items()}


def test_an_example_is_decided_the_same_as_one_json_list_on_stdin(folder: Path) -> None:
    files = [file for file in sorted(folder.glob("*.yaml")) if file.name != "expected.yaml"]
    objects = [item for file in files for item in yaml.load_all(file.read_text(), Loader=yaml.SafeLoader)]
    listed = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})
    arguments = ["schedule", "-f", "-", "-o", "json", "--now", expectation(folder)["now"]]
    result = CliRunner().invoke(main, [*arguments, *choice(folder)], input=listed)
    assert result.stdout == schedule(folder, "-o", "json").stdout
