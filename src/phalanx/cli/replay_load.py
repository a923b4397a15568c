"""`phalanx replay --to`: the work of a recording as a file for `phalanx simulate`."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path

import click

from phalanx.cli import output
from phalanx.cli.recorded_simulations import RecordedLoad, feed, recording_of, refuse_empty
from phalanx.cli.replay import STDOUT, ReplayOptions
from phalanx.cli.streams import escaped
from phalanx.cli.written_file import WrittenFile, first_line
from phalanx.cli.yaml_text import yaml_text
from phalanx.errors import RecordingError
from phalanx.explain.reason_text import counted
from phalanx.recording.load import load_of
from phalanx.recording.moment import Span
from phalanx.recording.observed_work import ObservedWork
from phalanx.sim.metrics import short_time
from phalanx.sim.world import START

OPTION = "--to"


def read_load(asked: ReplayOptions) -> RecordedLoad:
    """Return the load of a recording; what cannot be read of it, and what is a guess in the load, is told."""
    work = ObservedWork()
    feed(recording_of(asked.folder), work.enter)
    work.finish()
    refuse_empty(work, asked.folder)
    load = load_of(work, start=START, assumed=asked.assumed)
    if not load.names:
        raise RecordingError(f"{asked.folder}: no gang is in the recording, which is from {Span(work.begun, work.ended)}")
    for text in load.notes:
        output.note(text)
    return RecordedLoad(work, load)


def write_load(asked: ReplayOptions) -> None:
    """Write the load of a recording into the file that was named."""
    assert asked.to is not None, "somebody asked for it"
    file = WrittenFile(OPTION, Path(asked.to))
    if asked.to != STDOUT:
        file.refuse()
    found = read_load(asked)
    text = escaped("".join(_parts(found)))
    if asked.to == STDOUT:
        click.echo(text, nl=False)
    else:
        file.write(text)
    nodes = found.load.scenario.get("nodes", ())
    events = f" and {counted(len(nodes), 'event')} of nodes" if nodes else ""
    output.note(f"{asked.to}: {counted(len(found.load.names), 'gang')}{events} of {short_time(found.load.seconds)}")


def _parts(found: RecordedLoad) -> Iterator[str]:
    work, load = found.work, found.load
    yield f"{first_line(OPTION)}: the work of a recording from {Span(work.begun, work.ended)}, for 'phalanx simulate'.\n"
    yield f"# With '--until {ceil(load.seconds)}s' it is simulated for as long as it was recorded.\n"
    for note in load.notes:
        yield f"# {note}\n"
    for document in (load.scenario, *load.documents):
        yield f"---\n{yaml_text(document)}"
