"""What a gang waits for, as one code: for counting. The sentence is in `why.py`."""

from phalanx.explain.summary import Standing
from phalanx.model.status import Status
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import FitError

NO_PODS, EVICTED, PROMISED = "NoPods", "Evicted", "Promised"
NO_NODE_FITS, GATED, NOT_ADMITTED, NOT_TRIED = "NoNodeFits", "Gated", "NotAdmitted", "NotTried"
OWN_CODES = (NO_PODS, EVICTED, PROMISED, NO_NODE_FITS, GATED, NOT_ADMITTED, NOT_TRIED)
"""Besides these, the code of a verdict."""


def cause_of(gang: GangState, standing: Standing) -> str:
    """Return what keeps a gang that stands so from having its minimum; empty when it has it, or has ended."""
    if standing.has_minimum:
        return ""
    if standing is Standing.EVICTED:
        return EVICTED
    if standing is Standing.PROMISED and gang.is_pipelined:
        return PROMISED
    return _cause_of_waiting(gang)


def _cause_of_waiting(gang: GangState) -> str:
    if not gang.tasks:
        return NO_PODS
    if any(isinstance(task.error, FitError) for task in gang.tasks):
        return NO_NODE_FITS
    if gang.verdicts:
        return gang.verdicts[0].reason
    if any(task.task.is_gated and task.status is Status.PENDING for task in gang.tasks):
        return GATED
    return NOT_ADMITTED if gang.phase in ("", "Pending") else NOT_TRIED
