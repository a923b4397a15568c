"""How much of everything is taken at most: one list of numbers, each with the environment variable that changes it.

What is read grows with what somebody else wrote: a file, a body, a chain of queues. Past a bound it is refused with a message that
names the bound and its variable, long before memory or the stack of the process is used up. The numbers are several times what
the largest clusters need.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from phalanx.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Bound:
    """One number that must not be exceeded."""

    variable: str
    """The environment variable that sets another number."""
    usual: int
    what: str
    """What is counted, as in "at most 200 levels of nesting"."""
    reason: str
    """What it protects, for the documentation."""

    @property
    def most(self) -> int:
        """The number in force."""
        text = os.environ.get(self.variable, "")
        if not text:
            return self.usual
        if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) < 1 << 63:
            raise ConfigError(f"{self.variable}: {text[:40]!r} is not a whole number from 1 on")
        return int(text)

    @property
    def text(self) -> str:
        """Say what is allowed, and how to allow more."""
        return f"at most {self.most:,} {self.what} are taken; set {self.variable} to allow more"


INPUT_BYTES = Bound(
    "PHALANX_MAX_INPUT_BYTES", 1 << 29, "bytes of a file", "memory: a file of manifests takes about ten times its size"
)
DOCUMENTS = Bound("PHALANX_MAX_DOCUMENTS", 1_000_000, "documents in a file", "memory")
NESTING = Bound(
    "PHALANX_MAX_NESTING", 200, "levels of nesting", "the stack: what looks through an object calls itself at each level"
)
ALIASED_VALUES = Bound(
    "PHALANX_MAX_ALIASED_VALUES",
    100_000,
    "values by way of YAML aliases",
    "memory: ten lines of aliases can stand for billions of values",
)
STATE_BYTES = Bound("PHALANX_MAX_STATE_BYTES", 1 << 29, "bytes of a state file", "memory")
TRACE_BYTES = Bound(
    "PHALANX_MAX_TRACE_BYTES", 1 << 32, "bytes of a table of a trace", "time and memory; the largest public ones have 2 GB"
)
BODY_BYTES = Bound(
    "PHALANX_MAX_BODY_BYTES", 3 << 20, "bytes in the body of a request", "memory; as much as a real API server reads"
)
WATCHES = Bound("PHALANX_MAX_WATCHES", 1000, "open watches", "memory: each holds what its client has not read yet")
QUEUE_LEVELS = Bound("PHALANX_MAX_QUEUE_LEVELS", 64, "levels of queues", "the stack: shares are divided level by level")
MADE_PODS = Bound(
    "PHALANX_MAX_MADE_PODS", 100_000, "pods made of a workload", "memory and time: ten digits of a manifest can ask for billions"
)
SESSION_SECONDS = Bound(
    "PHALANX_MAX_SESSION_SECONDS", 5, "seconds of a session", "nothing: a longer one is reported with what took longest in it"
)

BOUNDS = (
    INPUT_BYTES,
    DOCUMENTS,
    NESTING,
    ALIASED_VALUES,
    STATE_BYTES,
    TRACE_BYTES,
    BODY_BYTES,
    WATCHES,
    QUEUE_LEVELS,
    MADE_PODS,
    SESSION_SECONDS,
)


def is_too_deep(value: object) -> bool:
    """Tell whether data has more levels of lists and mappings than allowed; level by level, so that it needs no stack itself."""
    level: list[object] = [value]
    for _ in range(NESTING.most + 1):
        level = [part for whole in level for part in _parts(whole) if isinstance(part, dict | list)]
        if not level:
            return False
    return True


def _parts(whole: object) -> Iterable[object]:
    return whole.values() if isinstance(whole, dict) else whole if isinstance(whole, list) else ()
