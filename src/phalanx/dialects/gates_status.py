"""What a session means for a gang that pods alone make: there is no object to write on, so it is only told to whoever asks."""

from math import ceil

from phalanx.dialects import native_status
from phalanx.dialects import pod_gangs_status as made_status
from phalanx.dialects.native_status import NOT_YET
from phalanx.dialects.volcano_status import GroupStatus, stale_condition
from phalanx.model.gang import Condition
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState

settled_phase, pod_condition, writes = native_status.settled_phase, native_status.pod_condition, made_status.writes


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session; why the gang waits is left to whoever has the sentence."""
    gang = outcome.state
    waits = () if _has_started(gang) else (Condition(NOT_YET, "True", NOT_YET, since=float(ceil(outcome.now))),)
    return GroupStatus(settled_phase(gang), (*waits, *stale_condition(gang)))


def _has_started(gang: GangState) -> bool:
    return bool(gang.tally.ready) and gang.is_ready
