"""Run rows one after the other, each in a process of its own, and say how the cost grows from row to row."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from phalanx.bench.measure import CycleRow
from phalanx.bench.scenarios import BenchScenario
from phalanx.errors import PhalanxError

MOST_SECONDS_PER_ROW = 600

Progress = Callable[[int, BenchScenario], None]


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A row that gave no figures, and why."""

    scenario: str
    nodes: int
    pods: int
    gang: int
    error: str


def run_suite(scenarios: Sequence[BenchScenario], progress: Progress) -> list[CycleRow | FailedRow]:
    """Run all rows; one that fails does not stop the others. `progress` is called before each row."""
    results: list[CycleRow | FailedRow] = []
    latest: dict[object, CycleRow] = {}
    for number, scenario in enumerate(scenarios):
        progress(number, scenario)
        try:
            row = run_row(scenario)
        except PhalanxError as problem:
            results.append(FailedRow(scenario.title, scenario.nodes, scenario.pods, scenario.gang, str(problem)))
            continue
        results.append(_with_growth(row, latest.get(scenario.family)))
        latest[scenario.family] = row
    return results


def _with_growth(row: CycleRow, before: CycleRow | None) -> CycleRow:
    return row if before is None else replace(row, growth=before.pods_per_second / row.pods_per_second)


def run_row(scenario: BenchScenario, *, profile: Path | None = None) -> CycleRow:
    """Run one row in a new process; `profile` names the file for a cProfile dump, which makes the row slower."""
    command = [sys.executable, "-m", "phalanx.bench.measure", msgspec.json.encode(scenario).decode()]
    if profile is not None:
        command.append(str(profile))
    try:
        finished = subprocess.run(command, capture_output=True, check=False, timeout=MOST_SECONDS_PER_ROW)
    except subprocess.TimeoutExpired:
        raise PhalanxError(f"{scenario.name}: took longer than {MOST_SECONDS_PER_ROW} s") from None
    if finished.returncode != 0:
        raise PhalanxError(f"{scenario.name}: {_last_line(finished.stderr) or f'ended with {finished.returncode}'}")
    return msgspec.json.decode(finished.stdout, type=CycleRow)


def _last_line(output: bytes) -> str:
    return (output.decode(errors="replace").strip().splitlines() or [""])[-1]
