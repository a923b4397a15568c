"""Where a gang stands after a session: one word and a few counts, for tables and exit codes."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from phalanx.explain.membership import has_minimum, is_finished, is_new, minimum_of
from phalanx.explain.missing_group import missing_groups
from phalanx.explain.why import why
from phalanx.model.status import HOLDING, Status
from phalanx.session.decision import Decisions, Outcome
from phalanx.session.shard_decisions import Part
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot


class Standing(StrEnum):
    """What becomes of a gang."""

    STARTS = "Starts"
    """It gets its minimum in this session."""
    GROWS = "Grows"
    """It had its minimum before and gets more."""
    PROMISED = "Promised"
    """It gets its minimum once others have left."""
    WAITS = "Waits"
    EVICTED = "Evicted"
    """Tasks of it have to go, and the rest is less than its minimum."""
    RUNS = "Runs"
    COMPLETED = "Completed"

    @property
    def has_minimum(self) -> bool:
        """Tell whether the gang has what it needs, or needs nothing any more."""
        return self not in (Standing.PROMISED, Standing.WAITS, Standing.EVICTED)


_ORDER = list(Standing)

Stood = tuple[GangState, Standing]
"""A gang after a session, and where it stands."""


@dataclass(frozen=True, slots=True)
class GangRow:
    """One gang after a session."""

    gang: str
    queue: str
    standing: Standing
    minimum: int
    placed: int
    running: int
    why: str


def gang_rows(snapshot: Snapshot, decisions: Decisions) -> list[GangRow]:
    """Return every gang of the snapshot: those that change first, then those that wait, then the rest; by name inside each."""
    touched = {outcome.state.key for outcome in decisions.outcomes}
    settled = (
        Outcome(GangState(gang, ((task, -1) for task in snapshot.members_of(key).values())), False)
        for key, gang in snapshot.gangs.items()
        if key not in touched
    )
    rows = [_row(outcome, snapshot) for outcome in (*decisions.outcomes, *settled)]
    return sorted(rows, key=_place)


def all_rows(parts: Iterable[Part]) -> list[GangRow]:
    """Return the gangs of several schedulers, in the same order."""
    seen = list(parts)
    rows = [row for part in seen for row in gang_rows(part.snapshot, part.decisions)]
    return sorted([*rows, *_missing_rows(seen[0].snapshot)], key=_place)


def _missing_rows(snapshot: Snapshot) -> list[GangRow]:
    return [GangRow(key, "", Standing.WAITS, 0, 0, 0, text) for key, text in missing_groups(snapshot).items()]


def _place(row: GangRow) -> tuple[int, str]:
    return _ORDER.index(row.standing), row.gang


def _row(outcome: Outcome, snapshot: Snapshot) -> GangRow:
    gang = outcome.state
    return GangRow(
        gang=gang.key, queue=gang.gang.queue, standing=standing_of(gang), minimum=minimum_of(gang),
        placed=gang.tally.total(HOLDING), running=gang.tally.counts[Status.RUNNING], why=why(outcome, snapshot),
    )  # fmt: skip


def standing_of(gang: GangState) -> Standing:
    """Return where the gang stands."""
    if is_finished(gang):
        return Standing.COMPLETED
    if has_minimum(gang):
        gets_more = any(task.status is Status.BINDING and task.task.status is Status.PENDING for task in gang.tasks)
        if not gets_more:
            return Standing.RUNS
        return Standing.STARTS if is_new(gang) else Standing.GROWS
    if gang.tally.pipelined:
        return Standing.PROMISED
    is_evicted = any(task.status is Status.RELEASING and task.task.status is not Status.RELEASING for task in gang.tasks)
    return Standing.EVICTED if is_evicted else Standing.WAITS
