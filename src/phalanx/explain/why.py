"""Why a gang waits, in a sentence a person understands. Reads verdicts; computes nothing anew."""

from phalanx.core.decision import Outcome
from phalanx.core.states import GangState, TaskState
from phalanx.core.verdict import FitError
from phalanx.dialects.volcano_status import placeable
from phalanx.model.resources import PODS, Resources, readable
from phalanx.model.status import Status


def why(outcome: Outcome) -> str:
    """Return the reason why a gang waits; empty when it does not."""
    gang = outcome.state
    if not _waits(gang):
        return ""
    reasons = list(dict.fromkeys(verdict.message for verdict in gang.verdicts if verdict.message))
    blocked = next((task for task in gang.tasks if task.error is not None and task.status is Status.PENDING), None)
    if blocked is not None:
        reasons.insert(0, _no_node(gang, blocked))
    if not reasons:
        reasons.append(_default_reason(gang))
    return "; ".join(reasons)


def _waits(gang: GangState) -> bool:
    return bool(gang.tally.counts[Status.PENDING] or gang.tally.counts[Status.PIPELINED]) or not gang.tasks


def _default_reason(gang: GangState) -> str:
    if not gang.tasks:
        return f"no pods yet; {gang.gang.min_member} are needed"
    promised, gated = gang.tally.waiting, sum(task.task.is_gated for task in gang.tasks)
    if promised:
        return f"{promised} of {len(gang.tasks)} tasks are promised room that running pods are giving back"
    if gated:
        return f"{gated} of {len(gang.tasks)} tasks are held back by a scheduling gate"
    if gang.phase == "Pending":
        return "not admitted to its queue yet"
    return f"{gang.tally.ready} of {gang.gang.min_member} tasks have a node; the rest was not tried in this session"


def _no_node(gang: GangState, task: TaskState) -> str:
    minimum = gang.gang.min_member
    fitting = min(placeable(gang), minimum)
    missing = max(minimum - fitting, 1)
    places = "place" if missing == 1 else "places"
    start = f"{fitting} of {minimum} tasks fit" if minimum else "no node for a task"
    return f"{start}; {missing} more {places} for {request_text(task.task.shape.request)} needed{_obstacles(task)}"


def _obstacles(task: TaskState) -> str:
    if not isinstance(task.error, FitError):
        return f" ({task.error})"
    counts = sorted(task.error.counts.items(), key=lambda item: (-item[1], item[0]))
    return f" ({task.error.prefix}{task.error.nodes} nodes: {', '.join(f'{count} {reason}' for reason, count in counts)})"


def request_text(request: Resources) -> str:
    """Write a request as a person would: ``4 cpu, 8Gi memory``."""
    parts = [f"{readable(name, amount)} {name}" for name, amount in request.items() if amount and name != PODS]
    return ", ".join(parts) if parts else "a pod without requests"
