"""The rows of the table that `phalanx schedule` shows: one for every gang after a session."""

from collections.abc import Iterable
from dataclasses import dataclass

from phalanx.explain.gang_status import GangStatus, gang_status, minimum_of
from phalanx.explain.why import missing_groups, why
from phalanx.model.task_status import HOLDING, Status
from phalanx.session.decision import Decisions, Outcome
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

_ORDER = list(GangStatus)


@dataclass(frozen=True, slots=True)
class GangRow:
    """One gang after a session."""

    gang: str
    queue: str
    status: GangStatus
    minimum: int
    placed: int
    running: int
    why: str


def gang_rows(snapshot: Snapshot, decisions: Decisions) -> list[GangRow]:
    """Return every gang of the snapshot: those that change first, then those that wait, then the rest; by name inside each."""
    touched = {outcome.state.key for outcome in decisions.outcomes}
    untouched = (
        Outcome(GangState(gang, ((task, -1) for task in snapshot.members_of(key).values())), False)
        for key, gang in snapshot.gangs.items()
        if key not in touched
    )
    rows = [_row(outcome, snapshot) for outcome in (*decisions.outcomes, *untouched)]
    return sorted(rows, key=_place)


def all_rows(parts: Iterable[ShardDecisions]) -> list[GangRow]:
    """Return the gangs of several schedulers, in the same order."""
    seen = list(parts)
    rows = [row for part in seen for row in gang_rows(part.snapshot, part.decisions)]
    return sorted([*rows, *_missing_rows(seen[0].snapshot)], key=_place)


def _missing_rows(snapshot: Snapshot) -> list[GangRow]:
    return [GangRow(key, "", GangStatus.WAITS, 0, 0, 0, text) for key, text in missing_groups(snapshot).items()]


def _place(row: GangRow) -> tuple[int, str]:
    return _ORDER.index(row.status), row.gang


def _row(outcome: Outcome, snapshot: Snapshot) -> GangRow:
    gang = outcome.state
    return GangRow(
        gang=gang.key, queue=gang.gang.queue, status=gang_status(gang), minimum=minimum_of(gang),
        placed=gang.tally.total(HOLDING), running=gang.tally.counts[Status.RUNNING], why=why(outcome, snapshot),
    )  # fmt: skip
