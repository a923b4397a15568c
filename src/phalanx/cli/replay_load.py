"""`phalanx replay --to`: the work of a recording as a file for `phalanx simulate`."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import click

from phalanx.cli import output
from phalanx.cli.progress import clear_progress, show_progress
from phalanx.cli.replay import STDOUT, ReplayOptions
from phalanx.cli.streams import escaped
from phalanx.cli.yaml_text import yaml_text
from phalanx.errors import ConfigError, RecordingError
from phalanx.explain.reason_text import counted
from phalanx.recording.load import Load, load_of
from phalanx.recording.moment import Span, time_text
from phalanx.recording.observed_work import ObservedWork
from phalanx.recording.reading import Recording
from phalanx.sim.metrics import short_time
from phalanx.sim.world import START

FIRST_LINE = "# written by 'phalanx replay --to'"
"""A file that begins so may be overwritten: it can be written again."""
BETWEEN_LINES = 5_000
"""Entries from one line of progress to the next."""


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """What a recording shows, and the load that is made of it."""

    work: ObservedWork
    load: Load


def read_load(asked: ReplayOptions) -> RecordedLoad:
    """Return the load of a recording; what cannot be read of it, and what is a guess in the load, is told."""
    work, recording = ObservedWork(), Recording(Path(asked.folder), tell=output.note)
    for number, (_, entry) in enumerate(recording.entries()):
        work.enter(entry)
        if number % BETWEEN_LINES == 0:
            _show(f"read {number:,} entries, until {time_text(work.ended)}")
    work.finish()
    _clear()
    if work.header is None:
        raise RecordingError(f"{asked.folder}: the recording is empty: nothing of it can be read, so there is nothing to simulate")
    load = load_of(work, start=START, assumed=asked.assumed)
    if not load.names:
        raise RecordingError(f"{asked.folder}: no gang is in the recording, which is from {Span(work.begun, work.ended)}")
    for text in load.notes:
        output.note(text)
    return RecordedLoad(work, load)


def _show(text: str) -> None:
    import sys

    if sys.stderr.isatty():
        show_progress(text)


def _clear() -> None:
    import sys

    if sys.stderr.isatty():
        clear_progress()


def write_load(asked: ReplayOptions) -> None:
    """Write the load of a recording into the file that was named."""
    assert asked.to is not None, "somebody asked for it"
    path = Path(asked.to)
    if asked.to != STDOUT:
        _refuse_path(path)
    found = read_load(asked)
    text = escaped("".join(_parts(found)))
    if asked.to == STDOUT:
        click.echo(text, nl=False)
    else:
        _write(path, text)
    nodes = found.load.scenario.get("nodes", ())
    events = f" and {counted(len(nodes), 'event')} of nodes" if nodes else ""
    output.note(f"{asked.to}: {counted(len(found.load.names), 'gang')}{events} of {short_time(found.load.seconds)}")


def _refuse_path(path: Path) -> None:
    """Refuse a path where nothing can be written, or something is that only its owner can make again."""
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--to: there is no folder {str(path.parent)!r}; make it first")
    try:
        if path.exists() and path.stat().st_size and not path.read_bytes().startswith(FIRST_LINE.encode()):
            raise ConfigError(f"--to: {path} exists, and was not written by 'phalanx replay'; remove it, or name another file")
    except OSError as problem:
        raise ConfigError(f"--to: {path}: cannot be read: {problem.strerror}") from problem


def _write(path: Path, text: str) -> None:
    """Write a file at once: whoever reads it gets the old one or the new one."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as problem:
        new.unlink(missing_ok=True)
        raise ConfigError(f"--to: {path}: cannot be written: {problem.strerror}") from problem


def _parts(found: RecordedLoad) -> Iterator[str]:
    work, load = found.work, found.load
    yield f"{FIRST_LINE}: the work of a recording from {Span(work.begun, work.ended)}, for 'phalanx simulate'.\n"
    yield f"# With '--until {ceil(load.seconds)}s' it is simulated for as long as it was recorded.\n"
    for note in load.notes:
        yield f"# {note}\n"
    for document in (load.scenario, *load.documents):
        yield f"---\n{yaml_text(document)}"
