"""What queues refuse, in sentences, for gangs of every dialect.

A queue that may have no less than the whole cluster is not what a gang waits for: then nodes are missing, and the sentence is
about them, though no node was tried.
"""

from collections.abc import Callable, Iterator

from phalanx.explain.cause import Search, largest, remembered
from phalanx.explain.free_room import free_text, oversize
from phalanx.explain.node_causes import node_text, search_of
from phalanx.explain.reason_text import amount_text
from phalanx.explain.untried import closed_nodes, untried_error
from phalanx.kubernetes.attached_volumes import claims_of
from phalanx.model.kinds import split_key
from phalanx.model.storage import VolumeClaim
from phalanx.model.task_status import HOLDING, Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot, Surroundings
from phalanx.state.verdict import Verdict

VOLUME_SLOTS = "attachable-volumes-csi-"
Wanted = Callable[[GangState, TaskState], int]
"""Counts the tasks like this one that the minimum of a gang needs a place for."""


def full_cluster(outcome: Outcome, snapshot: Snapshot, wanted: Wanted) -> Iterator[Search]:
    """Yield a search over all nodes for each resource of which a queue may have all, where that is why a task was not tried."""
    gang = outcome.state
    untried = _untried_task(gang)
    if untried is not None:
        full = {verdict.numbers["resource"]: verdict for verdict in gang.verdicts if is_cluster_full(verdict, snapshot)}
        yield from (_everywhere(outcome, untried, verdict, snapshot, wanted) for verdict in full.values())


def all_taken(outcome: Outcome, snapshot: Snapshot, wanted: Wanted) -> Iterator[tuple[TaskState, str]]:
    """Yield a task that was not tried because the whole cluster is in use, with what is too little of."""
    untried = _untried_task(outcome.state)
    if untried is not None:
        large = too_large(outcome, untried, snapshot)
        for verdict in outcome.state.verdicts:
            if is_cluster_full(verdict, snapshot):
                yield untried, large or _all_taken(outcome, untried, verdict, snapshot, wanted)


def _untried_task(gang: GangState) -> TaskState | None:
    return largest(task for task in gang.tasks if is_blocked(task) and task.error is None)


def _everywhere(outcome: Outcome, task: TaskState, verdict: Verdict, snapshot: Snapshot, wanted: Wanted) -> Search:
    error = untried_error(task.task.shape, str(verdict.numbers["resource"]), snapshot.nodes)
    return search_of(outcome, task, error, snapshot, wanted(outcome.state, task))


def too_large(outcome: Outcome, task: TaskState, snapshot: Snapshot) -> str:
    """Say of which resource no node has as much as the task asks for; empty when some node has."""
    shape = task.task.shape
    return remembered(outcome.aftermath, ("too large", shape), lambda: oversize(shape.request, snapshot))


def is_blocked(task: TaskState) -> bool:
    """Tell whether a task that may be placed found nothing, or was not tried."""
    return task.status is Status.PENDING and not task.task.is_gated and not nearly(task)


def is_cluster_full(verdict: Verdict, snapshot: Snapshot) -> bool:
    """Tell whether a queue has reached a limit that is no less than the whole cluster: then nodes are missing, not quota."""
    name = str(verdict.numbers.get("resource"))
    row = snapshot.space.row_by_name.get(name)
    if verdict.reason != "QueueQuotaExceeded" or row is None or name.startswith(VOLUME_SLOTS):
        return False
    return float(verdict.numbers["limit"]) >= int(snapshot.nodes.allocatable[row].sum())


def nearly(task: TaskState) -> bool:
    """Tell whether a waiting task had a place until the attempt failed for others."""
    return task.status is Status.PENDING and task.attempt in HOLDING


def _no_slots(gang: GangState, verdict: Verdict, snapshot: Snapshot) -> str:
    """Say why no node counts as able to attach the volumes of a driver; a claim that must be bound first comes first."""
    name, world = str(verdict.numbers.get("resource", "")), snapshot.surroundings
    if verdict.reason != "QueueQuotaExceeded" or not name.startswith(VOLUME_SLOTS) or verdict.numbers["limit"]:
        return ""
    claims = (claim for task in gang.tasks if is_blocked(task) for claim in claims_of(task.task.shape, world))
    unbound = next((claim for claim in claims if not claim.volume and not _waits_for_consumer(claim, world)), None)
    first = "" if unbound is None else f"volume claim {split_key(unbound.key)[1]!r} is not bound to a volume yet; "
    where = "no CSINode names that driver" if world.volume_limits else "there are no CSINodes"
    return f"{first}no node attaches volumes of {name.removeprefix(VOLUME_SLOTS)}: {where}"


def _waits_for_consumer(claim: VolumeClaim, world: Surroundings) -> bool:
    found = world.storage_classes.get(claim.storage_class or "")
    return found is not None and found.waits_for_consumer


def refusal(gang: GangState, verdict: Verdict, snapshot: Snapshot) -> str:
    """Say what a verdict refuses, with the numbers behind it."""
    return _no_slots(gang, verdict, snapshot) or queue_refusal(gang, verdict)


def queue_refusal(gang: GangState, verdict: Verdict) -> str:
    """Say what a queue refuses; a verdict with no sentence here keeps its message."""
    numbers = verdict.numbers
    match verdict.reason:
        case "QueueQuotaExceeded" if "resource" in numbers:
            return _quota(gang, verdict)
        case "QueueOverused":
            return f"queue {numbers['queue']!r} has all it deserves, and this gang comes after the others in it"
        case "QueueNotOpen":
            return f"queue {numbers['queue']!r} is {numbers['state']} and takes no new work"
        case "ClusterOverused":
            scarce, factor = numbers["resources"], float(numbers["factor"])
            return f"with what is admitted already it asks for more than {factor:g} times the cluster's {scarce}"
    return verdict.message or verdict.reason


def quota_refusals(gang: GangState, snapshot: Snapshot) -> Iterator[tuple[Verdict, str]]:
    """Yield the verdicts that are not about nodes, each with its sentence; a limit no less than the cluster is about nodes."""
    for verdict in gang.verdicts:
        if not is_cluster_full(verdict, snapshot):
            yield verdict, refusal(gang, verdict, snapshot)


def _quota(gang: GangState, verdict: Verdict) -> str:
    name, taken, limit, wanted = _amounts(verdict)
    bound = verdict.numbers["bound"]
    return f"{_queue_has(gang, verdict)} {taken} of the {limit} {name} {bound}, {wanted} more wanted"


def _all_taken(outcome: Outcome, task: TaskState, verdict: Verdict, snapshot: Snapshot, wanted: Wanted) -> str:
    """Say how much is free of a resource of which a queue may have as much as the cluster has."""
    name, taken, limit, _ = _amounts(verdict)
    if not verdict.numbers["limit"]:
        return f"no node offers {name}"
    search = _everywhere(outcome, task, verdict, snapshot, wanted)
    free = node_text(search, outcome.aftermath) if closed_nodes(search.error) else free_text(search, name)
    return free or f"{_queue_has(outcome.state, verdict)} {taken} of the cluster's {limit} {name}"


def _amounts(verdict: Verdict) -> tuple[str, str, str, str]:
    numbers = verdict.numbers
    name = str(numbers["resource"])
    taken, limit, wanted = (amount_text(name, float(numbers[key])) for key in ("taken", "limit", "wanted"))
    return name, taken, limit, wanted


def _queue_has(gang: GangState, verdict: Verdict) -> str:
    """Say whose amount follows: "then has" where it includes places that the gang nearly had in this session."""
    return f"queue {verdict.numbers['queue']!r} {'then has' if any(map(nearly, gang.tasks)) else 'has'}"
