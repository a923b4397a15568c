"""The events that KAI's scheduler records about a session, with its reasons and messages."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from phalanx.dialects.kai_status import NOT_READY, is_untouched, job_error, pod_condition
from phalanx.kai.bind_orders import bound_tasks
from phalanx.kai.podsets import USING, can_be_whole, pod_sets
from phalanx.model.kinds import split_key
from phalanx.model.task_status import Status
from phalanx.session.decision import Decisions, Eviction
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot

NORMAL, WARNING = "Normal", "Warning"
STALE_ACTION = "stalegangeviction"


@dataclass(frozen=True, slots=True)
class KaiEvent:
    """An event about a Pod or a PodGroup."""

    kind: str
    key: str
    type: str
    reason: str
    message: str
    annotations: Mapping[str, str] = field(default_factory=dict)


def events(snapshot: Snapshot, decisions: Decisions) -> list[KaiEvent]:
    """Return the events of a session: those of pods that get a node, of evictions, and of groups that wait."""
    bound = sorted(bound_tasks(decisions), key=lambda task: task.task.key)
    found = [_scheduled(task, decisions.binds[task.task.key]) for task in bound]
    found += _evictions(decisions)
    for outcome in sorted(decisions.outcomes, key=lambda outcome: outcome.state.key):
        if outcome.state.gang.dialect == "kai" and not is_untouched(outcome.state):
            found += _about(outcome.state, snapshot.nodes.names, decisions)
    return found


def _scheduled(task: TaskState, node: str) -> KaiEvent:
    key, pool = task.task.key, task.gang.gang.pool
    return KaiEvent("Pod", key, NORMAL, "Scheduled", f"Successfully assigned pod {key} to node {node} at node-pool {pool}")


def _evictions(decisions: Decisions) -> Iterator[KaiEvent]:
    """Yield an event about its group per evicted pod, with how many pods of the group are evicted together."""
    evictions = [eviction for _, eviction in sorted(decisions.evictions.items()) if eviction.task.gang is not None]
    together = Counter(map(_cause, evictions))
    for eviction in evictions:
        annotations = _annotations(eviction, together[_cause(eviction)])
        yield KaiEvent("PodGroup", str(eviction.task.gang), NORMAL, "Evict", eviction.message, annotations)


def _cause(eviction: Eviction) -> tuple[str, str, str]:
    return str(eviction.task.gang), eviction.action, eviction.preemptor


def _annotations(eviction: Eviction, together: int) -> dict[str, str]:
    found = {"evictor-action-type": eviction.action, "num-evicted-pods": str(together)}
    if eviction.preemptor:
        namespace, name = split_key(eviction.preemptor)
        found |= {"evictor-pod-group-namespace": namespace, "evictor-pod-group-name": name}
    return found


def _about(gang: GangState, names: list[str], decisions: Decisions) -> Iterator[KaiEvent]:
    if any(_is_stale_eviction(task, decisions) for task in gang.tasks):
        yield KaiEvent("PodGroup", gang.key, NORMAL, "StaleJob", _stale(gang))
    pipelined = [task for task in gang.tasks if task.status is Status.PIPELINED]
    waiting = [task for task in gang.tasks if task.status is Status.PENDING]
    yield from (_pod_event(task, names, NORMAL) for task in pipelined)
    if waiting and not can_be_whole(gang):
        yield KaiEvent("PodGroup", gang.key, NORMAL, NOT_READY, job_error(gang)[1])
    elif waiting:
        yield from (_pod_event(task, names, WARNING) for task in waiting if not task.task.is_gated)
        yield KaiEvent("PodGroup", gang.key, NORMAL, "Unschedulable", job_error(gang)[1])


def _pod_event(task: TaskState, names: list[str], kind: str) -> KaiEvent:
    condition = pod_condition(task, names)
    return KaiEvent("Pod", task.task.key, kind, condition.reason, condition.message)


def _is_stale_eviction(task: TaskState, decisions: Decisions) -> bool:
    eviction = decisions.evictions.get(task.task.key)
    return eviction is not None and eviction.action == STALE_ACTION


def _stale(gang: GangState) -> str:
    leaves = pod_sets(gang)
    active, minimum = sum(leaf.count(USING) for leaf in leaves), max(gang.gang.min_member, 1)
    short = [leaf for leaf in leaves if leaf.policy is not None and leaf.count(USING) < leaf.minimum]
    parts = [f"subGroup {leaf.name} minMember is {leaf.minimum} and {leaf.count(USING)} pods are active" for leaf in short]
    return ", ".join([f"Job is stale. {active} pods are active, minMember is {minimum}", *parts])
