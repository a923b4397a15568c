"""What the work of gangs came to: what was useful, what was lost, and how much longer a gang took than it had to.

Work is the amount that all tasks of a gang ask for, times the seconds in which the gang had its minimum. An interrupted gang
begins anew, so that its work until then is lost, unless the simulation keeps progress. What goes on at the end is not lost.

The slowdown of a gang is the time from its arrival to its end, as a multiple of the time that it needs; gangs that need less
than ten seconds count as if they needed ten, so that a short wait of a very short gang is not the largest number of all. A
gang that has not ended counts with the least that it can come to: as if it started or went on at the end, and nobody
interrupted it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from phalanx.sim.recorder import GangRecord

BOUND_SECONDS = 10.0
"""A gang needs at least so long, as far as slowdowns are concerned."""


@dataclass(frozen=True, slots=True)
class WorkRule:
    """When a simulation ended, and what an interruption costs."""

    end: float
    keeps_progress: bool


def work_of(record: GangRecord, rule: WorkRule) -> float:
    """Return all the work of a gang: amount times seconds."""
    return record.amount * sum(_lengths(record, rule))


def lost_work_of(record: GangRecord, rule: WorkRule) -> float:
    """Return the work that was restarted: all of it but what led to the end, or still goes on."""
    return 0.0 if rule.keeps_progress else record.amount * sum(_lengths(record, rule)[: -1 if _is_kept(record) else None])


def slowdown_of(record: GangRecord, expected: float | None, rule: WorkRule) -> float:
    """Return the bounded slowdown of a gang; `expected` is how long one that has not ended needs, as far as that is known."""
    kept = _kept_seconds(record, rule)
    if record.finished is not None:
        return _slowdown(record.finished - record.submitted, kept)
    needs = max(kept, expected or 0.0)
    return _slowdown(rule.end + needs - kept - record.submitted, needs)


def _slowdown(seconds: float, needed: float) -> float:
    return max(seconds / max(needed, BOUND_SECONDS), 1.0)


def _kept_seconds(record: GangRecord, rule: WorkRule) -> float:
    """Return how long a gang has worked on what is not lost."""
    lengths = _lengths(record, rule)
    if rule.keeps_progress:
        return sum(lengths)
    return lengths[-1] if lengths and _is_kept(record) else 0.0


def _is_kept(record: GangRecord) -> bool:
    """Tell whether the last time that a gang had its minimum led to its end, or goes on."""
    return record.finished is not None or (bool(record.spans) and record.spans[-1][1] is None)


def _lengths(record: GangRecord, rule: WorkRule) -> Sequence[float]:
    return [(rule.end if to is None else min(to, rule.end)) - since for since, to in record.spans]
