"""The results of lanes, by mode: kept in a file as they come, so that the page of them needs no operator.

Only `pytest tests/operators --operators` writes them. A run of some lanes replaces those and leaves the rest.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("results.json")
PASSED, FAILED = "passed", "failed"
KNOWN_DEFECT = "known defect: "
NOT_APPLICABLE = "not applicable: "

Found = dict[str, dict[str, str]]
"""By mode and lane: passed, failed, a known defect, or why it does not apply."""


def read(file: Path = FILE) -> Found:
    """Return the results of all runs."""
    found: Found = json.loads(file.read_text()) if file.exists() else {}
    return found


def write(new: Mapping[str, Mapping[str, str]], file: Path = FILE) -> None:
    """Add results; those of the same mode and lane are replaced."""
    old = read(file)
    merged = {mode: {**old.get(mode, {}), **new.get(mode, {})} for mode in sorted({*old, *new})}
    file.write_text(json.dumps(merged, indent=2, sort_keys=True) + "\n")


class Results:
    """A plugin of pytest that keeps what became of lanes."""

    def __init__(self) -> None:
        """Begin with none."""
        self.found: Found = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result of a lane; the last try counts, and a lane whose surroundings fail has failed."""
        named = dict(report.user_properties)
        if "mode" in named and (report.when == "call" or not report.passed):
            self.found.setdefault(str(named["mode"]), {})[str(named["lane"])] = _result(report)

    def pytest_sessionfinish(self) -> None:
        """Write all of them."""
        if self.found:
            write(self.found)


def _result(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"{KNOWN_DEFECT}{report.wasxfail}"
    if not report.skipped:
        return PASSED if report.passed else FAILED
    assert isinstance(report.longrepr, tuple)
    return f"{NOT_APPLICABLE}{report.longrepr[2].removeprefix('Skipped: ')}"
