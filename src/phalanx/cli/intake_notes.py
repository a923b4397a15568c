"""What commands that hold a session on an input say beside their result: warnings about it, and what may surprise."""

from phalanx.cli import output
from phalanx.scheduling.shards import notes_on_pools
from phalanx.session.policy import Policy
from phalanx.state.snapshot import Snapshot
from phalanx.store.input_files import Intake, notes_on


def write_notes(intake: Intake, snapshot: Snapshot, policy: Policy) -> None:
    """Write what was unknown, missing, there twice or skipped in the input."""
    for text in intake.warnings():
        output.warning(text)
    for text in (*notes_on(intake, snapshot, intake.missing(snapshot)), *notes_on_pools(snapshot, policy)):
        output.note(text)
