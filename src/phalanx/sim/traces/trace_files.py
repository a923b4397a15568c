"""The files of a trace: what a file holds is found by its columns, not by its name."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO, TypeAlias

from phalanx.errors import TraceError
from phalanx.model.bounds import TRACE_BYTES
from phalanx.sim.traces.rows import TraceRow

Paths: TypeAlias = Iterable[str | Path]
HEADER = ".header"
"""Ends the name of a file that holds only the columns of another."""
LONGEST_LINE = 1 << 20
BEGINNING = 4096
"""So many characters suffice to find out what a file holds."""


class FileKind(Protocol):
    """What a file may hold."""

    @property
    def title(self) -> str:
        """Say it: "a CSV file with the columns ..."."""

    def is_in(self, path: Path) -> bool:
        """Tell whether this file holds it."""


@dataclass(frozen=True, slots=True)
class CsvTable:
    """Comma-separated values with at least these columns."""

    columns: tuple[str, ...]
    bare_name: str = ""
    """A file whose name begins like this may come without a line of columns; then it has exactly `columns`, in this order."""

    @property
    def title(self) -> str:
        """Say what it is."""
        return f"a CSV file with the columns {','.join(self.columns)}"

    def is_in(self, path: Path) -> bool:
        """Tell whether the first line names the columns, or need not."""
        first = next(csv.reader(beginning(path).splitlines()[:1]), [])
        is_bare = self.bare_name and path.name.startswith(self.bare_name) and len(first) == len(self.columns)
        return path.suffix != HEADER and (self._is_named(_stripped(first)) or bool(is_bare))

    def rows(self, path: Path) -> Iterator[TraceRow]:
        """Yield the rows; empty lines are none."""
        with _open(path) as file:
            yield from self._rows(path.name, file)

    def _rows(self, name: str, file: TextIO) -> Iterator[TraceRow]:
        lines = csv.reader(_bounded_lines(name, file))
        columns: Sequence[str] = self.columns
        try:
            for number, cells in enumerate(filter(None, lines)):
                if number == 0 and self._is_named(_stripped(cells)):
                    columns = _stripped(cells)
                else:
                    yield TraceRow(name, lines.line_num, dict(zip(columns, cells, strict=False)))
        except csv.Error as problem:
            raise TraceError(f"{name}, line {lines.line_num}: {problem}; expected comma-separated values") from problem

    def _is_named(self, cells: Iterable[str]) -> bool:
        return set(self.columns) <= set(cells)


class TraceFiles:
    """The files that a trace is read from; a folder stands for the files in it."""

    def __init__(self, paths: Paths) -> None:
        self._paths = [file for path in paths for file in _files(Path(path))]

    def __str__(self) -> str:
        return _several(self._paths) or "no files"

    def holds(self, kind: FileKind) -> bool:
        """Tell whether some file is of this kind."""
        return any(kind.is_in(path) for path in self._paths)

    def find(self, kind: FileKind) -> Path | None:
        """Return the file of this kind, if there is one; two are an error, since it is unclear which is meant."""
        found = [path for path in self._paths if kind.is_in(path)]
        if len(found) > 1:
            raise TraceError(f"{found[0].parent}: {_several(found)} are each {kind.title}; name one of them")
        return found[0] if found else None

    def need(self, kind: FileKind) -> Path:
        """Return the file of this kind."""
        found = self.find(kind)
        if found is None:
            raise TraceError(f"{self}: no jobs in there; expected {kind.title}")
        return found

    def rows(self, table: CsvTable, *, is_needed: bool = False) -> Iterator[TraceRow]:
        """Yield the rows of the file with this table; none where there is no such file and it is not needed."""
        path = self.need(table) if is_needed else self.find(table)
        return iter(()) if path is None else table.rows(path)


def beginning(path: Path) -> str:
    """Return the first characters of a file."""
    with _open(path) as file:
        return file.read(BEGINNING)


def _bounded_lines(name: str, file: TextIO) -> Iterator[str]:
    """Yield the lines of a file until there is more of it than allowed; a device may have no end, and not even lines."""
    left, most = TRACE_BYTES.most, LONGEST_LINE
    while line := file.readline(most + 1):
        left -= len(line)
        if len(line) > most:
            raise TraceError(f"{name}: a line is longer than {most} characters; expected comma-separated values")
        if left < 0:
            raise TraceError(f"{name}: too large: {TRACE_BYTES.text}")
        yield line


def _open(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8-sig", errors="replace", newline="")
    except OSError as problem:
        raise TraceError(f"{path}: {problem.strerror}; name the files of a trace, or the folder that holds them") from problem


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]


def _stripped(cells: Iterable[str]) -> list[str]:
    return [cell.strip() for cell in cells]


def _several(paths: Sequence[Path]) -> str:
    shown = ", ".join(path.name for path in paths[:3])
    return f"{shown} and {len(paths) - 3} more" if len(paths) > 3 else shown
