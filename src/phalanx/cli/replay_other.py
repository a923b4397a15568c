"""`phalanx replay --config` and `--profile` with -v: the first recorded session that the other configuration decides otherwise.

Both decide on the same cluster, as it was recorded: both are traced, and nothing in it follows from an earlier difference.
"""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli.recorded_simulations import recording_of
from phalanx.cli.replay_traces import pairs_document, write_pairs, write_trace_of
from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import with_gates
from phalanx.explain.answer import step_document
from phalanx.recording.decision_record import DecisionRecords, sealed
from phalanx.recording.decision_steps import Parting, parting, steps_of
from phalanx.recording.extender_answers import with_answers
from phalanx.recording.moment import time_text
from phalanx.recording.replay import Replay, ReplayedSession
from phalanx.scheduling.shards import decide
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import together
from phalanx.session.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class DecidedOtherwise:
    """A session that two configurations decide in two ways, on the same cluster."""

    session: ReplayedSession
    other: Profile
    parting: Parting

    def traces(self, level: int) -> tuple[list[TraceEvent], list[TraceEvent]]:
        """Return how each of both comes to its decisions: under the recorded configuration, and under the other one."""
        snapshot = self.session.session.snapshot
        first, second = (
            together(decide(snapshot, profile, trace_level=level)).trace for profile in (self.session.profile, self.other)
        )
        return first, second


def first_otherwise(folder: str, policy: Policy, gates: list[str]) -> DecidedOtherwise | None:
    """Return the first session of a recording that another policy decides otherwise; None if there is none."""
    chosen, player = with_gates(policy, gates), Replay()
    for _, entry in recording_of(folder).entries():
        session = player.enter(entry)
        if session is not None and session.session.parts:
            # No extender is asked: what it would have answered to another configuration is not known.
            other = with_answers(Profile(chosen, catalogue_of(chosen.catalogue)), [])
            if (found := _parting(session, other)) is not None:
                return DecidedOtherwise(session, other, found)
    return None


def _parting(session: ReplayedSession, other: Profile) -> Parting | None:
    snapshot = session.session.snapshot
    record = DecisionRecords().record(sealed(decide(snapshot, other)))
    return parting(steps_of(session.decided, snapshot), steps_of(record, snapshot))


def write_otherwise(found: DecidedOtherwise | None, names: tuple[str, str], level: int) -> None:
    """Show the session, with the traces of both configurations on stderr."""
    if found is None:
        click.echo(f"{names[1]} decides every recorded session as {names[0]} does")
        return
    where = f"session {found.session.number} at {time_text(found.session.now)}"
    click.echo(f"{where} is the first that {names[1]} decides otherwise, on the same cluster:")
    write_pairs(found.parting, names)
    for name, trace in zip(names, found.traces(level), strict=True):
        write_trace_of(name, trace)


def otherwise_document(found: DecidedOtherwise | None, names: tuple[str, str], level: int) -> dict[str, Any] | None:
    """Return the session as plain data, with both traces."""
    if found is None:
        return None
    traces = found.traces(level)
    return {
        "session": found.session.number, "time": time_text(found.session.now),
        "parting": pairs_document(found.parting, ("simulated", "other")),
        "traces": {key: [*map(step_document, trace)] for key, trace in zip(("simulated", "other"), traces, strict=True)},
    }  # fmt: skip
