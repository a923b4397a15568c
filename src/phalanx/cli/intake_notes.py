"""What commands that hold a session on an input say beside their result: warnings about it, and what may surprise."""

from collections.abc import Sequence

from phalanx.cli import output
from phalanx.scheduling.shards import notes_on_pools
from phalanx.session.policy import Policy
from phalanx.state.snapshot import Snapshot
from phalanx.store.input_files import Intake, notes_on
from phalanx.store.missing_references import MissingReference


def write_notes(intake: Intake, snapshot: Snapshot, policy: Policy, missing: Sequence[MissingReference]) -> list[str]:
    """Write what was unknown, missing, there twice or skipped in the input; return the notes among it."""
    for text in intake.warnings():
        output.warning(text)
    notes = [*notes_on(intake, snapshot, missing), *notes_on_pools(snapshot, policy)]
    for text in notes:
        output.note(text)
    return notes
