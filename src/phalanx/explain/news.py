"""What groups are told by events when a session changes how they stand: that they start, or that their time is up.

Only for the dialects whose groups have no conditions that say it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from phalanx.core.decision import Decisions
from phalanx.core.states import GangState
from phalanx.explain.membership import has_minimum, is_new
from phalanx.model.gang import Gang

TOLD = frozenset({"coscheduling", "koordinator"})
SCHEDULED, TIMEOUT = "Scheduled", "ScheduleTimeout"


@dataclass(frozen=True, slots=True)
class News:
    """An event about a group object."""

    group: Gang
    reason: str
    message: str
    is_warning: bool = False


def news(decisions: Decisions) -> list[News]:
    """Return the events of a session, for every group of each gang."""
    told = [outcome.state for outcome in decisions.outcomes if outcome.state.gang.dialect in TOLD]
    return [item for state in told for item in _about(state)]


def _about(state: GangState) -> Iterator[News]:
    verdict = next((verdict for verdict in state.verdicts if verdict.reason == TIMEOUT), None)
    starts = is_new(state) and has_minimum(state)
    for group in state.declared.pieces or (state.declared,):
        if group.has_object and verdict is not None:
            yield News(group, TIMEOUT, verdict.message, is_warning=True)
        elif group.has_object and starts:
            yield News(group, SCHEDULED, f"{state.tally.ready} members have a place, {state.declared.min_member} are needed")
