"""What the controller has to remember about a Job because no object shows it, in an annotation of the Job.

A deleted pod leaves no trace, so the pods that were there are remembered, to notice when one is lost. Pods that the controller
deletes itself are remembered until they are gone, so that their end is not taken for a loss. So is when an event happened whose
policy has a timeout. All of it belongs to one version of the Job; the next version begins with nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

import msgspec

from phalanx.controllers.objects import annotations_of
from phalanx.controllers.volcano_job.job import MEMORY, ParsedJob
from phalanx.dialects.reading import decode_as

Places = frozenset[tuple[str, int]]


class JobMemoryRead(msgspec.Struct, omit_defaults=True):
    """As the annotation holds it; the indices of pods are ranges such as 0-6,9, since a Job may have thousands."""

    version: int = 0
    seen: dict[str, str] = msgspec.field(default_factory=dict)
    doomed: list[str] = msgspec.field(default_factory=list)
    since: dict[str, float] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobMemory:
    """What is remembered."""

    version: int = 0
    seen: Places = frozenset()
    """Tasks and indices of the pods whose loss is an event."""
    doomed: frozenset[str] = frozenset()
    """Pods, by uid, that the controller deletes."""
    since: Mapping[str, float] = field(default_factory=dict)
    """When events happened whose policy has a timeout."""

    def without(self, places: Iterable[tuple[str, int]]) -> "JobMemory":
        """Return the memory without some lost pods, about which nothing more is to be done."""
        return replace(self, seen=self.seen - set(places))


def recall(job: ParsedJob) -> JobMemory:
    """Return what is remembered about this version of a Job; an annotation that cannot be read counts as none."""
    text = annotations_of(job.document).get(MEMORY, "{}")
    try:
        read = decode_as(text, JobMemoryRead)
        seen = frozenset((task, index) for task, ranges in read.seen.items() for index in _numbers(ranges))
    except (msgspec.DecodeError, ValueError):
        return JobMemory(job.state.version)
    if read.version != job.state.version:
        return JobMemory(job.state.version)
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
