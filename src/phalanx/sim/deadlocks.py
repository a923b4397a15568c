"""Deadlocks: half-started gangs that hold what others need, and none of which can become whole."""

from typing import Any

from phalanx.sim.recorder import Recorder

LONGEST_START_SECONDS = 300.0
"""A gang that has held something for so long and is not whole is not about to start."""


def deadlocks(recorder: Recorder, end: float, *, is_quiet: bool) -> list[dict[str, Any]]:
    """Return the deadlock at the end, if there is one; in a quiet cluster nothing will free anybody, however short it lasts."""
    least = 0.0 if is_quiet else LONGEST_START_SECONDS
    stuck = {
        record.name: (record.held_since, recorder.held_by_gang.get(key, 0.0))
        for key, record in recorder.gangs.items()
        if record.held_since is not None and record.finished is None and end - record.held_since >= least
    }
    if not stuck:
        return []
    since, holds = max(moment for moment, _ in stuck.values()), sum(amount for _, amount in stuck.values())
    return [{"since": since, "gangs": sorted(stuck), "holds": holds}]
