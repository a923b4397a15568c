"""Gangs that run longer than they may: users see it as the condition and the event `Overdue`. They are left running."""

from phalanx.model.duration import age_text
from phalanx.model.gang import OVERDUE, Condition
from phalanx.session.decision import Outcome
from phalanx.state.run_times import RunTimesBook
from phalanx.state.snapshot import Snapshot

REASON = "LongerThanMaximum"


def overdue_condition(outcome: Outcome, snapshot: Snapshot) -> Condition | None:
    """Return the condition of a gang that has run longer than it may; None for all others."""
    key = outcome.state.gang.key
    due = snapshot.overdue.get(key)
    if due is None:
        return None
    times = RunTimesBook(snapshot).of(key)
    text = f"it runs longer than its maximum of {age_text(times.maximum)} ({times.limit})"
    return Condition(OVERDUE, "True", REASON, text, due)
