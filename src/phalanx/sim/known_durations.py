"""How long gangs run, as far as anybody can know: from annotations, from gangs like them that have finished, and from deadlines.

The first that says something counts:

    phalanx.dev/duration     of the pods, the group or an owner: a duration, or a range such as 30m..2h; or the default of the queue
    finished gangs           of the same owner, else of the same name without digits and random endings, else of the same image
    a deadline               phalanx.dev/max-duration, activeDeadlineSeconds of a pod or of an owner, Kueue's maximum; by itself it
                             says only that a gang ends before it
    an assumption            that the user makes for all others

A deadline also bounds what the others say. What is known is a distribution: simulations draw from it, and from the part of it that
is left for a gang that has run for a while.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from phalanx.controllers.objects import annotations_of, controller_of
from phalanx.controllers.owner_deadlines import deadlines_in
from phalanx.explain.reason_text import counted
from phalanx.model.gang import Gang
from phalanx.model.kinds import GROUP_KINDS, Document, object_key
from phalanx.model.moment import moment_of, moment_text
from phalanx.model.run_times import RunTimes
from phalanx.model.task import GangKey, Task
from phalanx.model.task_status import Status
from phalanx.sim.gang_history import FinishedGang, History
from phalanx.sim.running_work import DURATION, duration_of
from phalanx.sim.settings import FOREVER, Span
from phalanx.state.run_times import run_times
from phalanx.state.snapshot import Snapshot

SPREAD = 2.0
"""The next gang may take so many times longer than the longest before it, or shorter than the shortest."""
OVERDUE = 2.0
"""A gang that has run longer than anybody knew ends before it has run for so many times as long."""
MOST_OWNERS = 8


class Basis(StrEnum):
    """What a duration is known from."""

    ANNOTATION = "annotation"
    PODS = "pods"
    """Annotations of pods that differ: each pod ends by its own."""
    HISTORY = "history"
    DEADLINE = "deadline"
    ASSUMED = "assumed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KnownDuration:
    """How long a gang runs from start to end: durations that divide all chances into equal parts, from shortest to longest."""

    basis: Basis = Basis.UNKNOWN
    values: tuple[float, ...] = ()
    """At least two; none if nothing is known."""
    deadline: float = FOREVER
    source: str = ""
    """What it is known from, as a person would say it: "3 finished gangs of CronJob ml/nightly"."""

    def at(self, part: float, done: float = 0.0) -> float:
        """Return how long it runs in all, if it has run for so long already and this part of those like it run no longer.

        The part is from 0 to 1; `FOREVER` when nothing is known.
        """
        if not self.values:
            return FOREVER
        if self.is_overdue(done):
            found = done * (1.0 + part * (OVERDUE - 1.0))
        else:
            below = _part_below(self.values, done)
            found = _value_at(self.values, below + part * (1.0 - below))
        return max(min(found, self.deadline), done)

    def is_overdue(self, done: float) -> bool:
        """Tell whether it has run for longer than anybody expected."""
        return bool(self.values) and done >= self.values[-1] > 0.0

    @property
    def median(self) -> float:
        """Half of all gangs like it run longer; `FOREVER` when nothing is known."""
        return min(_value_at(self.values, 0.5), self.deadline) if self.values else FOREVER


def _value_at(values: Sequence[float], part: float) -> float:
    place = part * (len(values) - 1)
    below = min(int(place), len(values) - 2)
    return values[below] + (values[below + 1] - values[below]) * (place - below)


def _part_below(values: Sequence[float], value: float) -> float:
    above = bisect_right(values, value)
    if above in (0, len(values)):
        return float(above > 0)
    low, high = values[above - 1], values[above]
    return (above - 1 + (value - low) / (high - low)) / (len(values) - 1)


@dataclass(frozen=True, slots=True)
class _Work:
    """A gang, or a pod that belongs to none."""

    name: str
    tasks: tuple[Task, ...]
    group: Document | None = None
    """The object of the gang, empty where pods alone make it; None for a pod without a gang."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    times: RunTimes = field(default_factory=RunTimes)
    """What the scheduler knows."""


# --- a cluster --------------------------------------------------------------------------------------------------------------


class Durations:
    """What the objects of a cluster and a history say about how long gangs run."""

    def __init__(
        self, documents: Iterable[Document], snapshot: Snapshot, history: Iterable[FinishedGang] = (), assumed: Span | None = None
    ) -> None:  # fmt: skip
        """Look at all objects, those that no session reads among them: they may be owners."""
        self._snapshot, self._assumed = snapshot, assumed
        self._documents = {(str(item.get("kind")), object_key(item)): item for item in documents}
        self.history = [*history, *self._finished_gangs(), *self._finished_jobs()]
        """Finished gangs, those of the cluster among them."""
        self._known = History(self.history)

    def of(self, key: GangKey) -> KnownDuration:
        """Return how long a gang runs."""
        gang, tasks = self._snapshot.gangs[key], tuple(self._snapshot.members_of(key).values())
        since = self._begun(key, Status.RUNNING) or self._snapshot.now
        times = run_times(gang, next(iter(tasks), None), self._snapshot.queues.get(gang.queue), since=since)
        return self._of(_Work(str(key), tasks, self._group(gang), gang.annotations, times))

    def of_pod(self, task: Task) -> KnownDuration:
        """Return how long a pod runs that belongs to no gang."""
        return self._of(_Work(str(task.key), (task,), times=run_times(None, task, None)))

    def _of(self, work: _Work) -> KnownDuration:
        owners = list(self._owners(work))
        deadline = min((*self._deadlines(work.tasks, owners), work.times.maximum))
        found = _annotated(work, owners) or _by_default(work.times) or self._like(work)
        if found is None and deadline < FOREVER:
            found = Basis.DEADLINE, (0.0, deadline), "deadline"
        if found is None and self._assumed is not None and work.group is not None:
            found = Basis.ASSUMED, (self._assumed.low, self._assumed.high), "assumption"
        return KnownDuration(deadline=deadline) if found is None else KnownDuration(found[0], found[1], deadline, found[2])

    def done(self, key: GangKey) -> float:
        """Return for how long a gang has had its minimum running; 0 if nobody says since when."""
        begun = self._begun(key, Status.RUNNING)
        return max(self._snapshot.now - begun, 0.0) if begun else 0.0

    def _begun(self, key: GangKey, *statuses: Status) -> float:
        gang = self._snapshot.gangs[key]
        moments = sorted(task.started for task in self._snapshot.members_of(key).values() if task.status in statuses)
        return moments[min(max(gang.min_member, 1), len(moments)) - 1] if moments else 0.0

    def _like(self, work: _Work) -> tuple[Basis, tuple[float, ...], str] | None:
        """Return what finished gangs like this one took, with some room on both sides: the next may be the longest."""
        label, seconds = self._known.like(work.name, self._owner(work), self._image(work.tasks))
        if not seconds:
            return None
        return (
            Basis.HISTORY,
            (seconds[0] / SPREAD, *seconds, seconds[-1] * SPREAD),
            f"{counted(len(seconds), 'finished gang')} of {label}",
        )

    # --- finished work -----------------------------------------------------------------------------------------------

    def _finished_gangs(self) -> Iterator[FinishedGang]:
        for key, gang in self._snapshot.gangs.items():
            tasks = tuple(self._snapshot.members_of(key).values())
            if len(tasks) < max(gang.min_member, 1) or any(task.status is not Status.SUCCEEDED for task in tasks):
                continue
            end, begun = max(task.finished for task in tasks), self._begun(key, Status.SUCCEEDED)
            if end > begun > 0:
                owner, image = self._owner(_Work(str(key), tasks, self._group(gang))), self._image(tasks)
                yield FinishedGang(str(key), end - begun, owner, image, moment_text(int(end)))

    def _finished_jobs(self) -> Iterator[FinishedGang]:
        """Yield Jobs that have completed and whose pods may be gone."""
        for (kind, key), job in self._documents.items():
            status = job.get("status") or {}
            begun, end = (moment_of(str(status.get(name) or "")) for name in ("startTime", "completionTime"))
            if kind == "Job" and begun is not None and end is not None and end > begun and status.get("succeeded"):
                *_, top = [f"Job {key}", *(_name_of(reference, key) for reference in self._references(job))]
                image = _images([((job.get("spec") or {}).get("template") or {}).get("spec") or {}])
                yield FinishedGang(key, end - begun, top, image, moment_text(int(end)))

    # --- owners and deadlines ------------------------------------------------------------------------------------------

    def _owner(self, work: _Work) -> str:
        """Return the topmost owner that is known; empty without one."""
        chains = ([_name_of(reference, work.name) for reference in self._references(start)] for start in self._beginnings(work))
        return next((names[-1] for names in chains if names), "")

    def _owners(self, work: _Work) -> Iterator[Document]:
        """Yield the objects that own a gang or one of its pods, as far as they are known."""
        for start in self._beginnings(work):
            found = (self._find(reference, start) for reference in self._references(start))
            yield from (owner for owner in found if owner is not None)

    def _beginnings(self, work: _Work) -> Iterator[Document]:
        """Yield the group of a gang and its first pod: whose owners are the gang's."""
        pods = (self._documents.get(("Pod", str(task.key))) for task in work.tasks[:1])
        yield from (item for item in (work.group, *pods) if item is not None)

    def _group(self, gang: Gang) -> Document:
        return self._documents.get(("PodGroup", f"{gang.namespace}/{gang.name}"), {})

    def _references(self, document: Document) -> Iterator[Document]:
        """Yield the references to the owner of an object, to the owner's owner and so on."""
        item: Document | None = document
        for _ in range(MOST_OWNERS):
            reference = None if item is None else _owner_reference(item)
            if reference is None:
                return
            if reference.get("kind") not in {kind.kind for kind in GROUP_KINDS} | {"Pod"}:
                yield reference
            item = self._find(reference, document)

    def _find(self, reference: Document, owned: Document) -> Document | None:
        namespace = str(owned.get("metadata", {}).get("namespace") or "default")
        return self._documents.get((str(reference.get("kind")), f"{namespace}/{reference.get('name')}"))

    def _deadlines(self, tasks: Sequence[Task], owners: Iterable[Document]) -> Iterator[float]:
        for task in tasks:
            pod = self._documents.get(("Pod", str(task.key)))
            yield from deadlines_in((pod or {}).get("spec"))
        for owner in owners:
            yield from deadlines_in(owner.get("spec"))

    def _image(self, tasks: Sequence[Task]) -> str:
        pods = (self._documents.get(("Pod", str(task.key))) for task in tasks)
        return _images([pod.get("spec") or {} for pod in pods if pod is not None])


def _annotated(work: _Work, owners: Sequence[Document]) -> tuple[Basis, tuple[float, ...], str] | None:
    """Return what annotations say; that of a pod goes before that of its group, and that of the group before those of owners."""
    others = (annotations_of(owner).get(DURATION) for owner in owners)
    for_all = work.annotations.get(DURATION) or next(filter(None, others), "")
    texts = {task.annotations.get(DURATION, for_all) for task in work.tasks} or {for_all}
    spans = [duration_of(text) for text in texts if text]
    if not spans:
        return None
    longest = max(spans, key=lambda span: (span.high, span.low))
    return Basis.ANNOTATION if len(texts) == 1 else Basis.PODS, (longest.low, longest.high), f"annotation {DURATION}"


def _by_default(times: RunTimes) -> tuple[Basis, tuple[float, ...], str] | None:
    """Return what the queue says, where nobody else says anything."""
    return (Basis.ANNOTATION, (times.shortest, times.longest), times.source) if times.longest < FOREVER else None


def _owner_reference(document: Document) -> Document | None:
    """Return the reference to the owner that manages an object, or to the only one it has: groups have no manager."""
    references = document.get("metadata", {}).get("ownerReferences") or []
    return controller_of(document) or (references[0] if len(references) == 1 else None)


def _name_of(reference: Document, owned: str) -> str:
    return f"{reference.get('kind')} {owned.partition('/')[0]}/{reference.get('name')}"


def _images(specs: Iterable[Mapping[str, Any]]) -> str:
    containers = (item for spec in specs for item in spec.get("containers") or ())
    return ", ".join(sorted({str(item["image"]) for item in containers if item.get("image")}))
