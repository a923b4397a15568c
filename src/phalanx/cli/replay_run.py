"""What `phalanx replay` does: it feeds a recording to sessions, shows how far it has got, and what differs first."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from phalanx.cli import output
from phalanx.cli.progress import clear_progress, show_progress
from phalanx.cli.replay import ReplayOptions
from phalanx.cli.replay_difference import refuse_snapshot, sides, write_difference, write_snapshot
from phalanx.cli.replay_traces import parting_document, recorded_trace, traces_document, write_traces
from phalanx.errors import RecordingError
from phalanx.explain.answer import trace
from phalanx.explain.reason_text import counted
from phalanx.recording.entries import AnyEntry, CarriedOut, Decided, Dropped, Header, Planned
from phalanx.recording.moment import Span, time_text
from phalanx.recording.reading import Recording
from phalanx.recording.replay import Replay, ReplayedSession
from phalanx.scheduling.shards import decide
from phalanx.session.decision import Decisions
from phalanx.session.shard_decisions import together
from phalanx.sim.metrics import short_time

BETWEEN_LINES_SECONDS = 0.2


@dataclass(slots=True)
class ReplayOutcome:
    """What came out."""

    sessions: int = 0
    entries: int = 0
    dropped: int = 0
    source: str = ""
    version: str = ""
    span: Span = field(default_factory=lambda: Span(0.0, 0.0))
    seconds: float = 0.0
    carried_out: dict[str, int] = field(default_factory=dict)
    first: ReplayedSession | None = None
    """The first session that differs."""
    became: list[CarriedOut] = field(default_factory=list)
    """What became of its decisions before the next session."""
    problems: list[str] = field(default_factory=list)

    def traced(self, level: int) -> Decisions | None:
        """Decide the session that differs once more, to see how it goes: it is pure."""
        if self.first is None:
            return None
        return together(decide(self.first.session.snapshot, self.first.profile, trace_level=level))

    def traces(self, traced: Decisions | None) -> dict[str, Any]:  # Any: as JSON has it
        """Return the traces of both sides as plain data, if they were asked for."""
        if self.first is None or traced is None:
            return {}
        return {"trace": trace(traced), "traces": traces_document(recorded_trace(self.first, self.became), traced.trace)}

    def document(self) -> dict[str, Any]:  # Any: as JSON has it
        """Return the outcome as plain data."""
        first = self.first
        return {
            "same": first is None, "sessions": self.sessions, "entries": self.entries, "dropped": self.dropped,
            "source": self.source, "version": self.version, "from": time_text(self.span.begun), "to": time_text(self.span.ended),
            "carriedOut": self.carried_out, "problems": self.problems,
            "firstDifference": None if first is None else {
                "session": first.number, "time": time_text(first.now), "differences": list(first.differences()), **sides(first),
                "parting": parting_document(first),
            },
        }  # fmt: skip


def replay(asked: ReplayOptions) -> bool:
    """Replay a recording and show what came out; tell whether everything is the same."""
    outcome = ReplayOutcome()

    def tell(text: str) -> None:
        outcome.problems.append(text)
        output.note(text)

    if asked.snapshot:
        refuse_snapshot(asked.snapshot)
    recording, begun = Recording(Path(asked.folder), tell=tell), time.monotonic()
    with _progress(outcome):
        player = _play(recording, outcome)
    outcome.seconds = time.monotonic() - begun
    if not outcome.version:
        raise RecordingError(f"{asked.folder}: not even the beginning of the recording can be read; nothing in it can be replayed")
    traced = outcome.traced(int(asked.verbosity)) if asked.verbosity else None
    if asked.form == "table":
        _write(outcome, traced)
    else:
        output.write_data(outcome.document() | outcome.traces(traced), asked.form)
    if asked.snapshot and outcome.first is not None:
        write_snapshot(asked.snapshot, outcome.first, player.cluster)
    elif asked.snapshot:
        output.note(f"{asked.snapshot}: not written, because no session differs")
    return outcome.first is None


def _play(recording: Recording, outcome: ReplayOutcome) -> Replay:
    player, begun, last, read = Replay(), None, 0.0, recording.entries()
    for _, entry in read:
        outcome.entries += 1
        if isinstance(entry, Header):
            begun = entry.now if begun is None else begun
            outcome.source, outcome.version = entry.source, entry.version
        if isinstance(entry, Dropped):
            outcome.dropped += entry.count
        if isinstance(entry, CarriedOut):
            outcome.carried_out[entry.what] = outcome.carried_out.get(entry.what, 0) + 1
        session = player.enter(entry)
        last = max(last, player.cluster.now)
        outcome.sessions, outcome.span = player.count, Span(begun or 0.0, last)
        if session is not None and not session.is_same:
            outcome.first, outcome.became = session, [*_became(read)]
            break
    return player


def _became(rest: Iterator[tuple[Path, AnyEntry]]) -> Iterator[CarriedOut]:
    """Yield what became of decisions until the next session."""
    for _, entry in rest:
        if isinstance(entry, Decided | Planned | Header):
            return
        if isinstance(entry, CarriedOut):
            yield entry


@contextmanager
def _progress(outcome: ReplayOutcome) -> Iterator[None]:
    """Show on a terminal how far the replay is."""
    import sys
    import threading

    is_over = threading.Event()

    def show() -> None:
        while not is_over.wait(BETWEEN_LINES_SECONDS):
            show_progress(f"replayed {outcome.sessions:,} sessions, until {time_text(outcome.span.ended)}")

    thread = threading.Thread(target=show, daemon=True)
    if sys.stderr.isatty():
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        if thread.is_alive():
            thread.join()
            clear_progress()


def _write(outcome: ReplayOutcome, traced: Decisions | None) -> None:
    span, life = outcome.span, outcome.span.ended - outcome.span.begun
    click.echo(f"recorded by phalanx {outcome.version} ({outcome.source}), {span}")
    factor = f", {life / outcome.seconds:,.0f} times as fast as it happened" if outcome.seconds and life > outcome.seconds else ""
    click.echo(f"replayed {counted(outcome.sessions, 'session')} in {short_time(outcome.seconds)}{factor}")
    if outcome.carried_out:
        parts = ", ".join(f"{count:,} {what}" for what, count in sorted(outcome.carried_out.items()))
        click.echo(f"carried out then: {parts}")
    if outcome.dropped:
        click.echo(f"not recorded: {outcome.dropped:,} changes, because the disk could not keep up")
    if outcome.first is None:
        click.echo(_good_news(outcome))
        return
    write_difference(outcome.first, outcome.version)
    if traced is not None:
        write_traces(recorded_trace(outcome.first, outcome.became), traced.trace)


def _good_news(outcome: ReplayOutcome) -> str:
    if not outcome.sessions:
        return "no session is in the recording"
    return "every decision that can be read is the same" if outcome.problems else "every decision is the same"
