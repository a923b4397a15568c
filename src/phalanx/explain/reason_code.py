"""What a gang waits for, as one code for metrics and programs: that of a verdict, that of a filter, or one of a few of our own."""

from phalanx.explain.domain_text import lacks_domain
from phalanx.explain.failed_searches import failed_searches
from phalanx.explain.gang_status import EVICTED, PIPELINED, GangStatus, admission_refusals, gang_status
from phalanx.explain.node_reasons import NO_NODE_FITS
from phalanx.model.task_status import Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError

NO_PODS, OTHER_SCHEDULER, GATED = "NoPods", "OtherScheduler", "Gated"
NOT_ADMITTED, NOT_TRIED, NO_NODES, NO_DOMAIN = "NotAdmitted", "NotTried", "NoNodes", "NoDomain"
OWN_CODES = (NO_PODS, EVICTED, PIPELINED, NO_NODE_FITS, NO_NODES, NO_DOMAIN, OTHER_SCHEDULER, GATED, NOT_ADMITTED, NOT_TRIED)
"""Reason codes of our own; every other one is the code of a verdict or of a filter."""


def reason_code(outcome: Outcome, snapshot: Snapshot) -> str:
    """Return what keeps a gang from having its minimum, the decisive cause; empty when it has it, or has ended."""
    gang, status = outcome.state, gang_status(outcome.state)
    if status.has_minimum:
        return ""
    if status is GangStatus.EVICTED:
        return EVICTED
    if status is GangStatus.PIPELINED and gang.is_pipelined:
        return PIPELINED
    if not gang.tasks:
        refusals = admission_refusals(gang)
        return refusals[0].reason if refusals else NO_PODS
    if not len(snapshot.nodes) and all(verdict.reason == "QueueQuotaExceeded" for verdict in gang.verdicts):
        return NO_NODES
    return _of_searches(outcome, snapshot) or _of_gang(gang)


def _of_searches(outcome: Outcome, snapshot: Snapshot) -> str:
    """Return the code of the first class of tasks that found no node; empty when none was looked for."""
    found = next(iter(failed_searches(outcome, snapshot)), None)
    if found is None:
        return NO_NODE_FITS if any(isinstance(task.error, FitError) for task in outcome.state.tasks) else ""
    return found.decisive.code if found.decisive is not None else NO_NODE_FITS


def _of_gang(gang: GangState) -> str:
    waiting = [state.task for state in gang.tasks if state.status is Status.PENDING]
    if gang.verdicts:
        return gang.verdicts[0].reason
    if any(task.is_foreign for task in waiting):
        return OTHER_SCHEDULER
    if any(task.is_gated for task in waiting):
        return GATED
    if gang.phase in ("", "Pending"):
        return NOT_ADMITTED
    return NO_DOMAIN if lacks_domain(gang) else NOT_TRIED
