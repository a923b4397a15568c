"""What the work of gangs came to: what was useful, what was lost, and how much longer a gang took than it had to.

Work is the amount that all tasks of a gang ask for, times the seconds in which the gang had its minimum. An interrupted gang
goes on where it last saved its work, and what it did since is lost: all of it if it saves nothing, none if the simulation keeps
progress. What goes on at the end is not lost.

The slowdown of a gang is the time from its arrival to its end, as a multiple of the time that it needs; gangs that need less
than ten seconds count as if they needed ten, so that a short wait of a very short gang is not the largest number of all. A
gang that has not ended counts with the least that it can come to: as if it started or went on at the end, and nobody
interrupted it again.
"""

from collections.abc import Sequence

from phalanx.sim.recorder import GangRecord

BOUND_SECONDS = 10.0
"""A gang needs at least so long, as far as slowdowns are concerned."""


def work_of(record: GangRecord, end: float) -> float:
    """Return all the work of a gang until the simulation ended: amount times seconds."""
    return record.amount * sum(_lengths(record, end))


def lost_work_of(record: GangRecord, end: float) -> float:
    """Return the work that was restarted: all of it but what was saved, led to the end of the gang, or still goes on."""
    lengths = _lengths(record, end)
    return record.amount * sum(length - kept for length, kept in zip(lengths, _kept(record, lengths), strict=True))


def slowdown_of(record: GangRecord, expected: float | None, end: float) -> float:
    """Return the bounded slowdown of a gang; `expected` is how long one that has not ended needs, as far as that is known."""
    kept = sum(_kept(record, _lengths(record, end)))
    if record.finished is not None:
        return _slowdown(record.finished - record.submitted, kept)
    needs = max(kept, expected or 0.0)
    return _slowdown(end + needs - kept - record.submitted, needs)


def _slowdown(seconds: float, needed: float) -> float:
    return max(seconds / max(needed, BOUND_SECONDS), 1.0)


def _kept(record: GangRecord, lengths: Sequence[float]) -> Sequence[float]:
    """Return for how long a gang worked on what is not lost, for each time that it had its minimum."""
    kept = [min(seconds, length) for seconds, length in zip(record.kept, lengths, strict=True)]
    is_last_kept = record.finished is not None or (bool(record.spans) and record.spans[-1][1] is None)
    return [*kept[:-1], *lengths[-1:]] if is_last_kept else kept


def _lengths(record: GangRecord, end: float) -> Sequence[float]:
    return [(end if to is None else min(to, end)) - since for since, to in record.spans]
