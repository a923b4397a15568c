"""The places that a gang still needs, and why no node gives one."""

from collections.abc import Callable, Iterator

from phalanx.dialects.status import placeable
from phalanx.explain.cause import Search, alike, largest, remembered
from phalanx.explain.free_room import free_text, too_large
from phalanx.explain.gang_status import has_minimum, is_blocked
from phalanx.explain.node_causes import node_text, search_of
from phalanx.explain.queue_refusals import MOST_CAUSES, amounts_of, is_cluster_full, queue_has
from phalanx.explain.reason_text import asks_text, counted, general_obstacle
from phalanx.explain.short_parts import placed_by_role
from phalanx.explain.untried import closed_nodes, untried_error
from phalanx.model.resources import Resources
from phalanx.model.task_status import Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError, Verdict

Wanted = Callable[[GangState, TaskState], int]
"""Counts the tasks like this one that the minimum of a gang needs a place for."""


def missing_places(outcome: Outcome, snapshot: Snapshot) -> Iterator[str]:
    """Say how many more places a gang needs for each request, and why no node gives one."""
    gang, obstacles = outcome.state, dict[str, list[tuple[TaskState, str]]]()
    for task, obstacle in without_place(outcome, snapshot):
        if isinstance(task.error, FitError) and general_obstacle(task.error):
            yield obstacle
        else:
            obstacles.setdefault(asks_text(task), []).append((task, obstacle))
    for asks, found in obstacles.items():
        places = counted(_missing(gang, found[0][0].task.shape.request), "more place")
        yield f"{places} for {asks} needed ({'; '.join(obstacle for _, obstacle in found)})"


def without_place(outcome: Outcome, snapshot: Snapshot) -> list[tuple[TaskState, str]]:
    """Return a waiting task of each of the first few kinds that found no place, and the obstacle."""
    blocked = [(task, task.error) for task in outcome.state.tasks if is_blocked(task) and isinstance(task.error, FitError)]
    found = [
        (task, too_large(outcome, task, snapshot) or _obstacle(outcome, task, error, snapshot)) for task, error in alike(blocked)
    ]
    found += all_taken(outcome, snapshot, wanted)
    kinds: dict[tuple[str, str], TaskState] = {}
    for task, obstacle in found:
        kinds.setdefault((asks_text(task), obstacle), task)
    return [(task, obstacle) for (_, obstacle), task in kinds.items()][:MOST_CAUSES]


def _not_tried(gang: GangState, snapshot: Snapshot) -> Iterator[tuple[TaskState, Verdict]]:
    """Yield a task that was not tried because a queue may have no more than all there is, with the last verdict on each resource.

    A large gang has such a verdict for each of its tasks.
    """
    full = {verdict.numbers["resource"]: verdict for verdict in gang.verdicts if is_cluster_full(verdict, snapshot)}
    untried = largest(task for task in gang.tasks if is_blocked(task) and task.error is None) if full else None
    if untried is not None:
        yield from ((untried, verdict) for verdict in full.values())


def full_cluster(outcome: Outcome, snapshot: Snapshot, count: Wanted) -> Iterator[Search]:
    """Yield a search over all nodes for each resource of which a queue may have all, where that is why a task was not tried."""
    for task, verdict in _not_tried(outcome.state, snapshot):
        yield _everywhere(outcome, task, verdict, snapshot, count(outcome.state, task))


def all_taken(outcome: Outcome, snapshot: Snapshot, count: Wanted) -> Iterator[tuple[TaskState, str]]:
    """Yield a task that was not tried because the whole cluster is in use, with what is too little of."""
    for task, verdict in _not_tried(outcome.state, snapshot):
        search = _everywhere(outcome, task, verdict, snapshot, count(outcome.state, task))
        yield task, too_large(outcome, task, snapshot) or _taken_text(outcome, verdict, search)


def _everywhere(outcome: Outcome, task: TaskState, verdict: Verdict, snapshot: Snapshot, tasks: int) -> Search:
    shape, resource = task.task.shape, str(verdict.numbers["resource"])
    key = ("untried", shape, resource)
    error = remembered(outcome.aftermath, key, lambda: untried_error(shape, resource, snapshot.nodes))
    return search_of(outcome, task, error, snapshot, tasks)


def _taken_text(outcome: Outcome, verdict: Verdict, search: Search) -> str:
    """Say how much is free of a resource of which a queue may have as much as the cluster has."""
    name, taken, limit, _ = amounts_of(verdict)
    if not verdict.numbers["limit"]:
        return f"no node offers {name}"
    free = node_text(search, outcome.aftermath) if closed_nodes(search.error) else free_text(search, name)
    return free or f"{queue_has(outcome.state, verdict)} {taken} of the cluster's {limit} {name}"


def _obstacle(outcome: Outcome, task: TaskState, error: FitError, snapshot: Snapshot) -> str:
    """Say what is wrong with the nodes, or with the task itself."""
    general = general_obstacle(error, task.task.shape.volume_claims)
    return general or node_text(search_of(outcome, task, error, snapshot, wanted(outcome.state, task)), outcome.aftermath)


def wanted(gang: GangState, task: TaskState) -> int:
    """Count the tasks with the request of this one that the minimum of the gang needs a place for; 1 once it has its minimum."""
    if has_minimum(gang):
        return 1
    request = task.task.shape.request
    return _missing(gang, request) + sum(other.had_place and other.task.shape.request == request for other in gang.tasks)


def _missing(gang: GangState, request: Resources) -> int:
    """Count the places for such a request that the gang still needs; its tasks may differ in everything else."""
    waiting = (task for task in gang.tasks if task.status is Status.PENDING and not task.had_place)
    alike = [task for task in waiting if task.task.shape.request == request]
    names = {task.task.role for task in alike}
    short = sum(max(needed - have, 0) for role, (have, needed) in placed_by_role(gang).items() if role in names)
    needed = short or (gang.gang.min_member or len(gang.tasks)) - placeable(gang)
    return max(min(len(alike), needed), 1)
