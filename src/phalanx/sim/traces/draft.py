"""A trace while it is read: its gangs and machines so far, the rows that were refused, and the jobs that are left out.

A row that cannot be understood is refused alone: it becomes a note, and the next one is read. A job that never ran, or whose
end is unknown, is left out and counted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from phalanx.errors import ConfigError, TraceError
from phalanx.sim.traces.trace_cluster import made_cluster
from phalanx.sim.workload import Machine, Workload, WorkloadGang

Source = TypeVar("Source")
Result = TypeVar("Result")
LONGEST_NAME = 40
"""Leaves room for what the names of pods add."""


class NoJobs(TraceError):
    """A trace without any job that ran."""


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """A workload that was recorded, and what is missing in it."""

    workload: Workload
    notes: tuple[str, ...] = ()
    """One for each row that was refused: "cluster_log.csv, line 17: gpu_num: 'x' is not a number"."""
    left_out: int = 0
    """How many jobs never ran, or have no known end."""


class TraceDraft:
    """Gathers gangs and machines; times may begin anywhere."""

    def __init__(self, *, queue: str = "queue") -> None:
        """Begin; `queue` goes before names of queues that do not begin with a letter."""
        self.queues, self.gang_names, self.machine_names = UniqueNames(queue), UniqueNames("job"), UniqueNames("node")
        self._notes: list[str] = []
        self._left_out = 0

    def each(self, sources: Iterable[Source], make: Callable[[Source], Result | None]) -> list[Result]:
        """Return what is made of each source; a refusal becomes a note, and nothing is left out."""
        found = []
        for source in sources:
            try:
                made = make(source)
            except TraceError as problem:
                self._notes.append(str(problem))
                continue
            if made is None:
                self._left_out += 1
            else:
                found.append(made)
        return found

    def trace(
        self,
        gangs: list[WorkloadGang],
        machines: Sequence[Machine] = (),
        *,
        nodes: int | None = None,
        weight_by_queue: Mapping[str, int] | None = None,
    ) -> RecordedTrace:
        """Return the trace, its first submission at 0; without machines it gets a cluster, of this many nodes if given."""
        if not gangs:
            raise NoJobs(f"no job that ran: {self._left_out} left out, {len(self._notes)} refused{self._first_note()}")
        if machines and nodes is not None:
            raise ConfigError(f"nodes: the trace names its machines, {len(machines)}; leave out the number, or the file with them")
        ordered = _from_zero(gangs if machines else [_anywhere(gang) for gang in gangs])
        weights = {gang.queue: 1 for gang in ordered} | dict(weight_by_queue or {})
        workload = Workload(tuple(ordered), tuple(machines) or made_cluster(ordered, nodes), weights)
        return RecordedTrace(workload, tuple(self._notes), self._left_out)

    def _first_note(self) -> str:
        return f"; the first: {self._notes[0]}" if self._notes else ""


def _from_zero(gangs: list[WorkloadGang]) -> list[WorkloadGang]:
    ordered = sorted(gangs, key=lambda gang: gang.submitted)
    first = ordered[0].submitted
    return [replace(gang, submitted=gang.submitted - first) for gang in ordered] if first else ordered


def _anywhere(gang: WorkloadGang) -> WorkloadGang:
    """Return the gang without node labels, such as a model of GPU, which a made-up cluster does not have."""
    if not any(part.node_labels for part in gang.parts):
        return gang
    return replace(gang, parts=tuple(replace(part, node_labels={}) for part in gang.parts))


# --- names ---------------------------------------------------------------------------------------------------------------


class UniqueNames:
    """Gives every name of a trace one valid name; two that would look alike get a number."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._name_by_text: dict[str, str] = {}
        self._taken: dict[str, int] = {}

    def same(self, text: str) -> str:
        """Return the name for this text, the same each time."""
        if text not in self._name_by_text:
            self._name_by_text[text] = self.fresh(text)
        return self._name_by_text[text]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield every text that `same` was asked for, with its name."""
        return iter(self._name_by_text.items())

    def fresh(self, text: str) -> str:
        """Return a name for this text that no other has."""
        plain = name = valid(text, self._prefix)
        while name in self._taken:
            self._taken[plain] += 1
            name = f"{plain}-{self._taken[plain]}"
        self._taken[name] = 1
        return name


def valid(text: str, prefix: str) -> str:
    """Return a valid name close to the text; the prefix goes before one that does not begin with a letter."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    named = plain if plain[:1].isalpha() else f"{prefix}-{plain}"
    return named[:LONGEST_NAME].strip("-")
