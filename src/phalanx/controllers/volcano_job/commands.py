"""Commands for Jobs: which Job each is for, and what becomes of those whose Job does not exist."""

from collections.abc import Iterator

import msgspec

from phalanx.controllers.controller import Delete, Key, RecordEvent, Result, View, Write
from phalanx.controllers.objects import key_of, meta_of
from phalanx.controllers.volcano_job.job import COMMAND, JOB
from phalanx.dialects.kinds.reader import reader_of
from phalanx.dialects.kinds.volcano import Command, CommandTarget
from phalanx.dialects.reading import read_as
from phalanx.model.kinds import Document
from phalanx.model.moment import moment_of

STRAY_SECONDS = 5.0
"""For so long a command may wait for its Job: watches of two kinds may show the command first."""


def commands_for(view: View, key: Key, uid: str) -> list[Document]:
    """Return the commands for a Job."""
    return [command for command, target in _naming(view, key) if target.uid in (None, "", uid)]


def with_strays(view: View, key: Key, uid: str, result: Result) -> Result:
    """Add to a result the deletion of stray commands, those whose Job is not here, after a while.

    They must not wait for ever: they would act on the next Job of that name.
    """
    strays = [command for command, target in _naming(view, key) if not uid or target.uid not in (None, "", uid)]
    gone = [write for command in strays if _due(command) <= view.now for write in _in_vain(command, key)]
    moments = [moment for moment in (result.again, *map(_due, strays)) if moment is not None and moment > view.now]
    return Result([*result.writes, *gone], again=min(moments, default=result.again))


def _naming(view: View, key: Key) -> Iterator[tuple[Document, CommandTarget]]:
    for command in view.within(COMMAND, key.namespace):
        try:
            target = read_as(command, reader_of(Command)).target
        except msgspec.ValidationError:
            continue
        if target is not None and (target.kind, target.name) == (JOB.kind, key.name):
            yield command, target


def _due(command: Document) -> float:
    return (moment_of(str(meta_of(command).get("creationTimestamp") or "")) or 0.0) + STRAY_SECONDS


def _in_vain(command: Document, key: Key) -> list[Write]:
    text = f"Job {key.name} is not here, or is another one than target.uid says; write a new command for one that is"
    place = key_of(command)
    gone = Delete(COMMAND, place.namespace, place.name, str(meta_of(command).get("uid", "")))
    return [RecordEvent(command, "InvalidCommand", text, is_warning=True), gone]
