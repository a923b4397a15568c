"""Gangs that take no part until somebody mends something: what is wrong, and what to write, in the words of their dialect.

Only sessions see it: a queue that does not exist, groups of a bundle that contradict each other, fewer pods than the gang needs.
That places are missing is no such thing.
"""

from collections.abc import Mapping
from types import MappingProxyType

from phalanx.dialects import gates, koordinator, kueue, native, yunikorn
from phalanx.explain.membership import has_minimum, is_admitted, is_finished, minimum_of
from phalanx.explain.reason_text import counted
from phalanx.explain.why import missing_pods, why
from phalanx.kai.podsets import can_be_whole
from phalanx.model.gang import Condition
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

SET_ASIDE = "SetAside"
NO_QUEUE, TOO_FEW, WRONG = "QueueNotFound", "NotEnoughPods", "Invalid"
QUEUES: Mapping[str, str] = MappingProxyType({
    "volcano": "spec.queue", "kai": "spec.queue", "native": f"annotation {native.QUEUE}", "yunikorn": f"label {yunikorn.QUEUE}",
    "kueue": f"label {kueue.QUEUE}",
})  # fmt: skip
"""Where a gang names its queue, by dialect; others have none."""
MINIMA: Mapping[str, str] = MappingProxyType({
    "volcano": "spec.minMember", "kai": "spec.minMember", "coscheduling": "spec.minMember", "koordinator": "spec.minMember",
    "native": "spec.schedulingPolicy.gang.minCount", "yunikorn": f"annotation {yunikorn.TASK_GROUPS}",
    "kueue": f"annotation {kueue.TOTAL_COUNT}", "gates": f"annotation {gates.MIN_MEMBER}",
})  # fmt: skip
"""Where it says how many pods start together."""


def aside(outcome: Outcome, snapshot: Snapshot) -> Condition | None:
    """Return the condition of a gang that is set aside; None for one that takes part, is over, or has its pods made now."""
    gang = outcome.state
    if not gang.tasks or is_finished(gang) or has_minimum(gang):
        return None
    for verdict in gang.verdicts:
        if verdict.reason == "QueueNotFound":
            return _because(NO_QUEUE, f"{why(outcome, snapshot)}; create it, or write another one in {_queue_place(gang)}")
        if verdict.reason in ("Invalid", "SeveralSchedulers"):
            return _because(WRONG, verdict.message)
    is_short = _is_short(gang) and not is_admitted(gang)
    return _because(TOO_FEW, _too_few(outcome, snapshot)) if is_short else None


def _because(reason: str, message: str) -> Condition:
    return Condition(SET_ASIDE, "True", reason, message)


def _queue_place(gang: GangState) -> str:
    return QUEUES.get(gang.gang.dialect, "its group")


def _is_short(gang: GangState) -> bool:
    """Tell whether pods are missing, of the gang or of a part of it."""
    if gang.gang.dialect == "kai":
        return not can_be_whole(gang)
    return gang.valid < gang.gang.min_member or not gang.roles_are_valid()


def _too_few(outcome: Outcome, snapshot: Snapshot) -> str:
    gang, place = outcome.state, _minimum_place(outcome.state)
    there, minimum = gang.valid, minimum_of(gang)
    if there >= minimum or gang.gang.role_minima:
        return f"{missing_pods(gang) or why(outcome, snapshot)}; create the pods that are missing, or write less in {place}"
    missing = counted(minimum - there, "more pod")
    return f"{there} of {minimum} pods exist; create {missing}, or write {there} in {place}"


def _minimum_place(gang: GangState) -> str:
    if gang.gang.dialect == "koordinator" and not gang.gang.has_object:
        return f"annotation {koordinator.MIN_AVAILABLE}"
    return MINIMA[gang.gang.dialect]
