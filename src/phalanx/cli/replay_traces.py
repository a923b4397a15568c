"""The traces of both sides of a session that differs, and where they part.

What is decided now is traced as it is decided once more. What was decided then is in the log, in its order, with what became of it;
how it came to that is not, and only the code that decided can trace it. So the place at which both part is looked at with the code
of now: what it says of the node that was chosen then.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from phalanx.cli import output
from phalanx.cli.output import columns
from phalanx.explain.answer import step_document
from phalanx.explain.reason_text import counted
from phalanx.recording.decision_record import Record
from phalanx.recording.decision_steps import DecisionStep, Parting, parting, steps_of
from phalanx.recording.entries import CarriedOut
from phalanx.recording.replay import ReplayedSession
from phalanx.scheduling.shards import decide
from phalanx.session.shard_decisions import together
from phalanx.session.trace import TraceEvent
from phalanx.session.trace_events import NodeScores, NodesFitting, NodesRefused

EVERYTHING = 5
MOST_PAIRS = 20
NOTHING = "-"
SAID = "from the log, in the order of the decisions; how they came about is not in it"
TRACED = "traced while it was decided again"


def both_steps(first: ReplayedSession) -> tuple[list[DecisionStep], list[DecisionStep]]:
    """Return what both sides decided, step by step."""
    whole = first.session.whole
    return steps_of(first.recorded, whole), steps_of(first.decided, whole)


# --- where they part -------------------------------------------------------------------------------------------------------


def write_parting(first: ReplayedSession) -> None:
    """Show the first step at which both sides part, and what differs from there on, gang by gang."""
    found = parting(*both_steps(first))
    if found is None:
        click.echo("both decide the same about each pod, in the same order")
        return
    write_pairs(found, ("RECORDED", "DECIDED NOW"))
    for line in seen_now(first, found):
        click.echo(line)


def write_pairs(found: Parting, titles: tuple[str, str]) -> None:
    """Show what differs from where two sides part, side by side."""
    click.echo(f"they part at step {found.number + 1}, after {counted(found.number, 'step')} that both have:")
    rows = [("", _text(pair.then), _text(pair.now)) for pair in found.pairs[:MOST_PAIRS]]
    output.write_lines(columns([("", *titles), *rows]) if rows else ["  only the order of the steps differs"])
    hidden = len(found.pairs) - len(rows)
    if hidden:
        click.echo(f"  and {hidden:,} more that differ")
    if found.alike:
        click.echo(f"  and {counted(found.alike, 'step')} on both sides")


def parting_document(first: ReplayedSession) -> dict[str, Any] | None:  # Any: as JSON has it
    """Return where both sides part as plain data."""
    found = parting(*both_steps(first))
    if found is None:
        return None
    return {**pairs_document(found, ("recorded", "decided")), "recordedNodeNow": [*seen_now(first, found)]}


def pairs_document(found: Parting, sides: tuple[str, str]) -> dict[str, Any]:  # Any: as above
    """Return what differs from where two sides part as plain data."""
    pairs = [{"gang": pair.gang, sides[0]: _document(pair.then), sides[1]: _document(pair.now)} for pair in found.pairs]
    return {"step": found.number + 1, "differing": pairs, "alike": found.alike}


def _document(step: DecisionStep | None) -> dict[str, str] | None:
    return None if step is None else step.document()


def _text(step: DecisionStep | None) -> str:
    return NOTHING if step is None else step.text


def seen_now(first: ReplayedSession, found: Parting) -> Iterator[str]:
    """Yield what the code of now says of the node that was chosen then, at the first step that differs."""
    then = found.pairs[0].then if found.pairs else None
    if then is None or then.event not in ("bind", "nominate"):
        return
    where = f"node {then.node}, where {then.task} went then, looked at now:"
    if then.node not in first.session.whole.nodes.number_by_name:
        yield f"{where} it is not in the cluster of this session"
        return
    steps = together(decide(first.session.snapshot, first.profile, trace_level=EVERYTHING, traced_gangs=(then.gang,))).trace
    yield f"{where} {_seen(then, [step for step in steps if then.gang in step.gangs])}"


def _seen(then: DecisionStep, steps: Sequence[TraceEvent]) -> str:
    refused = [step.reason for step in steps if isinstance(step, NodesRefused) and then.node in step.nodes]
    if refused:
        return f"refused, {refused[0]}"
    scores = [step for step in steps if isinstance(step, NodeScores)]
    known = next((step for step in scores if then.node in step.scores), None)
    if known is not None:
        return f"it fits; {known.text}"
    if any(isinstance(step, NodesFitting) and step.count for step in steps):
        return f"it fits, and others score better{f'; {scores[0].text}' if scores else ''}"
    return f"no node is looked at for gang {then.gang}"


# --- traces ----------------------------------------------------------------------------------------------------------------


def recorded_trace(first: ReplayedSession, carried_out: Sequence[CarriedOut]) -> list[dict[str, Any]]:  # Any: as JSON has it
    """Return what the log has of a session, in its order: decisions, where gangs stand, and what became of the decisions."""
    steps: list[dict[str, Any]] = [step.document() for step in both_steps(first)[0]]  # Any: as above
    stands = [document for part in first.recorded.values() for document in _stands(part)]
    return [*steps, *stands, *(_carried(entry) for entry in carried_out)]


def _stands(part: Record) -> Iterator[dict[str, Any]]:  # Any: as above
    for gang, (phase, members, refusals) in part.get("gangs", {}).items():
        counts = ", ".join(f"{count} {name}" for name, count in members.items()) or "no members"
        why = f"; refused by {', '.join(refusals)}" if refusals else ""
        yield {"event": "gang", "gang": gang, "text": f"gang {gang} stands at {phase or 'no phase'}: {counts}{why}"}


def _carried(entry: CarriedOut) -> dict[str, Any]:  # Any: as above
    text = f"{entry.what} {entry.pod}{f': {entry.detail}' if entry.detail else ''}"
    return {"event": entry.what, "task": entry.pod, "text": f"carried out: {text}"}


def write_traces(then: Sequence[Mapping[str, Any]], now: Sequence[TraceEvent]) -> None:  # Any: as above
    """Write both traces to stderr, one after the other."""
    output.complain(f"--- recorded: {SAID}")
    for document in then:
        output.complain(f"[log] {document['text']}")
    write_trace_of("decided now", now)


def write_trace_of(name: str, trace: Sequence[TraceEvent]) -> None:
    """Write one trace to stderr, under its name."""
    output.complain(f"--- {name}: {TRACED}")
    for step in trace:
        output.complain(f"[{step.level}] {step.text}")


def traces_document(then: Sequence[Mapping[str, Any]], now: Sequence[TraceEvent]) -> dict[str, Any]:  # Any: as above
    """Return both traces as plain data, with what each of them is."""
    return {
        "recorded": {"source": SAID, "steps": [*then]}, "decided": {"source": TRACED, "steps": [*map(step_document, now)]},
    }  # fmt: skip
