"""Work that is submitted later: gangs like those of the last day come again, in each simulation others.

It decides only when a gang starts at the latest. One day says roughly how much comes, and not what: few gangs make most of the
work, so that a median of such guesses is no better than a simulation without them.

Gangs that were created in the last day and whose duration is known are the population, whether they wait, run or have finished.
Those that were created within a minute are one submission, as sweeps come at once. A coming day has about as many submissions as
the last one, drawn from them with replacement, each near its time of day. How many is uncertain for two reasons: chance, and that
one day says only so much about the rate; the number that is drawn varies with both.

If the cluster is younger than a day, it says nothing about the time of day: submissions come at any time, at the rate since then.
Finished gangs that were deleted are not seen, so the rate is too low where they are deleted soon.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import sqrt
from random import Random
from typing import Protocol

from phalanx.dialects.group_references import with_group_name
from phalanx.model.duration import DAY_SECONDS
from phalanx.model.gang import Gang
from phalanx.model.kinds import Document, object_key
from phalanx.model.moment import moment_of
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.sim.known_durations import Basis, Durations, KnownDuration
from phalanx.sim.running_work import DURATION
from phalanx.state.snapshot import Snapshot

ENOUGH = 5
"""Fewer submissions in a day say nothing about the next."""
AT_ONCE_SECONDS = 60.0
"""Gangs that are created within so many seconds are one submission."""
SHORTEST_SECONDS, SHIFT_SECONDS = 3600.0, 3600.0
"""A cluster counts as at least so old; a submission comes up to so much earlier or later than on the day before."""
NAME = "arrival"
KEPT = ("name", "namespace", "labels", "annotations")
"""Of the metadata of an object, what a user has written."""


class Submits(Protocol):
    """A world, as far as gangs come into it."""

    def plan(self, offset: float, deed: Callable[[], object]) -> None:
        """Let something happen so many seconds after the start."""

    def submit(self, groups: Sequence[Sequence[Document]]) -> None:
        """Create the objects of gangs that arrive at one moment."""


@dataclass(frozen=True, slots=True)
class SeenGang:
    """A gang like which others may come."""

    created: float
    group: Document | None
    """None where pods alone make the gang."""
    pods: tuple[Document, ...]
    duration: KnownDuration

    def again(self, name: str, part: float) -> list[Document]:
        """Return the objects of a gang like it, with another name; it runs as long as this part of those like it do at most."""
        drawn = {} if self.duration.basis is Basis.PODS else {DURATION: f"{self.duration.at(part):.3f}s"}
        groups = [] if self.group is None else [_renamed(self.group, name)]
        pods = (_renamed(with_group_name(pod, name), f"{name}-{number}", drawn) for number, pod in enumerate(self.pods))
        return [*groups, *pods]


def _renamed(document: Document, name: str, annotations: Mapping[str, str] | None = None) -> Document:
    meta = {key: value for key, value in document["metadata"].items() if key in KEPT}
    own = {
        "name": name,
        "namespace": meta.get("namespace") or "default",
        "annotations": {**(meta.get("annotations") or {}), **(annotations or {})},
    }
    kept = {key: value for key, value in document.items() if key != "status"}
    return {**kept, "metadata": {**meta, **own}}


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The submissions of the last day, or since the cluster exists."""

    begun: float
    now: float
    submissions: tuple[tuple[SeenGang, ...], ...]

    @property
    def gangs(self) -> int:
        """How many gangs were created."""
        return sum(map(len, self.submissions))

    @property
    def is_enough(self) -> bool:
        """Tell whether they say something about the next day."""
        return len(self.submissions) >= ENOUGH

    @property
    def seconds(self) -> float:
        """How long they were counted."""
        return self.now - self.begun

    def plan(self, world: Submits, seed: int, until: float) -> None:
        """Let gangs come in a world that begins now, for so many seconds; the same ones for the same seed."""
        self._plan_day(world, Random(f"{seed} arrivals"), _Day(0.0, until, count(1)))

    def _plan_day(self, world: Submits, chance: Random, day: "_Day") -> None:
        """Plan a day, or as long as gangs were counted; and at its end the next."""
        for offset, submission in self._drawn(chance):
            coming = [(gang, f"{NAME}-{next(day.numbers)}", chance.random()) for gang in submission]
            if day.begin + offset < day.until:
                world.plan(day.begin + offset, partial(_submit, world, coming))
        following = replace(day, begin=day.begin + self.seconds)
        if following.begin < day.until:
            world.plan(following.begin, lambda: self._plan_day(world, chance, following))

    def _drawn(self, chance: Random) -> Iterator[tuple[float, tuple[SeenGang, ...]]]:
        seen = len(self.submissions)
        shift = SHIFT_SECONDS if self.seconds >= DAY_SECONDS else self.seconds
        for _ in range(round(chance.gauss(seen, sqrt(2 * seen)))):  # as much again by chance as by the unknown rate
            submission = chance.choice(self.submissions)
            yield (submission[0].created - self.begun + chance.uniform(-shift, shift)) % self.seconds, submission


@dataclass(frozen=True, slots=True)
class _Day:
    begin: float
    until: float
    """No gang comes later."""
    numbers: Iterator[int]
    """Of the gangs that come, for their names."""


def _submit(world: Submits, coming: Iterable[tuple[SeenGang, str, float]]) -> None:
    """Make objects only when their time has come: most simulations are over before a day is."""
    world.submit([gang.again(name, part) for gang, name, part in coming])


def arrivals_of(documents: Sequence[Document], snapshot: Snapshot, durations: Durations) -> Arrivals:
    """Look at what was submitted in the last day."""
    moments = (moment_of(str(item["metadata"].get("creationTimestamp") or "")) for item in documents)
    oldest = min((moment for moment in moments if moment), default=0.0)
    begun = min(max(oldest, snapshot.now - DAY_SECONDS), snapshot.now - SHORTEST_SECONDS)
    by_key = {(str(item.get("kind")), object_key(item)): item for item in documents}
    recent = [key for key, gang in snapshot.gangs.items() if begun <= gang.created <= snapshot.now and _is_alone(gang)]
    seen = (_seen(key, snapshot, by_key, durations) for key in recent)
    return Arrivals(begun, snapshot.now, tuple(_submissions(gang for gang in seen if gang is not None)))


def _is_alone(gang: Gang) -> bool:
    """Tell whether one group makes the gang, and it starts without others: names of several groups are not made anew."""
    return not gang.pieces and not gang.gang_group


def _seen(
    key: GangKey, snapshot: Snapshot, by_key: Mapping[tuple[str, str], Document], durations: Durations
) -> SeenGang | None:  # fmt: skip
    """Return a gang as others may come; None if it is not complete, or nobody knows how long it runs."""
    gang, known = snapshot.gangs[key], durations.of(key)
    members = snapshot.members_of(key)  # a pod that failed was replaced, or the gang never did its work
    found = [by_key.get(("Pod", str(name))) for name in sorted(members) if members[name].status is not Status.FAILED]
    group = by_key.get(("PodGroup", f"{gang.namespace}/{gang.name}")) if gang.has_object else None
    pods = tuple(pod for pod in found if pod is not None)
    is_complete = len(pods) >= max(gang.min_member, 1) and (group is not None or not gang.has_object)
    return SeenGang(gang.created, group, pods, known) if is_complete and known.basis is not Basis.UNKNOWN else None


def _submissions(gangs: Iterable[SeenGang]) -> Iterator[tuple[SeenGang, ...]]:
    """Yield gangs that came at once, together."""
    together: list[SeenGang] = []
    for gang in sorted(gangs, key=lambda gang: gang.created):
        if together and gang.created - together[0].created > AT_ONCE_SECONDS:
            yield tuple(together)
            together = []
        together.append(gang)
    if together:
        yield tuple(together)
