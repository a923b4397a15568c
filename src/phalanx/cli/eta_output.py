"""Expected starts for people and programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from phalanx.cli import output
from phalanx.cli.streams import visible
from phalanx.explain.gang_rows import GangRow
from phalanx.explain.reason_text import counted
from phalanx.model.listing import listed
from phalanx.model.moment import moment_text
from phalanx.sim.arrivals import ENOUGH, Arrivals
from phalanx.sim.eta import Estimate, EtaQuestion, EtaRun
from phalanx.sim.known_durations import Basis, KnownDuration
from phalanx.sim.metrics import short_time
from phalanx.sim.overdue import OverdueGang, overdue_gangs

MOST_NAMED = 3
UNKNOWN, NEVER = "?", "-"
TEXT_BY_BASIS = {
    Basis.DEADLINE: "only a deadline is known for {names}: assumed to end at any time before it",
    Basis.ASSUMED: "no duration is known for {names}: assumed as --assume says",
}
HEADER = ("GANG", "QUEUE", "WAITING", "STARTS", "AT", "BY", "AFTER")


@dataclass(frozen=True, slots=True)
class Answer:
    """The estimates, and what they were made from."""

    question: EtaQuestion
    rows: Sequence[GangRow]
    estimates: Sequence[Estimate]
    runs: Sequence[EtaRun]
    seeds: int
    row: GangRow | None = None
    """The gang that was asked about; None for all that wait."""
    recent: Arrivals | None = None
    """What was submitted in the last day; None if later submissions were not asked for."""
    written_at: float | None = None
    """When the input was written, if gangs are overdue only because that was long ago."""

    @property
    def is_good(self) -> bool:
        """Tell whether everybody starts within the horizon in most of the simulations, or needs to start no more."""
        if self.row is not None and not self.estimates:
            return self.row.status.has_minimum
        return all(found.p50 is not None for found in self.estimates)

    @property
    def alone(self) -> int:
        """How many simulations were held without later submissions."""
        return sum(not run.has_arrivals for run in self.runs)

    @property
    def crowded(self) -> int:
        """How many simulations were held with later submissions."""
        return sum(run.has_arrivals for run in self.runs)

    @property
    def row_by_gang(self) -> dict[str, GangRow]:
        """Every gang as a session sees it."""
        return {row.gang: row for row in self.rows}


def sentence(answer: Answer) -> str:
    """Say in one sentence what the gang waits for that was asked about, or why it does not wait."""
    if not answer.estimates:
        return _nobody(answer)
    found = answer.estimates[0]
    return reason(found, answer.row_by_gang[found.gang], answer.question)


def write(answer: Answer, form: str, notes: Sequence[str] = ()) -> None:
    """Write an answer in the form that was asked for; programs get the notes on the input too. More notes say what was assumed."""
    if form != "table":
        found = as_data(answer)
        output.write_data({**found, "notes": [*notes, *found["notes"]]}, form)
        return
    if not answer.estimates:
        output.say(_nobody(answer))
        return
    output.write_lines(_lines(answer, output.Terminal.of_stdout()))
    for text in _notes(answer):
        output.note(text)


def _nobody(answer: Answer) -> str:
    row = answer.row
    if row is None:
        return "No gang waits."
    return (
        f"{row.gang}: {row.status.value}; it does not wait."
        if row.status.has_minimum
        else f"{row.gang}: {row.why or row.status.value}"
    )


# --- table -----------------------------------------------------------------------------------------------------------------


def _lines(answer: Answer, screen: output.Terminal) -> Iterator[str]:
    cells = [[*map(visible, _cells(found, answer))] for found in sorted(answer.estimates, key=_place)]
    widths = [max(map(len, column)) for column in zip(HEADER, *cells, strict=True)][:-1]
    for line in (HEADER, *cells):
        start = output.GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=False))
        yield from output.with_sentence(start, sum(widths) + len(output.GAP) * len(widths), line[-1], screen)
    yield from ("", _summary(answer))


def _summary(answer: Answer) -> str:
    held, begun = answer.alone, moment_text(int(answer.question.now))
    less = f" of {answer.seeds}, then the time was over" if held < answer.seeds else ""
    return f"{counted(held, 'simulation')}{less}{_more(answer)}, each up to {short_time(answer.question.horizon)} from {begun}"


def _more(answer: Answer) -> str:
    """Say what BY was taken from."""
    recent = answer.recent
    if recent is None or not answer.crowded:
        return ""
    return f", and {answer.crowded} with arrivals as in the last {short_time(recent.seconds)} ({counted(recent.gangs, 'gang')})"


def _place(found: Estimate) -> tuple[float, str]:
    return float("inf") if found.p50 is None else found.p50, found.gang


def _cells(found: Estimate, answer: Answer) -> tuple[str, ...]:
    row, now, first = answer.row_by_gang[found.gang], answer.question.now, found.p50
    since = answer.question.since.get(found.gang)
    waiting = NEVER if since is None else short_time(max(now - since, 0.0))
    none = UNKNOWN if found.unknown else NEVER
    starts, clock = (none, none) if first is None else (f"in {short_time(round(first))}", _clock(now + first))
    return found.gang, row.queue, waiting, starts, clock, _by(found, none), reason(found, row, answer.question)


def _clock(moment: float) -> str:
    return moment_text(int(moment)).replace("T", " ").removesuffix(":00Z").removesuffix("Z")[:16]


def _by(found: Estimate, none: str) -> str:
    return none if found.p90 is None else f"in {short_time(round(found.p90))}"


def reason(found: Estimate, row: GangRow, question: EtaQuestion) -> str:
    """Say what a gang waits for: others that finish or are evicted, or what keeps it from starting at all."""
    if found.unknown:
        return f"unknown: {_names(found.unknown)} {_have(found.unknown)} no known duration"
    if found.p50 is None:
        return f"not within {short_time(question.horizon)}: {row.why}" if row.why else f"not within {short_time(question.horizon)}"
    parts = [f"after {_names(found.after)} {_have(found.after)} finished" if found.after else ""]
    parts += [f"evicts pods of {_names(found.evicts)}" if found.evicts else ""]
    return "; ".join(filter(None, parts)) or ("at once" if not row.why else row.why)


def _names(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return listed(names, MOST_NAMED)
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _have(names: Sequence[object]) -> str:
    return "has" if len(names) == 1 else "have"


def _notes(answer: Answer) -> Iterator[str]:
    """Say what is not known, and what was assumed instead."""
    known = answer.question.durations
    waiting = set(answer.question.gangs)
    endless = sorted(key for key, found in known.items() if found.basis is Basis.UNKNOWN and key not in waiting)
    if endless:
        yield f"no duration is known for {_names(endless)}: assumed never to end; --assume 4h says otherwise"
    for basis, text in TEXT_BY_BASIS.items():
        gangs = sorted(key for key, found in known.items() if found.basis is basis)
        if gangs:
            yield text.format(names=_names(gangs))
    yield from _overdue_notes(overdue_gangs(answer.question))
    if answer.written_at is not None:
        moment = moment_text(ceil(answer.written_at))
        yield f"the input is old: its newest time is {moment}; to ask as of then, write --now {moment}"
    if answer.recent is not None and (why := _why_not_counted(answer, answer.recent)):
        yield f"arrivals, gangs that are submitted later, are not counted: {why}"


def _overdue_notes(gangs: Sequence[OverdueGang]) -> Iterator[str]:
    for item in gangs[:MOST_NAMED]:
        expected = f"{item.known.source}: {short_time(item.known.values[-1])} at most"
        rest = f"within another {short_time(item.at_most)}" if item.at_most > 0 else "at once"
        yield f"{item.name} has run for {short_time(item.done)}, longer than expected ({expected}): assumed to end {rest}"
    if more := gangs[MOST_NAMED:]:
        yield f"{counted(len(more), 'more gang')} {_have(more)} run longer than expected: assumed to end before twice that time"


def _why_not_counted(answer: Answer, recent: Arrivals) -> str:
    """Say why no gangs were submitted later; empty if they were, or if nobody starts whom they could delay."""
    if answer.crowded or all(found.p50 is None for found in answer.estimates):
        return ""
    if recent.is_enough:
        return "the time was over"
    return f"fewer than {ENOUGH} submissions of known duration in the last {short_time(recent.seconds)}"


# --- data ------------------------------------------------------------------------------------------------------------------


def as_data(answer: Answer) -> dict[str, Any]:
    """Return an answer for programs."""
    question = answer.question
    return {
        "now": moment_text(int(question.now)), "horizonSeconds": question.horizon, "seeds": answer.alone,
        "arrivals": _arrivals_data(answer), "notes": list(_notes(answer)),
        "gangs": [_gang_data(found, answer) for found in sorted(answer.estimates, key=_place)],
        "durations": {key: _duration_data(known, question.done.get(key)) for key, known in sorted(question.durations.items())},
    }  # fmt: skip


def _arrivals_data(answer: Answer) -> Mapping[str, Any] | None:
    recent = answer.recent
    if recent is None or not answer.crowded:
        return None
    return {"gangs": recent.gangs, "seconds": recent.seconds, "seeds": answer.crowded}


def _gang_data(found: Estimate, answer: Answer) -> dict[str, Any]:
    row, now, since = answer.row_by_gang[found.gang], answer.question.now, answer.question.since.get(found.gang)
    p50, p90 = found.p50, found.p90
    return {
        "gang": found.gang, "queue": row.queue, "waitingSince": None if since is None else moment_text(int(since)),
        "p50Seconds": p50, "p90Seconds": p90, "startsAt": _moment(now, p50), "startsBy": _moment(now, p90),
        "startedIn": found.seeds_started, "after": list(found.after), "evicts": list(found.evicts),
        "unknown": list(found.unknown), "why": row.why,
    }  # fmt: skip


def _moment(now: float, seconds: float | None) -> str | None:
    return None if seconds is None else moment_text(int(now + seconds))


def _duration_data(known: KnownDuration, done: float | None) -> Mapping[str, Any]:
    median = known.median
    return {
        "from": known.basis.value, "source": known.source, "medianSeconds": median if known.values else None,
        "deadlineSeconds": known.deadline if known.deadline < float("inf") else None, "doneSeconds": done,
        "isOverdue": done is not None and known.is_overdue(done),
    }  # fmt: skip
