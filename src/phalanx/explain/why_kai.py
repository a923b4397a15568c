"""Why a PodGroup of KAI waits, in one sentence.

KAI admits every job and tries all of them. What keeps one waiting is its queue, its own pods, the nodes, or that there are no
victims. The minima that count are those of its leaves (see `counts_pod_sets` in `dialects/traits.py`).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from phalanx.dialects.kai_status import gated_in, nearly, reasons_of, unmet
from phalanx.dialects.kai_subgroups import SUBGROUP
from phalanx.dialects.traits import traits_of
from phalanx.explain.cause import alike
from phalanx.explain.eviction_clause import no_victims
from phalanx.explain.free_room import too_large
from phalanx.explain.gang_status import has_minimum, is_new, minimum_of
from phalanx.explain.held_back import has_foreign, held_back
from phalanx.explain.missing_places import all_taken
from phalanx.explain.node_causes import node_text, search_of
from phalanx.explain.queue_limits import beyond_limits
from phalanx.explain.queue_refusals import is_cluster_full, refusal
from phalanx.explain.reason_text import counted, gates_text, general_obstacle, part_text, request_text
from phalanx.kai.amounts import NAMES
from phalanx.kai.capacity import readable
from phalanx.kai.podsets import ALIVE, PodSet, can_be_met, can_be_whole, is_whole, pod_sets
from phalanx.model.gang import STALE, TopologyConstraint
from phalanx.model.task_status import READY, Status
from phalanx.session.decision import Outcome
from phalanx.session.isolation import SCHEDULER_FAULT
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError, Verdict

MOST_CAUSES = 2
UNITS = {"cpu": "cpu", "memory": "GB memory", "gpu": "GPUs"}
SEARCHES = ("OverFairShare", "NoVictims", STALE)
"""Verdicts of the actions that evict; all others refuse the job itself."""


def is_told_as_kai(outcome: Outcome) -> bool:
    """Tell whether the sentences about a gang are those of this module: a KAI scheduler decided about it, or it is of KAI."""
    return outcome.was_tried or traits_of(outcome.state.gang).counts_pod_sets


def why_kai(outcome: Outcome, snapshot: Snapshot) -> str:
    """Return the reason why a job, or a part of it, waits; empty when nothing of it does."""
    gang = outcome.state
    if has_minimum(gang):
        return _why_not_more(outcome, snapshot)
    return _left_out(gang) or queue_problem(outcome, snapshot) or _pod_problem(gang, snapshot) or _why_not_at_all(outcome, snapshot)


def _left_out(gang: GangState) -> str:
    """Say why no scheduler looks at a job; empty when one does."""
    for verdict in gang.verdicts:
        if verdict.reason == "BackedOff":
            return f"{verdict.message} (schedulingBackoff 1); give it the label of another pool"
        if verdict.reason == SCHEDULER_FAULT:
            return verdict.message
        if verdict.reason == "NoShard":
            return f"{verdict.message}; give it the label of a pool that has one"
    return ""


def _why_not_more(outcome: Outcome, snapshot: Snapshot) -> str:
    gang = outcome.state
    waiting = gang.tally.counts[Status.PENDING] + gang.tally.pipelined
    if not waiting:
        return ""
    verb, ready, minimum = "starts" if is_new(gang) else "runs", gang.tally.ready, minimum_of(gang)
    share = f"its minimum of {minimum}" if ready == minimum else f"{ready} of {len(gang.tasks)} tasks, its minimum is {minimum}"
    text = "; ".join(_causes(outcome, snapshot)) or "not tried in this session"
    return f"{verb} with {share}; {counted(waiting, 'more task')} {'waits' if waiting == 1 else 'wait'}: {text}"


def _why_not_at_all(outcome: Outcome, snapshot: Snapshot) -> str:
    gang = outcome.state
    evicted = sum(task.is_evicted for task in gang.tasks)
    if evicted:
        return f"{part_text(evicted, gang)} evicted"
    if is_whole(gang):
        return "; ".join(_pipelined(gang))
    if not len(snapshot.nodes):
        return "; ".join(["there are no nodes", *beyond_limits(outcome, snapshot)])
    causes = list(_causes(outcome, snapshot)) or ["not tried in this session"]
    was_tried = any(task.status is Status.PENDING and (task.attempt or task.error) for task in gang.tasks)
    return "; ".join([_fitting(gang), *causes] if was_tried else causes)


# --- queue and pods ------------------------------------------------------------------------------------------------------


def queue_problem(outcome: Outcome, snapshot: Snapshot) -> str:
    """Say what is wrong with the queue of a job; empty when jobs can be in it."""
    return _queue_problem(outcome.state, snapshot) if outcome.was_tried else _no_queue(outcome.state, snapshot)


def _no_queue(gang: GangState, snapshot: Snapshot) -> str:
    """Say that the queue does not exist; empty when it does."""
    name = gang.gang.queue
    if name in snapshot.queues:
        return ""
    return f"queue {name!r} does not exist" if name else "it names no queue"


def _queue_problem(gang: GangState, snapshot: Snapshot) -> str:
    """Say what is wrong with the queue for a scheduler that knows KAI's queues; empty when jobs can be in it."""
    name = gang.gang.queue
    if name not in snapshot.queues or any(verdict.reason == "QueueNotFound" for verdict in gang.verdicts):
        return f"queue {name!r} does not exist; create a Queue of scheduling.run.ai" if name else "it names no queue"
    below = sorted(queue.name for queue in snapshot.queues.values() if queue.parent == name and queue.bounds is not None)
    if below:
        return f"queue {name!r} has queues below it and takes no jobs; use one of them, such as {below[0]!r}"
    return _broken_line(snapshot, name)


def _broken_line(snapshot: Snapshot, name: str) -> str:
    line = [name]
    while parent := snapshot.queues[line[-1]].parent:
        if parent not in snapshot.queues:
            return f"queue {line[-1]!r} names the parent {parent!r}, which does not exist"
        if snapshot.queues[line[-1]].bounds is not None and snapshot.queues[parent].bounds is None:
            return f"queue {line[-1]!r} names the parent {parent!r}, which is no Queue of scheduling.run.ai; create it"
        if parent in line:
            return f"queue {parent!r} is its own ancestor"
        line.append(parent)
    return ""


def _pod_problem(gang: GangState, snapshot: Snapshot) -> str:
    """Say which pods are not there yet; empty when there are enough."""
    if not gang.tasks:
        return f"waiting for pods: {minimum_of(gang)} needed, none exists"
    if can_be_whole(gang) or any(task.is_evicted for task in gang.tasks):
        return ""
    if has_foreign(gang.tasks):
        return "; ".join(held_back(gang, snapshot.surroundings.schedulers))
    short = [leaf for leaf in pod_sets(gang) if not can_be_met(leaf)]
    return f"waiting for pods: {'; '.join([*map(_short_of_pods, short), *islice(strays(gang), MOST_CAUSES)])}"


def _short_of_pods(leaf: PodSet) -> str:
    alive, gated = leaf.count(ALIVE), gated_in(leaf)
    who = "" if leaf.policy is None else f"sub-group {leaf.name}: "
    held = f", {gated} held back by {gates_text(leaf.tasks)}" if gated else ""
    return f"{who}{leaf.minimum} needed, {alive or 'none'} {'exists' if alive <= 1 else 'exist'}{held}"


def strays(gang: GangState) -> Iterator[str]:
    """Name the pods that count for nothing because they are in no leaf of the sub-groups, with what they say."""
    leaves = {leaf.name for leaf in pod_sets(gang)} if gang.tree is not None else set()
    for task in gang.tasks if leaves else ():
        said = task.task.labels.get(SUBGROUP, "")
        if said in leaves or task.status is not Status.PENDING:
            continue
        named = f"names the sub-group {said!r}, which takes no pods" if said else f"has no label {SUBGROUP}"
        yield f"pod {task.task.key} {named}; write one of {', '.join(sorted(leaves))}"


# --- places --------------------------------------------------------------------------------------------------------------


def _causes(outcome: Outcome, snapshot: Snapshot) -> Iterator[str]:
    gang = outcome.state
    places = list(_missing_places(outcome, snapshot))
    yield from places or _no_domain(gang)
    yield from _refusals(gang, snapshot)
    yield from _pipelined(gang)
    yield from held_back(gang, snapshot.surroundings.schedulers)
    yield from islice(strays(gang), MOST_CAUSES)


def _fitting(gang: GangState) -> str:
    """Count how much of the minimum fits, leaf by leaf."""
    leaves = pod_sets(gang)
    fitting = sum(min(_placeable(leaf), leaf.minimum) for leaf in leaves)
    short = [leaf for leaf in leaves if leaf.policy is not None and _placeable(leaf) < leaf.minimum]
    blocked = [leaf for leaf in short if any(isinstance(task.error, FitError) for task in leaf.tasks)]
    parts = ", ".join(f"{leaf.name}: {_placeable(leaf)} of {leaf.minimum}" for leaf in blocked or short)
    return f"{fitting} of {minimum_of(gang)} tasks fit{f' ({parts})' if parts else ''}"


def _placeable(leaf: PodSet) -> int:
    return sum(task.status in READY or nearly(task) for task in leaf.tasks)


def _missing_places(outcome: Outcome, snapshot: Snapshot) -> Iterator[str]:
    waiting = [task for task in outcome.state.tasks if task.status is Status.PENDING]
    failed = alike((task, task.error) for task in waiting if isinstance(task.error, FitError))
    found = [(task, too_large(outcome, task, snapshot) or _obstacle(outcome, task, error, snapshot)) for task, error in failed]
    found += all_taken(outcome, snapshot, wanted_of)
    yield from islice(dict.fromkeys(f"no place for {_asks(task)} ({obstacle})" for task, obstacle in found), MOST_CAUSES)


def _obstacle(outcome: Outcome, task: TaskState, error: FitError, snapshot: Snapshot) -> str:
    general = general_obstacle(error, task.task.shape.volume_claims)
    known = replace(error, counts=reasons_of(task, error))
    return general or node_text(search_of(outcome, task, known, snapshot, wanted_of(outcome.state, task)), outcome.aftermath)


def wanted_of(gang: GangState, task: TaskState) -> int:
    """Count the tasks with the request of this one that wait, as far as the minimum needs them."""
    waiting = sum(other.status is Status.PENDING and other.task.shape is task.task.shape for other in gang.tasks)
    return max(min(waiting, minimum_of(gang) - gang.tally.ready), 1)


def _asks(task: TaskState) -> str:
    shape, share = task.task.shape, task.task.shape.gpu_share
    if share is None:
        return request_text(shape.request)
    part = f"{share.portion:g} of a GPU" if share.portion else f"{share.memory_mib} MiB of a GPU"
    times = f"{share.devices} times " if share.devices > 1 else ""
    return ", ".join([times + part, *([request_text(shape.request)] if len(shape.request) > 1 else [])])


def _no_domain(gang: GangState) -> Iterator[str]:
    """Say which part of the job no domain of its topology has room for; nothing if the job itself was refused."""
    scope = unmet(gang) if all(verdict.reason in SEARCHES for verdict in gang.verdicts) else None
    if scope is not None:
        name, constraint = scope
        scope_text = level_text(constraint) + ("" if constraint.required_level else ", not even the whole,")
        yield f"no {scope_text} has room for all of {f'sub-group {name}' if name else 'it'}"


def level_text(constraint: TopologyConstraint) -> str:
    """Name the domains of a topology that a constraint allows."""
    if constraint.required_level:
        return f"domain of level {constraint.required_level!r} in topology {constraint.topology!r}"
    return f"part of topology {constraint.topology!r}"


def _pipelined(gang: GangState) -> Iterator[str]:
    if gang.tally.pipelined:
        yield f"{part_text(gang.tally.pipelined, gang)} pipelined onto room that leaving pods still hold"


# --- refusals ------------------------------------------------------------------------------------------------------------


def _refusals(gang: GangState, snapshot: Snapshot) -> Iterator[str]:
    known = [verdict for verdict in gang.verdicts if verdict.reason not in SEARCHES and not is_cluster_full(verdict, snapshot)]
    refusals = dict.fromkeys(refusal_text(verdict) or refusal(gang, verdict, snapshot) for verdict in known)
    if refusals:
        yield from refusals
        return
    yield from dict.fromkeys(refusal_text(verdict) for verdict in gang.verdicts if verdict.reason == "OverFairShare")
    searches = [verdict for verdict in gang.verdicts if verdict.reason == "NoVictims"]
    if searches:
        yield no_victims(searches)


def refusal_text(verdict: Verdict) -> str:
    """Say what a verdict of KAI's plugins about a job refuses, with the numbers behind it; empty for others."""
    match verdict.reason:
        case "OverLimit":
            return f"over limit: queue {verdict.numbers['queue']!r} has {_amounts(verdict, 'limit')}"
        case "NonPreemptibleOverQuota" if "quota" in verdict.numbers:
            held = f"queue {verdict.numbers['queue']!r} has {_amounts(verdict, 'quota')}"
            return f"over quota: in jobs that cannot be preempted {held}; a preemptible job may go over it"
        case "OverFairShare":
            figures = f" ({_amounts(verdict, 'fair_share')})" if "resource" in verdict.numbers else ""
            return f"may not reclaim: queue {verdict.numbers['queue']!r} would have more than its fair share{figures}"
    return ""


def _amounts(verdict: Verdict, bound: str) -> str:
    name, numbers = str(verdict.numbers["resource"]), verdict.numbers
    held, most, wanted = (readable(float(numbers[key]), NAMES.index(name)) for key in ("allocated", bound, "requested"))
    return f"{held} of its {bound.replace('_', ' ')} of {most} {UNITS[name]}, {wanted} more wanted"
