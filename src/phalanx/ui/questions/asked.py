"""Questions about gangs and changes: why does it wait and what would start it, who is in line before it, what if."""

from collections.abc import Sequence
from dataclasses import dataclass

from phalanx.errors import SnapshotError
from phalanx.explain.explanation import rejected_group
from phalanx.explain.gang_rows import GangRow, all_rows
from phalanx.explain.gang_status import GangStatus
from phalanx.explain.pending import TRACE_LEVEL, pending_gangs
from phalanx.explain.reason_text import counted
from phalanx.scheduling.shards import decide
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.ui.gated import rows_behind
from phalanx.ui.questions.desk import Desk
from phalanx.ui.views import Json
from phalanx.whatif.answer import what_if
from phalanx.whatif.changes import parse_all
from phalanx.whatif.difference import ABSENT, STARTS, GangDifference, difference

SEARCH_SECONDS = 5.0
ASKED_PER_QUEUE = 3
"""Gangs of each queue that a session is traced for, so that it records the line of the queue: some may stand in none."""


@dataclass(frozen=True, slots=True)
class Explain:
    """Why does a gang wait, and what would start it, as it is or with changes?"""

    gang: str
    changes: tuple[str, ...] = ()
    seconds: float = SEARCH_SECONDS

    def answer(self, desk: Desk) -> Json:
        """Return the explanation of the command line."""
        changes = parse_all(self.changes)
        found = what_if(desk.cluster, self.gang, changes, clock=desk.clock, budget_seconds=self.seconds)
        rejected = desk.refused.get(self.gang)
        explanation = found.explanation if rejected is None else rejected_group(self.gang, rejected)
        if explanation is None:
            raise SnapshotError(f"there is no gang {self.gang}{' once these changes are made' if changes else ''}")
        return {**explanation.document(), **found.document(), "starts": found.trial.starts(self.gang)}


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What would become of all gangs with some changes?"""

    changes: tuple[str, ...]

    def answer(self, desk: Desk) -> Json:
        """Return who would start, and whom it would cost."""
        changes = parse_all(self.changes)
        before, idle = desk.cluster.decide(), desk.cluster.idle_changes(changes)
        with desk.cluster.with_changes(changes):
            found = difference(before, desk.cluster.decide())
        return {
            "if": [change.text for change in changes], "idle": [change.text for change in idle],
            "gangs": [item.document() | {"good": _is_good(item)} for item in found], "text": _summary(found),
        }  # fmt: skip


def _is_good(item: GangDifference) -> bool:
    """Tell whether a gang starts or goes on and loses nothing: whose pods are moved, pays as well."""
    return item.after == STARTS and not item.moved and item.evicted_after <= item.evicted_before


def _summary(found: Sequence[GangDifference]) -> str:
    if not found:
        return "nothing would change for any gang"
    start = sum(item.after == STARTS and item.before != STARTS for item in found)
    gone = sum(item.after == ABSENT for item in found)
    evicted = sum(item.evicted_after > item.evicted_before for item in found)
    moved = sum(item.moved > 0 for item in found)
    wait = sum(item.after not in (STARTS, ABSENT) and item.before == STARTS for item in found)
    parts = [(start, "would start"), (wait, "would wait"), (evicted, "would lose pods"), (moved, "would be moved"),
             (gone, "would not be there")]  # fmt: skip
    return (
        "; ".join(f"{counted(count, 'gang')} {verb}" for count, verb in parts if count)
        or f"{counted(len(found), 'gang')} would change"
    )


@dataclass(frozen=True, slots=True)
class Pending:
    """Who waits, in which order, and by which rule?"""

    def answer(self, desk: Desk) -> Json:
        """Return the line of every queue."""
        snapshot, trial = desk.cluster.snapshot(), desk.cluster.decide()
        rows = all_rows(trial.parts, rows_behind(trial.gated), desk.refused)
        traced = [key for key in _some_of_each_queue(rows) if key in snapshot.gangs]
        parts: list[ShardDecisions] = []
        if traced:  # to trace a session for all gangs takes as long as hundreds of sessions where many are in vain
            parts = decide(snapshot, desk.cluster.profile, trace_level=TRACE_LEVEL, traced_gangs=traced)
        return {"now": snapshot.now, "gangs": [item.document() for item in pending_gangs(parts, rows)]}


def _some_of_each_queue(rows: Sequence[GangRow]) -> list[str]:
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.status in (GangStatus.STARTS, GangStatus.PIPELINED, GangStatus.WAITS, GangStatus.EVICTED):
            names = found.setdefault(row.queue, [])
            if len(names) < ASKED_PER_QUEUE:
                names.append(row.gang)
    return [name for names in found.values() for name in names]
