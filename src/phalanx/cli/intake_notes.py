"""What commands that hold a session on an input say beside their result: warnings about it, and what may surprise."""

from collections.abc import Iterator, Sequence

from phalanx.cli import output
from phalanx.cli.session_input import SessionInput
from phalanx.model.kinds import Document
from phalanx.model.listing import listed
from phalanx.scheduling.shards import notes_on_pools
from phalanx.state.snapshot import Snapshot
from phalanx.store.input_files import notes_on
from phalanx.store.left_out import LeftOut, left_out
from phalanx.store.missing_references import MissingReference


def write_notes(given: SessionInput, snapshot: Snapshot, missing: Sequence[MissingReference]) -> list[str]:
    """Write what was unknown, missing, there twice, skipped or grouped in vain in the input; return the notes among it."""
    for text in _warnings(given):
        output.warning(text)
    return _written(_notes(given, snapshot, missing))


def notes_of(given: SessionInput) -> list[str]:
    """Return all that is to be said about an input."""
    snapshot = given.snapshot()
    rejected = [f"rejected: {text}" for _, text in given.intake.refused]
    return [*rejected, *_notes(given, snapshot, given.intake.missing(snapshot)), *_warnings(given)]


def _warnings(given: SessionInput) -> list[str]:
    return [*given.intake.warnings(), *given.intake.invalid]


def _notes(given: SessionInput, snapshot: Snapshot, missing: Sequence[MissingReference]) -> list[str]:
    return [*given.notes, *notes_on(given.intake, snapshot, missing), *notes_on_pools(snapshot, given.policy)]


def write_absences(given: SessionInput, snapshot: Snapshot, more: Sequence[Document] = (), *, but: str | None = None) -> list[str]:
    """Write and return notes on what the session does without, for a command whose result has no place for it.

    That is what was rejected, and what is left out although somebody expects it here. The result speaks of the gang `but` itself;
    `more` are objects that the snapshot has besides the input.
    """
    rejected = [f"rejected: {text}" for name, text in given.intake.refused if name != f"PodGroup {but}"]
    return _written([*rejected, *_left_out_notes([item for item in left_out(given.intake, snapshot, more) if item.is_ours])])


def _left_out_notes(found: Sequence[LeftOut]) -> Iterator[str]:
    for group in output.left_out_groups(found):
        yield f"left out: {group.counted} ({listed(group.names, output.MOST_LEFT_OUT)}): {group.message}"


def _written(notes: list[str]) -> list[str]:
    for text in notes:
        output.note(text)
    return notes
