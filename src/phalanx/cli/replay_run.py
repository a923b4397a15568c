"""What `phalanx replay` does: it feeds a recording to sessions, shows how far it has got, and what differs first."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from phalanx.cli import output
from phalanx.cli.parallel_segments import replayed_segments, worth_parallel
from phalanx.cli.progress import clear_progress, show_progress
from phalanx.cli.replay import ReplayOptions
from phalanx.cli.replay_difference import refuse_snapshot, sides, write_difference, write_snapshot
from phalanx.cli.replay_traces import parting_document, recorded_trace, traces_document, write_traces
from phalanx.cli.simulate_run import GARBAGE
from phalanx.errors import RecordingError
from phalanx.explain.answer import trace
from phalanx.explain.reason_text import counted
from phalanx.recording.entries import AnyEntry, CarriedOut, Decided, Header, Planned
from phalanx.recording.moment import Span, time_text
from phalanx.recording.reading import Recording
from phalanx.recording.replay import Replay, ReplayedSession
from phalanx.recording.replayed_segment import ReplayTally, all_together
from phalanx.scheduling.shards import decide
from phalanx.session.decision import Decisions
from phalanx.session.shard_decisions import together
from phalanx.sim.metrics import short_time

BETWEEN_LINES_SECONDS = 0.2


@dataclass(slots=True)
class ReplayOutcome:
    """What came out."""

    tally: ReplayTally = field(default_factory=ReplayTally)
    seconds: float = 0.0
    first: ReplayedSession | None = None
    """The first session that differs."""
    became: list[CarriedOut] = field(default_factory=list)
    """What became of its decisions before the next session."""
    problems: list[str] = field(default_factory=list)

    @property
    def span(self) -> Span:
        """From when to when the recording was replayed."""
        return Span(self.tally.begun or 0.0, self.tally.ended)

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
        first, tally = self.first, self.tally
        return {
            "same": first is None, "sessions": tally.sessions, "entries": tally.entries, "dropped": tally.dropped,
            "source": tally.source, "version": tally.version, "from": time_text(self.span.begun), "to": time_text(self.span.ended),
            "carriedOut": dict(tally.carried_out), "problems": self.problems,
            "firstDifference": None if first is None else {
                "session": first.number, "time": time_text(first.now), "differences": list(first.differences()), **sides(first),
                "parting": parting_document(first),
            },
        }  # fmt: skip


def replay(asked: ReplayOptions) -> bool:
    """Replay a recording and show what came out; tell whether everything is the same."""
    gc.set_threshold(*GARBAGE)
    outcome = ReplayOutcome()

    def tell(text: str) -> None:
        outcome.problems.append(text)
        output.note(text)

    if asked.snapshot:
        refuse_snapshot(asked.snapshot)
    recording, begun = Recording(Path(asked.folder), tell=tell), time.monotonic()
    with _progress(outcome):
        player = _play(recording, outcome, asked.processes)
    outcome.seconds = time.monotonic() - begun
    if not outcome.tally.version:
        raise RecordingError(f"{asked.folder}: not even the beginning of the recording can be read; nothing in it can be replayed")
    traced = outcome.traced(int(asked.verbosity)) if asked.verbosity else None
    if asked.form == "table":
        _write(outcome, traced)
    else:
        output.write_data(outcome.document() | outcome.traces(traced), asked.form)
    if asked.snapshot and outcome.first is not None:
        assert player is not None, "a session that differs is found in a row"
        write_snapshot(asked.snapshot, outcome.first, player.cluster)
    elif asked.snapshot:
        output.note(f"{asked.snapshot}: not written, because no session differs")
    return outcome.first is None


def _play(recording: Recording, outcome: ReplayOutcome, processes: int) -> Replay | None:
    """Replay several segments at a time where that pays, and all in a row where it does not, or where a session differs."""
    if processes > 1 and worth_parallel(recording.paths):
        segments = replayed_segments(recording.paths, processes, outcome.tally)
        if segments is not None:
            outcome.tally = all_together(segments)
            for problem in (problem for segment in segments for problem in segment.problems):
                recording.tell(problem)
            return None
        outcome.tally = ReplayTally()
    return _play_in_a_row(recording, outcome)


def _play_in_a_row(recording: Recording, outcome: ReplayOutcome) -> Replay:
    player, read = Replay(), recording.entries()
    for _, entry in read:
        session = outcome.tally.enter(entry, player)
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
            show_progress(f"replayed {outcome.tally.sessions:,} sessions, until {time_text(outcome.span.ended)}")

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
    click.echo(f"recorded by phalanx {outcome.tally.version} ({outcome.tally.source}), {span}")
    factor = f", {life / outcome.seconds:,.0f} times as fast as it happened" if outcome.seconds and life > outcome.seconds else ""
    click.echo(f"replayed {counted(outcome.tally.sessions, 'session')} in {short_time(outcome.seconds)}{factor}")
    if outcome.tally.carried_out:
        parts = ", ".join(f"{count:,} {what}" for what, count in sorted(outcome.tally.carried_out.items()))
        click.echo(f"carried out then: {parts}")
    if outcome.tally.dropped:
        click.echo(f"not recorded: {outcome.tally.dropped:,} changes, because the disk could not keep up")
    if outcome.first is None:
        click.echo(_good_news(outcome))
        return
    write_difference(outcome.first, outcome.tally.version)
    if traced is not None:
        write_traces(recorded_trace(outcome.first, outcome.became), traced.trace)


def _good_news(outcome: ReplayOutcome) -> str:
    if not outcome.tally.sessions:
        return "no session is in the recording"
    return "every decision that can be read is the same" if outcome.problems else "every decision is the same"
