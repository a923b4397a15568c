"""The rows of the table that `phalanx schedule` shows: one for every gang after a session."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from phalanx.explain.gang_status import GangStatus, gang_status, minimum_of
from phalanx.explain.missing_groups import missing_groups
from phalanx.explain.why import why
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


def all_rows(parts: Iterable[ShardDecisions], gated: Sequence[GangRow] = (), refused: Container[str] = ()) -> list[GangRow]:
    """Return the gangs of several schedulers, in the same order.

    `gated` are those that a session behind our gate looked at; `refused` groups are there, but cannot be read.
    """
    seen, held = list(parts), {row.gang for row in gated}
    rows = [row for part in seen for row in gang_rows(part.snapshot, part.decisions) if row.gang not in held]
    return sorted(
        [*rows, *gated, *(row for row in _missing_rows(part.snapshot for part in seen) if row.gang not in refused)], key=_place
    )


def gated_rows(part: ShardDecisions, gangs: Container[str], gate: str) -> list[GangRow]:
    """Return the gangs that our gate holds back, as a session behind it finds them.

    One that has room starts once the gate is lifted. What others wait for is not the gate, which only keeps them together.
    """
    rows = (row for row in gang_rows(part.snapshot, part.decisions) if row.gang in gangs)
    freed = f"when its scheduling gate {gate!r} is removed"
    return [replace(row, why="; ".join(filter(None, (freed, row.why)))) if row.status.has_minimum else row for row in rows]


def _missing_rows(snapshots: Iterable[Snapshot]) -> list[GangRow]:
    return [GangRow(key, "", GangStatus.WAITS, 0, 0, 0, text) for key, text in missing_groups(*snapshots).items()]


def _place(row: GangRow) -> tuple[int, str]:
    return _ORDER.index(row.status), row.gang


def _row(outcome: Outcome, snapshot: Snapshot) -> GangRow:
    gang = outcome.state
    return GangRow(
        gang=gang.key, queue=gang.gang.queue, status=gang_status(gang), minimum=minimum_of(gang),
        placed=gang.tally.total(HOLDING), running=gang.tally.counts[Status.RUNNING], why=why(outcome, snapshot),
    )  # fmt: skip
