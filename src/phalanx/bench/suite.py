"""Run rows one after the other, each in a process of its own, and say how the cost grows from row to row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from phalanx.bench.measure import CycleRow
from phalanx.bench.row_process import run_apart
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
    arguments = [msgspec.json.encode(scenario).decode(), *([] if profile is None else [str(profile)])]
    return run_apart("phalanx.bench.measure", *arguments, name=scenario.name, row=CycleRow, most_seconds=MOST_SECONDS_PER_ROW)
