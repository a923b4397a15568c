"""What a search has simulated, kept in a file, so that the same search goes on where it was.

Kept are the results and what was asked. The search asks the same questions in the same order, and finds the answers here.
"""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx.errors import ConfigError
from phalanx.sim.metrics import Result
from phalanx.sim.tuning.space import Values

FORM = "phalanx-tune/1"
BETWEEN_WRITES_SECONDS = 2.0

Question = Mapping[str, Any]  # plain data
"""All that decides what a search finds."""


def key_of(values: Values, seed: int) -> str:
    """Return what a simulation is called in the file."""
    return f"{seed} {json.dumps(values, sort_keys=True)}"


@dataclass(slots=True)
class TuneState:
    """The results that are known."""

    path: Path | None
    question: Question
    results: dict[str, Result] = field(default_factory=dict)
    _written: float = 0.0

    def load(self) -> int:
        """Take over what the file holds, if there is one; return how many results that are."""
        if self.path is None or not self.path.exists():
            return 0
        found = self._read(self.path)
        different = [name for name in self.question if found["question"].get(name) != json.loads(json.dumps(self.question[name]))]
        if different:
            raise ConfigError(f"--state: {self.path} is of another search, with another {', '.join(different)}; name another file")
        self.results.update({name: {**item, "fate": tuple(item["fate"])} for name, item in found["results"].items()})
        return len(self.results)

    @staticmethod
    def _read(path: Path) -> Any:  # JSON
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise ConfigError(f"--state: {path}: cannot be read: {problem}; name another file") from problem
        if not isinstance(found, dict) or found.get("form") != FORM:
            raise ConfigError(f"--state: {path} was not written by 'phalanx tune'; name another file")
        return found

    def keep(self, name: str, result: Result) -> None:
        """Keep a result; the file is written from time to time."""
        self.results[name] = result
        if time.monotonic() - self._written > BETWEEN_WRITES_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the file at once: whoever reads it gets the old one or the new one."""
        self._written = time.monotonic()
        if self.path is None:
            return
        new = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            new.write_text(json.dumps({"form": FORM, "question": self.question, "results": self.results}), encoding="utf-8")
            new.replace(self.path)
        except OSError as problem:
            raise ConfigError(f"--state: {self.path}: cannot be written: {problem.strerror}") from problem
