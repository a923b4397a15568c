"""What went wrong in a storm: each with what, when and which objects, printed as soon as it is known."""

import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was not kept."""

    kind: str
    text: str
    seconds: float
    """When, since the start."""

    def __str__(self) -> str:
        """Say it in one line."""
        return f"violation at {self.seconds:.1f} s: {self.kind}: {self.text}"


@dataclass(slots=True)
class Findings:
    """Gathers violations and tells how far the storm is, from several threads."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Figures that are no violations."""
    _begun: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def seconds(self) -> float:
        """How long it has gone on."""
        return time.monotonic() - self._begun

    def violate(self, kind: str, text: str) -> None:
        """Note a violation, once."""
        with self._lock:
            if all((item.kind, item.text) != (kind, text) for item in self.violations):
                self.violations.append(Violation(kind, text, self.seconds))
                print(self.violations[-1], file=self.stream, flush=True)

    def count(self, name: str, number: int = 1) -> None:
        """Count something."""
        with self._lock:
            self.counts[name] += number

    def say(self, text: str) -> None:
        """Tell what happens."""
        print(f"{self.seconds:6.1f} s  {text}", file=self.stream, flush=True)
