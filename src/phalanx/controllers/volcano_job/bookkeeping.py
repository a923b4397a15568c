"""What a controller has to remember about a Job though nothing else shows it; it stands in an annotation of the Job.

A pod that is gone leaves no trace, so the pods that were there are remembered. Pods that have to go are remembered until they
are gone, so that nobody takes their end for an accident. So is the moment at which something happened that is acted upon later.
All of it belongs to one version of the Job; the next begins with nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

import msgspec

from phalanx.controllers.objects import annotations_of
from phalanx.controllers.volcano_job.job import MEMORY, VolcanoJob

Places = frozenset[tuple[str, int]]


class JobMemoryRead(msgspec.Struct, omit_defaults=True):
    """As the annotation holds it; numbers of pods as ranges, such as 0-6,9."""

    version: int = 0
    seen: dict[str, str] = msgspec.field(default_factory=dict)
    doomed: list[str] = msgspec.field(default_factory=list)
    since: dict[str, float] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobMemory:
    """What is remembered."""

    version: int = 0
    seen: Places = frozenset()
    """Tasks and numbers of the pods whose loss would be news."""
    doomed: frozenset[str] = frozenset()
    """Pods, by uid, that have to go."""
    since: Mapping[str, float] = field(default_factory=dict)
    """When things happened that are acted upon later."""

    def without(self, places: Iterable[tuple[str, int]]) -> "JobMemory":
        """Return the memory after the loss of some pods was dealt with."""
        return replace(self, seen=self.seen - set(places))


def recall(job: VolcanoJob) -> JobMemory:
    """Return what is remembered about this version of a Job; a text that nobody here wrote is worth nothing."""
    text = annotations_of(job.document).get(MEMORY, "{}")
    try:
        read = msgspec.json.decode(text, type=JobMemoryRead)
        seen = frozenset((task, index) for task, ranges in read.seen.items() for index in _numbers(ranges))
    except (msgspec.DecodeError, ValueError):
        return JobMemory(job.standing.version)
    if read.version != job.standing.version:
        return JobMemory(job.standing.version)
    return JobMemory(read.version, seen, frozenset(read.doomed), read.since)


def text_of(memory: JobMemory) -> str | None:
    """Return the annotation; None when there is nothing to remember."""
    tasks = groupby(sorted(memory.seen), key=lambda place: place[0])
    seen = {task: _ranges([index for _, index in places]) for task, places in tasks}
    read = JobMemoryRead(memory.version, seen, sorted(memory.doomed), dict(sorted(memory.since.items())))
    return msgspec.json.encode(read).decode() if seen or memory.doomed or memory.since else None


def _ranges(numbers: list[int]) -> str:
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    bounds = [[number for _, number in run] for _, run in runs]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in bounds)


def _numbers(ranges: str) -> Iterable[int]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
