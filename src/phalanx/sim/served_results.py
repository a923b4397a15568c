"""Results of simulations in a folder, one file each: written while a simulation runs, read by the page.

A file is replaced as a whole, so whoever reads it has the old result or the new one. Any number of simulations may write to a
folder, each to files of its own; so may `phalanx simulate -o json > folder/name.json`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from phalanx.errors import ConfigError
from phalanx.sim.comparison import compared
from phalanx.sim.report_data import pack
from phalanx.sim.report_text import Result, headline
from phalanx.sim.result import Run, result
from phalanx.sim.world import World
from phalanx.ui.simulations import SimulationRow
from phalanx.ui.views import Json

SUFFIX = ".json"
RUNNING = "running"
"""Why a simulation has not ended, where others have a reason why it has."""
LEAST_SECONDS, FACTOR = 1.0, 20.0
"""Between two results of one simulation: at least, and as a multiple of what the last one took."""
MOST_BYTES = 256 << 20
NEEDED = ("profile", "seed", "gangs", "metrics", "nodes", "queues", "seconds", "resource", "evictions", "deadlocks")


class ResultWriter:
    """Writes what a simulation has come to, now and then."""

    def __init__(self, folder: Path, name: str, clock: Callable[[], float]) -> None:
        """Make the folder if it is not there; `clock` counts seconds."""
        self._path, self._clock, self._next = folder / f"{_file_name(name)}{SUFFIX}", clock, 0.0
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ConfigError(f"--results: {folder}: cannot be made: {problem.strerror}") from problem

    def pass_by(self, world: World, run: Run) -> None:
        """Write how far a simulation has got, if it is time for that."""
        begun = self._clock()
        if begun >= self._next:
            self.write(result(world, run))
            took = self._clock() - begun
            self._next = begun + max(LEAST_SECONDS, FACTOR * took)

    def write(self, found: Mapping[str, Any]) -> None:
        """Write a result."""
        new = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            new.write_bytes(msgspec.json.encode(found))
            new.replace(self._path)
        except OSError as problem:
            new.unlink(missing_ok=True)
            raise ConfigError(f"--results: {self._path}: cannot be written: {problem.strerror}") from problem


def _file_name(name: str) -> str:
    """Return a name without what would lead to another folder."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).lstrip(".") or "result"


@dataclass(frozen=True, slots=True)
class _Read:
    changed: float
    results: Sequence[Result] = ()
    problem: str = ""


class ResultFolder:
    """Reads the results of a folder; a file is read again when it has changed."""

    def __init__(self, folder: Path) -> None:
        """Refuse what is no folder."""
        if not folder.is_dir():
            raise ConfigError(f"--results: there is no folder {str(folder)!r}; 'phalanx simulate --results {folder}' makes it")
        self._folder, self._known = folder, dict[Path, _Read]()

    def rows(self) -> list[SimulationRow]:
        """Return what there is, by name."""
        return [row for path, found in self._files() for row in _rows(path, found)]

    def packed(self, name: str) -> Json | None:
        """Return one result as the charts need it."""
        found = self._results().get(name)
        return None if found is None else {**pack(found), "headline": headline(found)}

    def compared(self, names: Sequence[str]) -> Json:
        """Return the figures of some results beside each other."""
        known = {name: found for name, found in self._results().items() if name in names}
        table = compared({name: [found] for name, found in known.items()})
        rows = [
            {
                "name": line.metric.label, "cells": [value.text for value in line.values],
                "best": [place for place, value in enumerate(line.values) if value.is_best],
            }
            for line in table.lines
        ]  # fmt: skip
        return {"columns": list(table.profiles), "rows": rows, "notes": [note.replace("*", "★", 1) for note in table.notes]}

    def _results(self) -> dict[str, Result]:
        return {
            row.name: found for path, read in self._files() for row, found in zip(_rows(path, read), read.results, strict=False)
        }

    def _files(self) -> list[tuple[Path, _Read]]:
        paths = sorted(path for path in self._folder.iterdir() if path.suffix == SUFFIX and not path.name.startswith("."))
        self._known = {path: self._read(path) for path in paths}
        return list(self._known.items())

    def _read(self, path: Path) -> _Read:
        try:
            stat = path.stat()
            known = self._known.get(path)
            if known is not None and known.changed == stat.st_mtime:
                return known
            if stat.st_size > MOST_BYTES:
                return _Read(stat.st_mtime, problem=f"{path.name} is larger than {MOST_BYTES >> 20} MiB")
            return _Read(stat.st_mtime, _results_in(msgspec.json.decode(path.read_bytes())))
        except OSError as problem:
            return _Read(0.0, problem=f"{path.name} cannot be read: {problem.strerror}")
        except (msgspec.DecodeError, ValueError, RecursionError) as problem:
            return _Read(0.0, problem=f"{path.name} is no result of a simulation: {problem}")


def _results_in(found: Any) -> list[Result]:  # Any: whatever the file holds
    results = found["results"] if isinstance(found, dict) and "results" in found else [found]
    if not isinstance(results, list) or not results:
        raise ValueError("it holds no results")
    for item in results:
        missing = [name for name in NEEDED if not isinstance(item, dict) or name not in item]
        if missing:
            raise ValueError(f"{missing[0]} is missing")
    return results


def _rows(path: Path, read: _Read) -> list[SimulationRow]:
    """Return the rows of a file, which may hold several results."""
    stem = path.name.removesuffix(SUFFIX)
    if read.problem:
        return [SimulationRow(stem, stem, read.changed, is_over=True, problem=read.problem)]
    several = len(read.results) > 1
    return [
        _row(f"{stem}-{number}" if several else stem, found, read.changed) for number, found in enumerate(read.results, start=1)
    ]


def _row(name: str, found: Result, changed: float) -> SimulationRow:
    seed = "" if found["seed"] is None else f", seed {found['seed']}"
    return SimulationRow(name, f"{name}: {found['profile']}{seed}", changed, is_over=found.get("ending") != RUNNING)
