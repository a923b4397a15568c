"""Why a running gang gives nothing to another one, as verdicts whose message follows the name of the gang: ``is not preemptable``.

Actions and plugins refuse victims for the same few reasons; here are those that more than one of them gives.
"""

from collections.abc import Iterable, Mapping

from phalanx.session.amounts import figure_text
from phalanx.state.verdict import Verdict

NOT_PREEMPTABLE = "NotPreemptable"
NOT_LOWER = "NotLowerPriority"
OTHER_QUEUE = "OtherQueue"
SAME_QUEUE = "SameQueue"
NOT_RECLAIMABLE = "QueueNotReclaimable"
WITHIN_SHARE = "QueueWithinShare"
NOT_RUNNING = "NotRunning"


def not_lower(source: str, its: int, mine: int) -> Verdict:
    """Say that the priority of a victim is not lower than that of the preemptor."""
    return Verdict.refuse(source, NOT_LOWER, f"has priority {its}, not lower than {mine}", priority=its, preemptor=mine)


def not_preemptable(source: str) -> Verdict:
    """Say that a victim says of itself that it must not be preempted, or that its priority says so."""
    return Verdict.refuse(source, NOT_PREEMPTABLE, "is not preemptable")


def other_queue(source: str, queue: str) -> Verdict:
    """Say that an action evicts only inside a queue."""
    return Verdict.refuse(source, OTHER_QUEUE, f"is in another queue, {queue}", queue=queue)


def same_queue(source: str, queue: str) -> Verdict:
    """Say that an action evicts only in other queues."""
    return Verdict.refuse(source, SAME_QUEUE, f"is in the same queue, {queue}", queue=queue)


def not_reclaimable(source: str, queue: str) -> Verdict:
    """Say that a queue gives nothing to others."""
    return Verdict.refuse(source, NOT_RECLAIMABLE, f"is in queue {queue}, which is not reclaimable", queue=queue)


def queue_keeps(source: str, queue: str, figures: Mapping[str, Mapping[str, float]], wanted: Iterable[str]) -> Verdict:
    """Say that a queue has nothing beyond what it deserves of what is wanted, by the figures with which the session began."""
    held, deserved = figures.get("allocated", {}), figures.get("deserved", {})
    name = max((name for name in wanted if deserved.get(name)), key=lambda name: held.get(name, 0.0) / deserved[name], default=None)
    if name is None:
        return Verdict.refuse(source, WITHIN_SHARE, f"is in queue {queue}, which has no more than it deserves", queue=queue)
    has, due = (figure_text(name, amounts.get(name, 0.0)) for amounts in (held, deserved))
    text = f"is in queue {queue}, which has {has} of the {due} {name} that it deserves"
    numbers = {"allocated": held.get(name, 0.0), "deserved": deserved[name]}
    return Verdict.refuse(source, WITHIN_SHARE, text, queue=queue, resource=name, **numbers)


def not_running(source: str) -> Verdict:
    """Say that only running pods are victims."""
    return Verdict.refuse(source, NOT_RUNNING, "does not run yet")
