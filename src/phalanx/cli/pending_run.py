"""What `phalanx pending` does: one traced session, and the lines that it recorded."""

from collections.abc import Sequence
from difflib import get_close_matches

from phalanx.cli import output
from phalanx.cli.intake_notes import write_absences, write_notes
from phalanx.cli.pending import PendingOptions
from phalanx.cli.schedule_run import gated_of
from phalanx.cli.session_input import read_input
from phalanx.errors import SnapshotError
from phalanx.explain.gang_rows import all_rows
from phalanx.explain.pending import TRACE_LEVEL, PendingGang, pending_gangs
from phalanx.live.catalogue import connected
from phalanx.model.duration import age_text
from phalanx.model.listing import listed
from phalanx.scheduling.shards import decide

HEADER = ("QUEUE", "POSITION", "GANG", "STATUS", "AGE", "RULE")
NO_POSITION = "-"


def show(asked: PendingOptions) -> None:
    """Show who waits, and behind whom."""
    given = read_input(asked, asked.files, asked.policy)
    snapshot = given.snapshot()
    _refuse_unknown(asked.queues, [*snapshot.queues, *(gang.queue for gang in snapshot.gangs.values())])
    notes = write_notes(given, snapshot, given.intake.missing(snapshot)) + write_absences(given, snapshot)
    parts = decide(snapshot, connected(given.policy), trace_level=TRACE_LEVEL)
    rows = all_rows(parts, gated_of(given, parts[0]).rows, given.intake.refused_groups)
    found = [item for item in pending_gangs(parts, rows) if _is_asked(item, asked)]
    if asked.form in ("json", "yaml"):
        output.write_data({"gangs": [item.document() for item in found], **({"notes": notes} if notes else {})}, asked.form)
    elif found:
        output.write_lines(output.columns(_table(found, given.now, is_wide=asked.form == "wide")))
    else:
        output.complain("no gang waits")


def _refuse_unknown(queues: Sequence[str], known: Sequence[str]) -> None:
    for name in queues:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {listed(sorted(set(known))) or 'none'}"
            raise SnapshotError(f"there is no queue {name!r}; {hint}")


def _is_asked(item: PendingGang, asked: PendingOptions) -> bool:
    return (not asked.queues or item.row.queue in asked.queues) and (not asked.place or item.row.gang.startswith(f"{asked.place}/"))


def _table(found: Sequence[PendingGang], now: float, *, is_wide: bool) -> list[tuple[str, ...]]:
    rows = [_cells(item, now) for item in found]
    if not is_wide:
        return [HEADER, *rows]
    return [(*HEADER, "WHY"), *((*row, item.row.why) for row, item in zip(rows, found, strict=True))]


def _cells(item: PendingGang, now: float) -> tuple[str, ...]:
    row = item.row
    queue = f"{row.queue} (shard {item.shard})" if item.shard else row.queue
    since = "<unknown>" if item.created is None else age_text(now - item.created)
    rule = f"behind {item.behind}: {item.rule}" if item.behind else ""
    return queue, NO_POSITION if item.position is None else str(item.position), row.gang, row.status.value, since, rule
