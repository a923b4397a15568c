"""Workloads by name, as on the command line: `generated:jobs=1000,nodes=100`, or a recorded trace as `philly:PATH`."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from phalanx.errors import ConfigError
from phalanx.sim.generate import MINUTES_PER_WEEK, PLACE, generate, read_settings
from phalanx.sim.traces import FORMATS, RecordedTrace, read_trace
from phalanx.sim.varied_work import at_load, jittered
from phalanx.sim.workload import Workload

MOST_NOTES = 5
NODES, JITTER, LOAD, CHECKPOINTS = OPTIONS = ("nodes=", "jitter=", "load=", "checkpoints=")
"""Of a trace, besides its files."""
LIMITS_BY_OPTION = {JITTER: (0.0, 0.9), LOAD: (0.01, 10.0), CHECKPOINTS: (0.0, float(MINUTES_PER_WEEK))}


@dataclass(frozen=True, slots=True)
class NamedWork:
    """A workload, and notes on what was left out of it."""

    workload: Workload
    """As it was recorded, or made up with one seed."""
    is_random: bool = False
    """Another seed makes other work of the same text."""
    jitter: float = 0.0
    """How much a recorded one varies with the seed."""
    notes: tuple[str, ...] = ()
    left_out: int = 0

    def of_seed(self, seed: int) -> Workload:
        """Return recorded work as it varies with a seed."""
        return jittered(self.workload, self.jitter, seed)

    def texts(self) -> Iterator[str]:
        """Return the notes on what was refused and left out; long lists are cut."""
        yield from self.notes[:MOST_NOTES]
        if len(self.notes) > MOST_NOTES:
            yield f"and {len(self.notes) - MOST_NOTES} more rows that cannot be read"
        if self.left_out:
            yield f"{self.left_out} jobs of the trace never ran, or have no known end, and are left out"


def read_workload(text: str, seed: int) -> NamedWork:
    """Return the work that a text names; the seed is for what is made up, unless the text has one of its own."""
    name, _, rest = text.partition(":")
    if name == PLACE:
        settings = read_settings(rest)
        return NamedWork(generate(**{"seed": seed, **settings}), is_random="seed" not in settings)
    if name not in FORMATS:
        raise ConfigError(f"--workload: {name!r} is unknown; write {PLACE}:jobs=1000,nodes=100, or FORMAT:PATH with one of"
                          f" {', '.join(FORMATS)}")  # fmt: skip
    parts = [part for part in rest.split(",") if part]
    given = {option: [part.removeprefix(option) for part in parts if part.startswith(option)] for option in OPTIONS}
    trace = _trace(name, [part for part in parts if not part.startswith(OPTIONS)], given[NODES])
    jitter, load, minutes = (_number(name, option, given[option]) for option in (JITTER, LOAD, CHECKPOINTS))
    workload = trace.workload if load is None else at_load(trace.workload, load)
    return NamedWork(workload.with_checkpoints(minutes or 0.0), bool(jitter), jitter or 0.0, trace.notes, trace.left_out)


def _number(name: str, option: str, texts: list[str]) -> float | None:
    """Return the number of an option, if it was given."""
    low, high = LIMITS_BY_OPTION[option]
    try:
        found = [float(text) for text in texts]
    except ValueError:
        found = [inf]
    if len(found) > 1 or not all(low <= number <= high for number in found):
        raise ConfigError(f"--workload: {name}: {option}{','.join(texts)} is not possible; write one number from {low} to {high}")
    return found[0] if found else None


def _trace(name: str, paths: list[str], counts: list[str]) -> RecordedTrace:
    if not paths:
        raise ConfigError(f"--workload: {name}: names no file; write for example {name}:traces/{name}")
    if len(counts) > 1 or not all(count.isdigit() for count in counts):
        raise ConfigError(f"--workload: {name}: {','.join(counts)!r} is not a number of nodes; write for example nodes=100")
    return read_trace(name, paths, nodes=int(counts[0]) if counts else None)
