"""The status of KAI's PodGroups, pods and queues after a session: conditions with KAI's messages, and sums of resources.

KAI writes the condition only while no pod of the group has a place. Its `reason` here is the code that KAI keeps in `reasons`.
A group that lacks pods gets an event in KAI, not a condition; here it is the same condition with the reason `NotReady`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.dialects.status import (
    GroupStatus,
    GroupWrite,
    PodScheduledCondition,
    condition_document,
    is_finished,
    stale_condition,
)
from phalanx.kai.accounts import KaiAccount, children_of
from phalanx.kai.podsets import ACTIVE, ALIVE, PodSet, can_be_met, can_be_whole, meets, pod_sets
from phalanx.model.gang import Condition, Gang, TopologyConstraint
from phalanx.model.kinds import GROUP_BY_DIALECT
from phalanx.model.queue import Queue
from phalanx.model.resources import CPU, GPU, MEMORY, MIG, PODS, quantity_text
from phalanx.model.task_status import READY, Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import FitError, Verdict, insufficient, lacked_resource

UNSCHEDULABLE = "UnschedulableOnNodePool"
NOT_READY, POD_ERRORS, NO_QUEUE = "NotReady", "PodSchedulingErrors", "QueueDoesNotExist"
NO_NODES = "no nodes with enough resources were found"
UNKNOWN_POD, UNKNOWN_GROUP = "Unable to schedule pod", "Unable to schedule podgroup"

GROUP = GROUP_BY_DIALECT["kai"]
SEPARATOR = ". \n"
JOB_VERDICTS = ("OverLimit", "NonPreemptibleOverQuota", "TopologyNotFound", "LevelNotFound", "BindBackoff")
"""Refusals of a whole job that its condition shows; other verdicts are about searches for victims."""
LEFT_OUT = ("BackedOff", "NoShard")
"""Refusals of jobs that no session looks at."""
UNTOUCHED = LEFT_OUT[0]
"""The refusal that keeps what the last attempt said. A job whose pool no shard takes is told so: nobody else would do it."""
_WORDS = {GPU: "GPUs", CPU: "CPU cores", MEMORY: "memory"}


def group_status(outcome: Outcome, names: list[str]) -> GroupStatus:
    """Return the status after the session; no node is named in it."""
    gang = outcome.state
    condition = _condition(gang)
    return GroupStatus(phase_of(gang), (*((condition,) if condition is not None else ()), *stale_condition(gang)))


def current_phase(gang: GangState) -> str:
    """Return the phase of a group that no session touches; the object has none of its own."""
    return phase_of(gang)


def writes(gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
    """Return the status of the PodGroup; what is about a node pool stands apart, and the next session reads it there."""
    conditions = [condition_document(item) for item in status.conditions if not item.node_pool]
    written = {"phase": status.phase, "conditions": conditions, "schedulingConditions": _attempts(gang, status)}
    return (GroupWrite(GROUP, gang.namespace, gang.name, written),)


def _attempts(gang: Gang, status: GroupStatus) -> list[dict[str, str]]:
    """Return what was said about attempts in each node pool, the latest last; nothing about a group that has started."""
    fresh = [item for item in status.conditions if item.node_pool]
    elsewhere = [item for item in gang.conditions if item.node_pool and item.node_pool not in {new.node_pool for new in fresh}]
    found = [*elsewhere, *fresh] if fresh else []
    return [{**condition_document(item), "transitionID": str(number)} for number, item in enumerate(found, 1)]


def resources_status(account: KaiAccount) -> dict[str, dict[str, str]]:
    """Return `status.resourcesStatus` of a group; what it has none of is left out."""
    parts = {
        "requested": account.requested, "allocated": account.allocated, "allocatedNonPreemptible": account.nonpreemptible,
    }  # fmt: skip
    return {name: {key: quantity_text(key, amounts[key]) for key in sorted(amounts)} for name, amounts in parts.items() if amounts}


def queue_status(queues: Mapping[str, Queue], name: str, account: KaiAccount) -> dict[str, Any]:
    """Return the status of a queue: its sums and the queues below it."""
    below = children_of(queues, name)
    return {**resources_status(account), **({"childQueues": below} if below else {})}


def phase_of(gang: GangState) -> str:
    """Return the phase: whether enough leaves have their minimum, some pods hold a place without it, or none does."""
    if is_finished(gang):
        return "Completed"
    if meets(gang, READY):
        return "Running"
    return "Unknown" if gang.tally.counts[Status.RUNNING] else "Pending"


def _condition(gang: GangState) -> Condition | None:
    if not gang.tally.counts[Status.PENDING] or gang.tally.total(ACTIVE):
        return None
    if is_untouched(gang):
        return gang.gang.latest_attempt
    pool, (reason, message) = gang.gang.pool, job_error(gang)
    prefix = f"Node-Pool '{pool}': " if gang.gang.tries_pool_once else ""
    return Condition(UNSCHEDULABLE, "True", reason, prefix + message, node_pool=pool)


def is_untouched(gang: GangState) -> bool:
    """Tell whether a job keeps the condition that it has."""
    verdict = _job_verdict(gang)
    return verdict is not None and verdict.reason == UNTOUCHED


def job_error(gang: GangState) -> tuple[str, str]:
    """Say why a job waits: a reason code and a sentence."""
    verdict = _job_verdict(gang)
    if verdict is not None and verdict.reason == "QueueNotFound":
        return NO_QUEUE, f"Queue {gang.gang.queue} does not exist"
    if verdict is not None and verdict.reason in LEFT_OUT:
        return verdict.reason, verdict.message
    if not can_be_whole(gang):
        return NOT_READY, _not_ready(gang)
    if verdict is not None:
        return verdict.reason, verdict.message
    # Tasks stand in the order in which their pods changed last, which is another one for each who looks.
    blocked = min((task for task in gang.tasks if _is_blocked(task)), key=lambda task: task.task.key, default=None)
    if blocked is not None:
        return POD_ERRORS, _pod_errors(gang, blocked)
    scope = unmet(gang)
    return POD_ERRORS, _refusal(gang) if scope is None else _topology_error(gang, scope[1])


def _refusal(gang: GangState) -> str:
    """Say why no node was even looked at, such as a queue that has all it may use."""
    refused = min((task for task in gang.tasks if task.refusal is not None), key=lambda task: task.task.key, default=None)
    return UNKNOWN_GROUP if refused is None or refused.refusal is None else refused.refusal.message


def _job_verdict(gang: GangState) -> Verdict | None:
    return next((verdict for verdict in gang.verdicts if verdict.reason in ("QueueNotFound", *LEFT_OUT, *JOB_VERDICTS)), None)


def _not_ready(gang: GangState) -> str:
    text = "Job is not ready for scheduling."
    for leaf in pod_sets(gang):
        alive, gated = leaf.count(ALIVE), gated_in(leaf)
        if can_be_met(leaf):
            continue
        who, stop = ("", "") if leaf.policy is None else (f" for SubGroup {leaf.name}", ".")
        text += f" Waiting for {leaf.minimum} pods{who}, currently {alive} exist, {gated} are gated{stop}"
    return text


def gated_in(leaf: PodSet) -> int:
    """Count the waiting pods of a leaf that a scheduling gate holds back."""
    return sum(task.status is Status.PENDING and task.task.is_gated for task in leaf.tasks)


def _is_blocked(task: TaskState) -> bool:
    return task.status is Status.PENDING and isinstance(task.error, FitError)


def _pod_errors(gang: GangState, blocked: TaskState) -> str:
    leaves = pod_sets(gang)
    leaf = next((leaf for leaf in leaves if blocked in leaf.tasks), leaves[0])
    cause = task_error(blocked)
    if leaf.active >= leaf.minimum or all(each.minimum == 1 for each in leaves):
        return f"Resources were not found for pod {blocked.task.key} due to: {cause}"
    found = fitting(gang)
    if leaf.policy is None:
        needs = f"Resources were found for {found} pods while {leaf.minimum} are required for gang scheduling."
        return f"{needs} Additional pods cannot be scheduled due to: {cause}"
    needs = f"while sub-group {leaf.name} requires {leaf.minimum} pods for gang scheduling."
    return (
        f"Resources were found for {found} pods from all sub-groups {needs} "
        f"Additional pods cannot be scheduled in this sub-group due to: {cause}"
    )


def fitting(gang: GangState) -> int:
    """Count the pods that have a place, or had one until the attempt failed."""
    return sum(task.status in ACTIVE or nearly(task) for task in gang.tasks)


def nearly(task: TaskState) -> bool:
    """Tell whether a waiting pod found a node in the attempt that failed for others."""
    return task.status is Status.PENDING and task.attempt is not None and task.error is None


def task_error(task: TaskState) -> str:
    """Say why no node took a pod, in the form "no nodes …: 3 node(s) didn't have enough resources: GPUs."."""
    error = task.error
    if not isinstance(error, FitError):
        return error or UNKNOWN_POD
    counts = sorted(f"{count} {_reason(reason)}" for reason, count in reasons_of(task, error).items())
    return f"{NO_NODES}: {SEPARATOR.join(counts)}." if counts else NO_NODES


def reasons_of(task: TaskState, error: FitError) -> dict[str, int]:
    """Return how many nodes gave which reason; nodes that gave none had no device with enough left for a part of a GPU."""
    counts = dict(error.counts)
    silent = error.nodes - sum(counts.values())
    if silent > 0 and task.task.shape.gpu_share is not None:
        counts[insufficient(GPU)] = counts.get(insufficient(GPU), 0) + silent
    return counts


def _reason(reason: str) -> str:
    name = lacked_resource(reason)
    if not name:
        return reason
    if name.startswith(MIG):
        return f"node(s) didn't have enough of mig profile: {name}"
    return "node(s) pod number exceeded" if name == PODS else f"node(s) didn't have enough resources: {_WORDS.get(name, name)}"


def unmet(gang: GangState) -> tuple[str, TopologyConstraint] | None:
    """Return the sub-group, or "" for the whole, that no domain of its topology has room for; None without such a constraint."""
    parts = [("", gang.gang.topology), *((policy.name, policy.topology) for policy in gang.gang.subgroups)]
    scopes = [(name, constraint) for name, constraint in parts if constraint is not None and not constraint.is_of_tiers]
    return next((scope for scope in scopes if any(_lacks(leaf) for leaf in _leaves_below(gang, scope[0]))), None)


def _lacks(leaf: PodSet) -> bool:
    return sum(task.status in ACTIVE or nearly(task) for task in leaf.tasks) < leaf.minimum


def _leaves_below(gang: GangState, name: str) -> Iterator[PodSet]:
    parent_of = {policy.name: policy.parent for policy in gang.gang.subgroups}
    for leaf in pod_sets(gang):
        line = [leaf.name]
        while parent := parent_of.get(line[-1], ""):
            line.append(parent)
        if not name or name in line:
            yield leaf


def _topology_error(gang: GangState, constraint: TopologyConstraint) -> str:
    level = constraint.required_level or constraint.preferred_level
    return (
        f"topology {constraint.topology}, requirement {level} couldn't be satisfied for job <{gang.key}>: "
        "not enough resources in the cluster to allocate the job"
    )


def pod_condition(task: TaskState, names: list[str]) -> PodScheduledCondition:
    """Say what became of a pod that is not bound: it is pipelined to a node, or has none."""
    if task.status is Status.PIPELINED:
        message = f"Pod {task.task.key} is nominated for node {names[task.node]} once resources are released"
        return PodScheduledCondition("Pipelined", message)
    if isinstance(task.error, FitError):
        return PodScheduledCondition("Unschedulable", task_error(task))
    return PodScheduledCondition("Unschedulable", job_error(task.gang)[1])
