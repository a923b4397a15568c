"""One row of a trace: cells by column, each read with an error that names its place."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import ceil, isfinite

from phalanx.errors import TraceError

NOTHING = frozenset({"", "none", "nan", "nat", "null", "na", "n/a", "\\n"})
"""The contents of empty cells, in lower case."""
LARGEST_COUNT = 10**6
LARGEST_AMOUNT = 10**9
"""No machine has more thousandths of a CPU or MiB of memory."""

LARGEST_TIME = 10**10
"""In seconds, three hundred years."""


class TraceRow:
    """The cells of one line; a cell that cannot be read raises a TraceError like "jobs.csv, line 17: gpu_num: ..."."""

    __slots__ = ("_cells", "_file", "_line")

    def __init__(self, file: str, line: int, cells: Mapping[str, str]) -> None:
        self._file, self._line, self._cells = file, line, cells

    def has(self, column: str) -> bool:
        """Tell whether the cell holds anything."""
        return self._cells.get(column, "").strip().lower() not in NOTHING

    def text(self, column: str) -> str:
        """Return a cell that must hold something."""
        if not self.has(column):
            raise self.problem(column, "is empty; expected a value")
        return self._cells[column].strip()

    def count(self, column: str, *, least: int = 0) -> int:
        """Return a whole number of things."""
        number = self._number(column)
        if number != int(number) or not least <= number <= LARGEST_COUNT:
            raise self.problem(column, f"{self.text(column)!r} is not a whole number from {least} to {LARGEST_COUNT}")
        return int(number)

    def amount(self, column: str, *, parts: float = 1) -> int:
        """Return an amount in fractions of its unit, `parts` of which make one, rounded up; an empty cell is 0."""
        if not self.has(column):
            return 0
        amount = self._number(column) * parts
        if not 0 <= amount <= LARGEST_AMOUNT:
            raise self.problem(column, f"{self.text(column)!r} is not an amount from 0 to {LARGEST_AMOUNT / parts:g}")
        return ceil(round(amount, 6))

    def seconds(self, column: str) -> float:
        """Return a length of time."""
        seconds = self._number(column)
        if not 0 <= seconds <= LARGEST_TIME:
            raise self.problem(column, f"{self.text(column)!r} is not a number of seconds from 0 to {LARGEST_TIME}")
        return seconds

    def moment(self, column: str) -> float:
        """Return a point in time, written as a date or in seconds."""
        text = self.text(column)
        return moment(text, self.place(column)) if ":" in text else self.seconds(column)

    def between(self, start: str, end: str) -> float:
        """Return the seconds from one point in time to another."""
        seconds = self.moment(end) - self.moment(start)
        if seconds < 0:
            raise self.problem(end, f"{self.text(end)!r} is before {start}, {self.text(start)!r}")
        return seconds

    def columns(self) -> Iterable[str]:
        """Return the names of all cells."""
        return self._cells

    def place(self, column: str) -> str:
        """Say where a cell is."""
        return f"{self._file}, line {self._line}: {column}"

    def problem(self, column: str, wrong: str) -> TraceError:
        """Return the error about a cell."""
        return TraceError(f"{self.place(column)}: {wrong}")

    def _number(self, column: str) -> float:
        text = self.text(column)
        try:
            number = float(text)
        except ValueError:
            raise self.problem(column, f"{text!r} is not a number") from None
        if not isfinite(number):
            raise self.problem(column, f"{text!r} is not a number")
        return number


def moment(text: str, place: str) -> float:
    """Return a date and time in seconds; one without a zone is in UTC. `place` names the field in an error."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise TraceError(f"{place}: {text!r} is not a time; expected for example '2020-06-09 18:41:01'") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
