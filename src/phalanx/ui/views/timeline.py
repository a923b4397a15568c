"""The life of a gang as moments: created, admitted, bound, running, evicted, ended, as far as its objects tell."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from phalanx.explain.reason_text import counted
from phalanx.model.gang import Gang
from phalanx.model.task import Task
from phalanx.model.task_status import HOLDING, Status
from phalanx.session.reservation import ReservedStart
from phalanx.ui.views import Json

MOST_MOMENTS = 12
"""Of one kind: more of them are told together."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened, or is expected."""

    time: float
    kind: str
    """Such as ``created``: how it is drawn."""
    text: str
    until: float = 0.0
    """When the last of several was; 0 for one."""

    def document(self) -> Json:
        """Return it as plain data."""
        return {"time": self.time, "kind": self.kind, "text": self.text, "until": self.until}


def moments(gang: Gang | None, tasks: Sequence[Task], reserved: ReservedStart | None) -> list[Moment]:
    """Return what is known of the life of a gang, in the order of time."""
    found = [
        *(_created(gang) if gang is not None else ()),
        *_many(tasks, "pods", "created", lambda task: task.created),
        *(_conditions(gang) if gang is not None else ()),
        *_many(tasks, "bound", "bound", lambda task: task.scheduled),
        *_many(tasks, "running", "running", lambda task: task.started if task.status is not Status.PENDING else 0.0),
        *_many(_evicted(tasks), "evicted", "evicted", lambda task: task.leaving_since or task.finished),
        *_many(_failed(tasks), "failed", "failed", lambda task: task.finished),
        *_many(_succeeded(tasks), "ended", "ended", lambda task: task.finished),
        *(_reserved(reserved) if reserved is not None else ()),
    ]
    return sorted(found, key=lambda moment: moment.time)


def _created(gang: Gang) -> Iterator[Moment]:
    if gang.created:
        yield Moment(gang.created, "created", "the gang was created")


def _conditions(gang: Gang) -> Iterator[Moment]:
    for item in gang.conditions:
        if item.since:
            why = ": ".join(filter(None, (item.reason, item.message)))
            yield Moment(item.since, "condition", f"{item.type}={item.status}{f': {why}' if why else ''}")


def _reserved(reserved: ReservedStart) -> Iterator[Moment]:
    yield Moment(reserved.start, "reserved", reserved.text)


def _evicted(tasks: Iterable[Task]) -> list[Task]:
    return [task for task in tasks if task.is_disrupted and task.status not in HOLDING]


def _failed(tasks: Iterable[Task]) -> list[Task]:
    return [task for task in tasks if task.status is Status.FAILED and not task.is_disrupted]


def _succeeded(tasks: Iterable[Task]) -> list[Task]:
    return [task for task in tasks if task.status is Status.SUCCEEDED]


def _many(tasks: Sequence[Task], kind: str, verb: str, time: Callable[[Task], float]) -> Iterator[Moment]:
    """Yield when something happened to pods; those of one second go together, and in a long row those that are near."""
    counts = Counter(int(moment) for task in tasks if (moment := time(task)))
    if not counts:
        return
    first, last = min(counts), max(counts)
    width = 1 if len(counts) <= MOST_MOMENTS else (last - first) // MOST_MOMENTS + 1
    for start in sorted({first + (moment - first) // width * width for moment in counts}):
        inside = [moment for moment in counts if start <= moment < start + width]
        number, until = sum(counts[moment] for moment in inside), max(inside)
        yield Moment(float(min(inside)), kind, f"{counted(number, 'pod')} {verb}", float(until) if until > min(inside) else 0.0)
