"""A small race on a real control plane: what `make race` prints and writes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.xdist_group("controlplane"), pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("--scale=0.01", "--rounds=1", "--only=raw,phalanx", "--rows=gangs-of-50,arrivals-50,overload", "--patience=60")


def test_a_small_race_measures_everybody_and_binds_all_gangs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.race", *FLAGS, f"--out={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "race.json").read_text())["rows"]
    assert [row["key"] for row in rows] == ["gangs-of-50", "arrivals-50", "overload"]
    for outcome in (outcome for row in rows for outcome in row["outcomes"]):
        assert outcome["problem"] == ""
        assert outcome["numbers"].keys() & {"seconds", "p99"}
        assert all(outcome["numbers"][name] > 0 for name in ("cpu", "memory", "requests"))
    raw = next(outcome for outcome in rows[0]["outcomes"] if outcome["contender"] == "raw")
    assert raw["numbers"]["requests"] == 100  # two gangs of 50, and nothing else
    assert [outcome["numbers"]["part_gangs"] for outcome in rows[2]["outcomes"]] == [0, 0]
    assert done.stdout in (tmp_path / "RESULTS.md").read_text()
    assert (tmp_path / "race.svg").read_text().startswith("<svg")
