"""The gangs that wait, in the order in which sessions take them, each with the rule that puts it behind the one before it.

The order is the one that a traced session recorded (`QueueLine`); nothing is sorted here. Gangs that `allocate` takes come first,
then those that `enqueue` has not admitted yet. A gang that no action takes, because pods of it are missing or held back, has no
position.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from phalanx.explain.gang_order import gang_rule
from phalanx.explain.gang_rows import GangRow
from phalanx.explain.gang_status import GangStatus
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.session.trace_events import GangPlace, QueueLine, QueuesOrdered

TRACE_LEVEL = QueueLine.at_level
"""The level at which a session has to be traced."""
ADMISSION = "enqueue"
NOT_ADMITTED = f"it is admitted, and this gang is not yet ({ADMISSION})"
ASKED_FIRST = f"it comes first where gangs are admitted ({ADMISSION})"


@dataclass(frozen=True, slots=True)
class PendingGang:
    """A gang that waits."""

    row: GangRow
    position: int | None
    """Its place in the line of its queue, from 1 on; None for one that no action takes."""
    behind: str
    """The gang right before it; empty for the first."""
    rule: str
    """What puts that one before it."""
    created: float | None
    shard: str = ""

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        row = self.row
        return {
            "queue": row.queue, "shard": self.shard, "position": self.position, "gang": row.gang, "status": row.status.value,
            "created": None if self.created is None else moment_text(int(self.created)), "behind": self.behind, "rule": self.rule,
            "minimum": row.minimum, "placed": row.placed, "running": row.running, "why": row.why,
        }  # fmt: skip


def pending_gangs(parts: Sequence[ShardDecisions], rows: Sequence[GangRow]) -> list[PendingGang]:
    """Return who stands in line, queue by queue as they are served, and then who waits without a position."""
    row_by_gang = {row.gang: row for row in rows}
    in_line = [found for part in parts for found in _in_line(part, row_by_gang)]
    known = {found.row.gang for found in in_line}
    others = [row for row in rows if row.gang not in known and not row.status.has_minimum and row.status is not GangStatus.EMPTY]
    return [*in_line, *(PendingGang(row, None, "", "", _created(parts, row.gang)) for row in others)]


def _in_line(part: ShardDecisions, row_by_gang: Mapping[str, GangRow]) -> Iterator[PendingGang]:
    lines = _lines(part)
    served = [name for event in part.decisions.trace if isinstance(event, QueuesOrdered) for name in event.queues]
    for queue in dict.fromkeys((*served, *sorted(lines))):
        line = [each for each in lines.get(queue, ()) if each.place.gang in row_by_gang]
        for number, (before, each) in enumerate(zip([None, *line], line, strict=False), start=1):
            gang, behind = each.place.gang, "" if before is None else before.place.gang
            rule = "" if before is None else _rule(before, each)
            yield PendingGang(row_by_gang[gang], number, behind, rule, _created([part], gang), part.shard)


class _Stand(NamedTuple):
    """A gang in line, and the action that takes it."""

    place: GangPlace
    action: str


def _rule(before: _Stand, each: _Stand) -> str:
    """Say what puts a gang behind the one before it."""
    if before.action != each.action:
        return NOT_ADMITTED
    ahead = each.place.ahead
    return gang_rule(ahead) if ahead is not None and ahead.gang == before.place.gang else ASKED_FIRST


def _lines(part: ShardDecisions) -> dict[str, list[_Stand]]:
    """Return the line of each queue: who is placed, and then who is only to be admitted."""
    found: dict[str, dict[str, _Stand]] = {}
    events = [event for event in part.decisions.trace if isinstance(event, QueueLine)]
    for event in sorted(events, key=lambda event: event.action == ADMISSION):
        line = found.setdefault(event.queue, {})
        for place in event.line:
            line.setdefault(place.gang, _Stand(place, event.action))
    return {queue: list(line.values()) for queue, line in found.items()}


def _created(parts: Sequence[ShardDecisions], gang: str) -> float | None:
    """Return when a gang was created; None where nothing says so."""
    found = (part.snapshot.gangs[GangKey(gang)].created for part in parts if gang in part.snapshot.gangs)
    return next(found, None) or None
