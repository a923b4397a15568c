"""Since when does it wait, and what changed last? From creation times, and from what its objects have recorded."""

from collections.abc import Iterator

from phalanx.explain.gang_status import has_minimum
from phalanx.explain.reading import Reading
from phalanx.explain.reason_text import as_counted, counted
from phalanx.explain.times import at_text, due_text
from phalanx.explain.tree import Line, Stage, StageResult
from phalanx.kai.stamps import LAST_START, STALE_SINCE
from phalanx.model.duration import age_text
from phalanx.model.gang import OVERDUE
from phalanx.model.moment import moment_of
from phalanx.model.task_status import HOLDING, Status
from phalanx.plugins.coscheduling import LAST_FAILURE, WAITS_SINCE
from phalanx.state.run_times import RunTimesBook

STAMPS = {
    WAITS_SINCE: "its time limit runs since",
    LAST_FAILURE: "it last failed",
    LAST_START: "it last started",
    STALE_SINCE: "it has had too few members since",
}
"""Annotations of groups that hold a moment, and what each means."""
MOST_CONDITIONS = 4


def history(reading: Reading) -> StageResult:
    """Say since when it waits and what changed last, the latest first."""
    waits = [] if has_minimum(reading.gang) else list(_waiting(reading))
    changes = sorted([*_conditions(reading), *_stamps(reading), *_evictions(reading)], key=lambda entry: -entry[0])
    return StageResult(Stage.HISTORY, None, (*waits, *_run_time(reading), *(line for _, line in changes[:MOST_CONDITIONS])))


def _run_time(reading: Reading) -> Iterator[Line]:
    """Say that it runs longer than it may, and what nobody can read of how long it runs."""
    key, snapshot = reading.gang.gang.key, reading.snapshot
    due, known = snapshot.overdue.get(key), RunTimesBook(snapshot).of(key)
    if due is not None:
        text = f"it has run for {age_text(reading.outcome.now - due + known.maximum)}, longer than its maximum of "
        yield Line(f"{text}{age_text(known.maximum)} ({known.limit})", "Overdue", {"since": at_text(due)})
    yield from (Line(f"its run time is unknown: {fault}", "RunTimeUnknown") for fault in known.faults)


def _waiting(reading: Reading) -> Iterator[Line]:
    gang, now = reading.gang, reading.outcome.now
    pending = [task.task.created for task in gang.tasks if task.task.status is Status.PENDING and task.task.created]
    created = gang.gang.created or min(pending, default=0.0)
    since = max(created, min(pending, default=created))
    if 0 < since <= now - 1:  # a group that was made for this session is as old as the session
        text = f"it has waited for {age_text(now - since)}, since {at_text(since)}"
        yield Line(text, "", {"since": at_text(since), "seconds": int(now - since)})
    if created and since - created >= 1:
        yield Line(f"it was created {due_text(created, now)}", "", {"created": at_text(created)})


def _conditions(reading: Reading) -> Iterator[tuple[float, Line]]:
    now = reading.outcome.now
    for item in reading.gang.gang.conditions:
        if item.since and item.type != OVERDUE:  # a line of its own says it
            why = ": ".join(filter(None, (item.reason, item.message)))
            text = f"{item.type}={item.status} since {due_text(item.since, now)}{f': {why}' if why else ''}"
            yield item.since, Line(text, item.reason, {"condition": item.type, "status": item.status, "since": at_text(item.since)})


def _stamps(reading: Reading) -> Iterator[tuple[float, Line]]:
    notes, now = reading.gang.gang.annotations, reading.outcome.now
    for key, text in STAMPS.items():
        moment = moment_of(notes[key]) if key in notes else None
        if moment:
            yield moment, Line(f"{text} {due_text(moment, now)}", "", {"annotation": key, "since": at_text(moment)})
    if reading.gang.gang.has_timed_out:
        yield 0.0, Line("it did not become whole in time before")


def _evictions(reading: Reading) -> Iterator[tuple[float, Line]]:
    """Yield the members that were evicted and have not gone yet, and those that were lost."""
    now, gang = reading.outcome.now, reading.gang
    leaving = [task.task for task in gang.tasks if task.task.is_disrupted and task.task.status not in HOLDING]
    if leaving:
        names = sorted((task.name for task in leaving), key=as_counted)
        last = max(task.leaving_since or task.finished for task in leaving)
        text = f"{counted(len(names), 'pod')} of it {'was' if len(names) == 1 else 'were'} evicted, {names[0]} among them"
        yield last, Line(f"{text}, {due_text(last, now)}" if last else text, "Evicted", {"pods": len(names)})
