"""The events of a session: pods got a node or are evicted, groups start or waited too long.

Events about groups are recorded only in the dialects that have no conditions to say it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from phalanx.dialects.traits import traits_of
from phalanx.explain.gang_status import has_minimum, is_new
from phalanx.model.gang import Gang
from phalanx.model.task import GangKey
from phalanx.session.decision import Decisions, Eviction
from phalanx.state.gang_state import GangState

SCHEDULED, TIMEOUT = "Scheduled", "ScheduleTimeout"


@dataclass(frozen=True, slots=True)
class GangEvent:
    """An event about a group object."""

    group: Gang
    reason: str
    message: str
    is_warning: bool = False
    gang: GangKey | None = None
    """The gang whose reason to wait it is; it may have several groups."""


def bind_text(key: str, node: str) -> str:
    """Say that a pod got a node."""
    return f"Successfully assigned {key} to {node}"


def eviction_text(eviction: Eviction) -> str:
    """Say by which action a pod is evicted, for which gang, and why."""
    text = f"By {eviction.action} for {eviction.preemptor}" if eviction.preemptor else f"By {eviction.action}"
    return f"{text}: {eviction.message}" if eviction.message else text


def gang_events(decisions: Decisions) -> list[GangEvent]:
    """Return the events of a session, for every group of each gang."""
    states = [outcome.state for outcome in decisions.outcomes if traits_of(outcome.state.gang).records_group_events]
    return [event for state in states for event in _about(state)]


def _about(state: GangState) -> Iterator[GangEvent]:
    verdict = next((verdict for verdict in state.verdicts if verdict.reason == TIMEOUT), None)
    starts = is_new(state) and has_minimum(state)
    for group in state.declared.pieces or (state.declared,):
        if group.has_object and verdict is not None:
            yield GangEvent(group, TIMEOUT, verdict.message, is_warning=True, gang=GangKey(state.key))
        elif group.has_object and starts:
            yield GangEvent(group, SCHEDULED, f"{state.tally.ready} members have a place, {state.declared.min_member} are needed")
