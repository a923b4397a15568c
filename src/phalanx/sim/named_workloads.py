"""Workloads by name, as on the command line: `generated:jobs=1000,nodes=100`, or a recorded trace as `philly:PATH`."""

from collections.abc import Iterator
from dataclasses import dataclass

from phalanx.errors import ConfigError
from phalanx.sim.generate import PLACE, generate, read_settings
from phalanx.sim.traces import FORMATS, RecordedTrace, read_trace
from phalanx.sim.workload import Workload

MOST_NOTES = 5
NODES = "nodes="


@dataclass(frozen=True, slots=True)
class NamedWork:
    """A workload, and notes on what was left out of it."""

    workload: Workload
    notes: tuple[str, ...] = ()
    left_out: int = 0

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
        return NamedWork(generate(**{"seed": seed, **read_settings(rest)}))
    if name not in FORMATS:
        raise ConfigError(f"--workload: {name!r} is unknown; write {PLACE}:jobs=1000,nodes=100, or FORMAT:PATH with one of"
                          f" {', '.join(FORMATS)}")  # fmt: skip
    trace = _trace(name, [part for part in rest.split(",") if part])
    return NamedWork(trace.workload, trace.notes, trace.left_out)


def _trace(name: str, parts: list[str]) -> RecordedTrace:
    paths = [part for part in parts if not part.startswith(NODES)]
    counts = [part.removeprefix(NODES) for part in parts if part.startswith(NODES)]
    if not paths:
        raise ConfigError(f"--workload: {name}: names no file; write for example {name}:traces/{name}")
    if len(counts) > 1 or not all(count.isdigit() for count in counts):
        raise ConfigError(f"--workload: {name}: {','.join(counts)!r} is not a number of nodes; write for example nodes=100")
    return read_trace(name, paths, nodes=int(counts[0]) if counts else None)
