"""The times that KAI keeps on a group as annotations: when it last started, and since when it is below its minimum."""

from phalanx.kai.podsets import USING, meets
from phalanx.model.moment import moment_of, moment_text
from phalanx.model.task_status import Status
from phalanx.session.decision import Decisions
from phalanx.state.gang_state import GangState

LAST_START = "kai.scheduler/last-start-timestamp"
STALE_SINCE = "kai.scheduler/stale-podgroup-timestamp"


def last_start(gang: GangState) -> float | None:
    """Return when a gang last started; None when unknown."""
    return moment_of(gang.gang.annotations.get(LAST_START, ""))


def stamp_start(decisions: Decisions, gang: GangState, now: float) -> None:
    """Note that a gang starts now."""
    decisions.stamp(gang.gang.key, LAST_START, moment_text(now))


def stamp_staleness(decisions: Decisions, gang: GangState, now: float) -> float | None:
    """Return since when a gang is stale, or None if it is not; note it when that is new, and strike it when it is over."""
    since = moment_of(gang.gang.annotations.get(STALE_SINCE, ""))
    if not is_stale(gang):
        if STALE_SINCE in gang.gang.annotations:
            decisions.stamp(gang.gang.key, STALE_SINCE, None)
        return None
    if since is None:
        decisions.stamp(gang.gang.key, STALE_SINCE, moment_text(now))
    return now if since is None else since


def is_stale(gang: GangState) -> bool:
    """Tell whether a gang has started and too few leaves have their minimum; a gang that is finishing is not stale."""
    if gang.tally.counts[Status.SUCCEEDED] or not gang.tally.total(USING):
        return False
    return not meets(gang, USING)
