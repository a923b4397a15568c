"""`phalanx replay --config` and `--profile`: the recorded work under the recorded configuration and under another one."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from phalanx.cli import output
from phalanx.cli.policy_options import asked_policy
from phalanx.cli.recorded_simulations import RecordedLoad, outcomes, simulations
from phalanx.cli.replay import ReplayOptions
from phalanx.cli.replay_load import read_load
from phalanx.cli.replay_other import DecidedOtherwise, first_otherwise, otherwise_document, write_otherwise
from phalanx.cli.simulate_output import aligned
from phalanx.cli.simulate_run import GARBAGE
from phalanx.config.policies import with_gates
from phalanx.explain.reason_text import counted
from phalanx.recording.moment import Span, time_text
from phalanx.recording.other_outcome import (
    AGREED_SECONDS,
    ComparedGang,
    Distance,
    Totals,
    compared,
    distance,
    totals,
)
from phalanx.recording.replay import policy_of_config
from phalanx.sim.metrics import short_time

MOST_GANGS = 40
NEVER, RAN = "never", "ran"
RECORDED = "recorded configuration"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is shown."""

    found: RecordedLoad
    names: tuple[str, str]
    """Of the recorded configuration and of the other one."""
    rows: list[ComparedGang]
    beside: int
    """Gangs of a simulation that are none of the recording."""
    otherwise: DecidedOtherwise | None = None
    """The first recorded session that the other configuration decides otherwise, if somebody asked for traces."""

    @property
    def totals(self) -> tuple[Totals, Totals, Totals]:
        """As recorded, and in both simulations."""
        return (
            totals(self.rows, lambda row: row.recorded), totals(self.rows, lambda row: row.same),
            totals(self.rows, lambda row: row.other),
        )  # fmt: skip

    @property
    def distance(self) -> Distance:
        """How far the simulation of the recorded configuration is from the recording."""
        return distance(self.rows)


def compare(asked: ReplayOptions) -> bool:
    """Simulate the recorded work twice and show what differs; tell whether nobody interrupted it."""
    gc.set_threshold(*GARBAGE)
    other = asked_policy(asked.config, asked.profile)  # a wrong one is refused before anything is read
    found = read_load(asked)
    config = found.work.config
    assert config is not None, "a recording begins with one"
    names = (config.profile or RECORDED, Path(asked.config).name if asked.config else asked.profile or "")
    policies = (policy_of_config(config), with_gates(other, config.gates))
    results = simulations(found, list(zip(names, policies, strict=True)))
    if len(results) < len(policies):
        output.complain("interrupted before both simulations were over: nothing to compare")
        return False
    same, others = map(outcomes, results)
    rows = compared(found.load.names, found.work.ended, same, others)
    otherwise = first_otherwise(asked.folder, other, config.gates) if asked.verbosity else None
    _write(asked, Comparison(found, names, rows, len(others.keys() - found.load.names.keys()), otherwise))
    return True


# --- output --------------------------------------------------------------------------------------------------------------


def _write(asked: ReplayOptions, found: Comparison) -> None:
    if asked.form == "table":
        output.write_lines(_lines(found))
        if asked.verbosity:
            click.echo()
            write_otherwise(found.otherwise, found.names, int(asked.verbosity))
        return
    more = {}
    if asked.verbosity:
        more["firstDifference"] = otherwise_document(found.otherwise, found.names, int(asked.verbosity))
    output.write_data(_document(found) | more, asked.form)


def _document(found: Comparison) -> dict[str, Any]:  # Any: as JSON has it
    work, (recorded, same, other) = found.found.work, found.totals
    header = work.header
    assert header is not None, "an empty recording is refused"
    return {
        "source": header.source, "version": header.version, "from": time_text(work.begun), "to": time_text(work.ended),
        "seconds": round(found.found.load.seconds, 3), "configurations": {"simulated": found.names[0], "other": found.names[1]},
        "gangs": [row.document() for row in found.rows],
        "totals": {"recorded": recorded.document(), "simulated": same.document(), "other": other.document()},
        "uncertainty": {**found.distance.document(), "text": _uncertainty(found)},
        "notes": [*found.found.load.notes, *_notes(found)],
    }  # fmt: skip


def _lines(found: Comparison) -> Iterator[str]:
    work = found.found.work
    same, other = found.names
    yield f"recorded {Span(work.begun, work.ended)}; simulated for as long under {same} and under {other}"
    yield from ("", *aligned([_header(found), *map(_row, found.rows[:MOST_GANGS])], texts=2))
    if len(found.rows) > MOST_GANGS:
        yield f"and {counted(len(found.rows) - MOST_GANGS, 'more gang')}; -o json has all of them"
    yield from ("", *aligned(_totals(found)))
    yield from (
        "",
        "gangs that never started count with their wait until the end, or until they were deleted",
        _uncertainty(found),
        *_notes(found),
    )


def _header(found: Comparison) -> tuple[str, ...]:
    same, other = found.names
    return "GANG", "QUEUE", "WAIT", f"IN {same}", f"IN {other}", "DIFFERENCE", "EVICTED", f"IN {same}", f"IN {other}"


def _row(row: ComparedGang) -> tuple[str, ...]:
    outcomes = (row.recorded, row.same, row.other)
    waits = [RAN] * 3 if row.ran_before else [short_time(item.wait) if item.has_started else NEVER for item in outcomes]
    return row.name, row.queue, *waits, _signed(row), *(str(item.evicted) for item in outcomes)


def _signed(row: ComparedGang) -> str:
    if abs(row.difference) <= AGREED_SECONDS:
        return "-"
    return f"{'+' if row.difference > 0 else '-'}{short_time(abs(row.difference))}"


def _totals(found: Comparison) -> list[tuple[str, ...]]:
    parts = found.totals
    waits = {
        "mean wait": [part.mean_wait for part in parts], "median wait": [part.median_wait for part in parts],
        "longest wait": [part.longest_wait for part in parts],
    }  # fmt: skip
    counts = {
        "gangs started": [part.started for part in parts], "never started": [part.never_started for part in parts],
        "finished": [part.finished for part in parts], "pods evicted": [part.evictions for part in parts],
        "gangs with evictions": [part.evicted_gangs for part in parts],
    }  # fmt: skip
    return [
        ("", "RECORDED", *found.names), *((name, *map(short_time, row)) for name, row in waits.items()),
        *((name, *(f"{count:,}" for count in row)) for name, row in counts.items()),
    ]  # fmt: skip


def _uncertainty(found: Comparison) -> str:
    """Say how far the simulation of the recorded configuration is from what happened."""
    far, same = found.distance, found.names[0]
    who = "what was recorded" if not found.found.work.is_by_others else "what other schedulers did in the recording"
    if not far.gangs:
        return f"uncertainty: no gang came during the recording, so nothing says how far {same} in a simulation is from {who}"
    worst = f", at most by {short_time(far.largest)} ({far.farthest})" if far.farthest else ""
    evictions = f"{'more' if far.evictions > 0 else 'fewer'}" if far.evictions else ""
    pods = f"{counted(abs(far.evictions), 'pod')} {evictions} evicted" if evictions else "as many pods are evicted"
    starts = f", {counted(far.differing_starts, 'gang')} started in one of them only" if far.differing_starts else ""
    return (
        f"uncertainty: the simulation of {same} differs from {who} by {short_time(far.mean)} of waiting on average{worst}; "
        f"{far.agreeing} of {counted(far.gangs, 'gang')} agree within {AGREED_SECONDS:g}s, {pods}{starts}; "
        "smaller differences between the two simulations say nothing"
    )


def _notes(found: Comparison) -> Iterator[str]:
    if found.found.work.configs > 1:
        yield f"the configuration changed {found.found.work.configs - 1} times in the recording; the first one is simulated"
    if found.found.work.is_by_others:
        yield "evictions in the recording are pods that left a node before their end and came back"
    if found.beside:
        yield f"{counted(found.beside, 'gang')} of single pods in the simulations not shown: no gangs in the recording"
