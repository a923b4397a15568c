"""Results of tests that take too long for `make test`, kept in a file as they come, so that the page made of them needs no run.

Two properties of a test name its place in the table of its page. A run of some tests replaces their results and leaves the rest.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

PASSED, FAILED = "passed", "failed"
KNOWN_DEFECT = "known defect: "
NOT_APPLICABLE = "not applicable: "

Found = dict[str, dict[str, str]]
"""By row and column: passed, failed, a known defect, or why it does not apply."""


def read(file: Path) -> Found:
    """Return the results of all runs."""
    found: Found = json.loads(file.read_text()) if file.exists() else {}
    return found


def write(new: Mapping[str, Mapping[str, str]], file: Path) -> None:
    """Add results; those of the same place are replaced."""
    old = read(file)
    merged = {row: {**old.get(row, {}), **new.get(row, {})} for row in sorted({*old, *new})}
    file.write_text(json.dumps(merged, indent=2, sort_keys=True) + "\n")


class Results:
    """A plugin of pytest that keeps what became of tests with a place."""

    def __init__(self, file: Path, row: str, column: str) -> None:
        """Begin with none; the names are those of the properties."""
        self.found: Found = {}
        self._file, self._row, self._column = file, row, column

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a result; the last try counts, and a test whose surroundings fail has failed."""
        named = dict(report.user_properties)
        if self._row in named and (report.when == "call" or not report.passed):
            self.found.setdefault(str(named[self._row]), {})[str(named[self._column])] = _result(report)

    def pytest_sessionfinish(self) -> None:
        """Write all of them."""
        if self.found:
            write(self.found, self._file)


def _result(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"{KNOWN_DEFECT}{report.wasxfail}"
    if not report.skipped:
        return PASSED if report.passed else FAILED
    assert isinstance(report.longrepr, tuple)
    return f"{NOT_APPLICABLE}{report.longrepr[2].removeprefix('Skipped: ')}"
