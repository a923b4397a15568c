"""The first session that a replay decides otherwise: both sides of it, and the cluster that it was held on."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from phalanx.cli import output
from phalanx.cli.output import columns
from phalanx.cli.replay_traces import write_parting
from phalanx.cli.streams import escaped
from phalanx.cli.written_file import WrittenFile, first_line
from phalanx.cli.yaml_text import yaml_text
from phalanx.explain.reason_text import counted
from phalanx.model.kinds import POD, object_key
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.recording.decision_record import GATES, Record
from phalanx.recording.moment import time_text
from phalanx.recording.replay import RecordedCluster, ReplayedSession

OPTION = "--snapshot"
MOST_ROWS = 40
NOTHING = "-"
PARTS = {"binds": "bind", "pipelined": "nominate", "evictions": "evict", "gangs": "gang", "plans": "plan"}
"""The parts of a record that are shown row by row, in this order; only differences are shown of the others."""


def write_difference(first: ReplayedSession, version: str) -> None:
    """Show both sides of a session that differs."""
    click.echo(f"session {first.number} at {time_text(first.now)} decides something else:")
    rows = sorted(_rows(first), key=lambda row: row[-1] == "")
    output.write_lines(columns([("", "WHAT", "RECORDED", "DECIDED NOW", ""), *(("", *row) for row in rows[:MOST_ROWS])]))
    if len(rows) > MOST_ROWS:
        click.echo(f"  and {len(rows) - MOST_ROWS} more")
    whole = first.session.whole
    gangs = f"{counted(len(whole.gangs), 'gang')}, {len(whole.active)} of them active"
    click.echo(f"on {counted(len(whole.nodes.nodes), 'node')} with {gangs}")
    write_parting(first)
    click.echo(
        f"'-v 3' shows the traces of both: what the log has of then, and how it is decided now; phalanx {version} traces how it was"
    )
    click.echo(f"'{OPTION} FILE' writes the objects of this session, for 'phalanx schedule -f FILE --step'")


def _rows(first: ReplayedSession) -> Iterator[tuple[str, str, str, str]]:
    for shard in sorted({*first.recorded, *first.decided}):
        then, now = first.recorded.get(shard, {}), first.decided.get(shard, {})
        place = " behind gates" if shard == GATES else f" of shard {shard}" if shard else ""
        for part in (*PARTS, *sorted({*then, *now} - {*PARTS})):
            for name, old, new in _pairs(part, then.get(part), now.get(part)):
                yield f"{name}{place}", _text(old), _text(new), "" if old == new else "differs"


def _pairs(part: str, then: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:  # Any: parts of records
    if part not in PARTS and not isinstance(then or now, Mapping):
        if then != now:
            yield part, then, now
        return
    then, now = then or {}, now or {}
    for key in sorted({*then, *now}):
        yield f"{PARTS.get(part, part)} {key}", then.get(key), now.get(key)


def _text(value: Any) -> str:  # Any: a part of a record
    if value is None:
        return NOTHING
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return " ".join(f"{count} {name}" for name, count in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(text for item in value if (text := _text(item)))
    return str(value)


def sides(first: ReplayedSession) -> dict[str, Any]:  # Any: as JSON has it
    """Return both sides as plain data."""
    return {"recorded": _plain(first.recorded), "decided": _plain(first.decided)}


def _plain(value: Any) -> Any:  # Any: as above
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


def write_snapshot(path: str, first: ReplayedSession, cluster: RecordedCluster) -> None:
    """Write the objects of a session into a file."""
    documents = [*_documents(cluster)]
    line = (
        f"{first_line(OPTION)}: the cluster of session {first.number}; add '--now {time_text(first.now)}' to 'phalanx schedule'.\n"
    )
    text = escaped(line + "".join(f"---\n{yaml_text(document)}" for document in documents))
    WrittenFile(OPTION, Path(path)).write(text)
    output.note(f"{path}: {counted(len(documents), 'object')}")


def _documents(cluster: RecordedCluster) -> Iterator[Record]:
    """Yield the objects as the session saw them: pods that were assumed stand where they were sent."""
    assumed, requests = cluster.cache.assumptions
    for document in cluster.mirror.everything():
        pod = assumed.get(TaskKey(object_key(document))) if document.get("kind") == POD.kind else None
        yield dict(document) if pod is None else _as_assumed(dict(document), pod.status, pod.node, time_text(cluster.now))
    yield from map(dict, requests)


def _as_assumed(document: Record, status: Status, node: str, now: str) -> Record:
    if status is Status.RELEASING:
        return {**document, "metadata": {**document["metadata"], "deletionTimestamp": now}}
    return {**document, "spec": {**document["spec"], "nodeName": node}}


def refuse_snapshot(path: str) -> None:
    """Refuse a path where nothing can be written, before anything is read."""
    WrittenFile(OPTION, Path(path)).refuse()
