"""Quarantined gangs: those that no session schedules until somebody mends an object, with what is wrong and what to write.

Only a session can see it: a queue that does not exist, a gang group whose PodGroups contradict each other, fewer pods than the gang
needs, a gang on which the session itself fails. A gang for which nodes lack room is not quarantined. Users see it as the condition
and the event `Quarantined`.
"""

from phalanx.dialects.status import is_finished
from phalanx.dialects.traits import traits_of
from phalanx.explain.domain_text import UNRESOLVED_TIERS
from phalanx.explain.gang_status import has_minimum, is_admitted, is_taken_away, minimum_of
from phalanx.explain.reason_text import counted
from phalanx.explain.short_parts import missing_pods
from phalanx.explain.why import why
from phalanx.kai.podsets import can_be_whole
from phalanx.model.gang import Condition, Gang
from phalanx.session.decision import Outcome
from phalanx.session.isolation import SCHEDULER_FAULT
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

QUARANTINED = "Quarantined"
NO_QUEUE, TOO_FEW, WRONG = "QueueNotFound", "NotEnoughPods", "Invalid"


def quarantine_condition(outcome: Outcome, snapshot: Snapshot) -> Condition | None:
    """Return the condition of a quarantined gang; None for one that takes part, has ended, or has its pods made or deleted now."""
    gang = outcome.state
    if not gang.tasks or is_finished(gang) or has_minimum(gang):
        return None
    for verdict in gang.verdicts:
        if verdict.reason == "QueueNotFound":
            return _because(NO_QUEUE, _no_queue(gang.gang))
        if verdict.reason in ("Invalid", "SeveralSchedulers", *UNRESOLVED_TIERS):
            return _because(WRONG, verdict.message)
        if verdict.reason == SCHEDULER_FAULT:
            return _because(SCHEDULER_FAULT, verdict.message)
    is_short = _is_short(gang) and not is_admitted(gang) and not is_taken_away(gang)
    return _because(TOO_FEW, _too_few(outcome, snapshot)) if is_short else None


def _no_queue(gang: Gang) -> str:
    place = traits_of(gang).queue_field
    if not gang.queue:
        return f"it names no queue; write one in {place}"
    return f"queue {gang.queue!r} does not exist; create it, or write another one in {place}"


def _because(reason: str, message: str) -> Condition:
    return Condition(QUARANTINED, "True", reason, message)


def _is_short(gang: GangState) -> bool:
    """Tell whether pods are missing, of the gang or of a part of it."""
    if traits_of(gang.gang).counts_pod_sets:
        return not can_be_whole(gang)
    return gang.valid < gang.gang.min_member or not gang.roles_are_valid()


def _too_few(outcome: Outcome, snapshot: Snapshot) -> str:
    gang, place = outcome.state, _minimum_field(outcome.state.gang)
    there, minimum = gang.valid, minimum_of(gang)
    if there >= minimum or gang.gang.role_minima:
        return f"{missing_pods(gang) or why(outcome, snapshot)}; create the pods that are missing, or write less in {place}"
    missing = counted(minimum - there, "more pod")
    return f"{there} of {minimum} pods exist; create {missing}, or write {there} in {place}"


def _minimum_field(gang: Gang) -> str:
    traits = traits_of(gang)
    return traits.minimum_field if gang.has_object else traits.minimum_field_of_pods or traits.minimum_field
