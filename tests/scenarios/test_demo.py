"""`make demo` tells its story to the end, and the README shows an excerpt of exactly what it prints."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doc_transcripts import first_missing, transcripts

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what the demo needs."""
    found = tmp_path_factory.mktemp("demo")
    shutil.copytree(ROOT / "examples", found / "examples")
    (found / "scripts").mkdir()
    shutil.copy2(ROOT / "scripts" / "demo", found / "scripts" / "demo")
    return found


def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "scripts/demo"], cwd=folder, env=environment, capture_output=True, text=True, timeout=100
    )


@pytest.fixture(scope="module")
def told(folder: Path) -> str:
    answer = demo(folder)
    assert (answer.returncode, answer.stderr) == (0, "")
    return answer.stdout


def test_the_readme_shows_what_the_demo_prints(told: str) -> None:
    (shown,) = [found.shown for found in transcripts((ROOT / "README.md").read_text()) if found.command == "make demo"]
    assert len(shown) >= 8
    assert first_missing(shown, told) is None


def test_the_demo_writes_a_page_and_says_where(folder: Path, told: str) -> None:
    page = folder / "build" / "demo.html"
    assert f"The page is in {page};" in told
    assert page.read_text().startswith("<!doctype html>")


def test_each_sentence_of_the_demo_stands_before_a_command(told: str) -> None:
    lines = [line for line in told.splitlines() if line]
    commands = [place for place, line in enumerate(lines) if line.startswith("$ phalanx ")]
    assert len(commands) == 6
    assert all(lines[place - 1].endswith(":") for place in commands)


def test_a_command_that_fails_ends_the_demo_and_is_named(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "examples" / "deadlock")
    answer = demo(tmp_path)
    assert answer.returncode == 1
    assert "instead of 0: phalanx simulate examples/deadlock --profile default-scheduler" in answer.stderr
    assert "examples/deadlock: no such file or folder" in answer.stderr
