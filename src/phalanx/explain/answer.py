"""The answer of `phalanx schedule`: what a cycle decided, as plain data for JSON, YAML and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import msgspec

from phalanx.dialects.bind_requests import failed_binds_document
from phalanx.dialects.status import GroupStatus, condition_document
from phalanx.dialects.traits import dialect_status
from phalanx.explain.answer_kai import with_kai
from phalanx.explain.gang_rows import GangRow
from phalanx.explain.missing_groups import missing_groups
from phalanx.explain.more_nodes import lacking_nodes, scaling_condition
from phalanx.explain.why import why
from phalanx.model.gang import Condition, Gang
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.session.decision import ClaimGrant, Decisions, Eviction, Outcome
from phalanx.session.shard_decisions import ShardDecisions, together
from phalanx.session.trace import TraceEvent
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot

WAITING = (Status.PENDING, Status.PIPELINED, Status.ALLOCATED)


def answer(snapshot: Snapshot, decisions: Decisions) -> dict[str, Any]:
    """Return the decisions of one cycle and the state they lead to."""
    return whole_answer([ShardDecisions("", snapshot, decisions)])


def whole_answer(parts: Sequence[ShardDecisions]) -> dict[str, Any]:
    """Return what several schedulers decided as one answer; figures of a queue are under ``shard/queue``."""
    decisions = together(parts)
    tasks, groups = zip(*map(_members, parts), strict=True)
    missing = {
        key: {"phase": "Pending", "conditions": [], "why": text}
        for key, text in missing_groups(*(part.snapshot for part in parts)).items()
    }
    found = {
        "binds": dict(sorted(decisions.binds.items())),
        "pipelined": dict(sorted(decisions.pipelined.items())),
        "evictions": {key: _eviction(eviction) for key, eviction in sorted(decisions.evictions.items())},
        "tasks": dict(sorted(item for each in tasks for item in each.items())),
        "groups": dict(sorted(item for each in (*groups, missing) for item in each.items())),
        "claims": {key: _claim(grant) for key, grant in sorted(decisions.claims.items())},
        "queues": {
            name: {kind: dict(amounts) for kind, amounts in figures.items()} for name, figures in sorted(decisions.queues.items())
        },
    }
    if decisions.reservations:
        found["reservations"] = {each.gang: each.document() for each in decisions.reservations}
    return with_kai(found, parts) if decisions.binds_by_request else found


def _members(part: ShardDecisions) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tasks and the groups of one scheduler."""
    snapshot, outcomes = part.snapshot, part.decisions.outcomes
    touched = {outcome.state.key for outcome in outcomes}
    tasks: dict[str, Any] = {}
    groups: dict[str, Any] = {}
    lacking = lacking_nodes(snapshot, part.decisions)
    for outcome in outcomes:
        tasks.update(_touched_tasks(snapshot, outcome, lacking.get(outcome.state.gang.key, frozenset())))
        groups[outcome.state.key] = _touched_group(snapshot, outcome)
    for key, gang in snapshot.gangs.items():
        if key not in touched:
            tasks.update({task.key: _task(task, task.status, task.node) for task in snapshot.members_of(key).values()})
            groups[key] = {"phase": _current_phase(snapshot, gang), "conditions": _conditions(gang.conditions), "why": ""}
    return tasks, groups


def with_refused(found: dict[str, Any], refused: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Add the objects that could not be read, each with the reason; a PodGroup among them is shown as waiting."""
    if not refused:
        return found
    groups = {name.removeprefix("PodGroup "): _refused(text) for name, text in refused if name.startswith("PodGroup ")}
    objects = [{"object": name, "message": text} for name, text in refused]
    return {**found, "groups": dict(sorted({**found["groups"], **groups}.items())), "refused": objects}


def with_plans(found: dict[str, Any], rows: Sequence[GangRow], node_by_pod: Mapping[TaskKey, str]) -> dict[str, Any]:
    """Add what a session behind our gate decided: why its gangs wait, and the nodes that their pods would go to."""
    if not rows:
        return found
    groups = {row.gang: {**found["groups"].get(row.gang, {"phase": "Pending", "conditions": []}), "why": row.why} for row in rows}
    return {**found, "groups": dict(sorted({**found["groups"], **groups}.items())), "plans": dict(sorted(node_by_pod.items()))}


def _refused(text: str) -> dict[str, Any]:
    condition = Condition("Refused", "True", "Invalid", text)
    return {"phase": "Pending", "conditions": [condition_document(condition)], "why": f"refused: {text}"}


def trace(decisions: Decisions) -> list[dict[str, Any]]:
    """Return the recorded trace of the session, step by step."""
    return list(map(step_document, decisions.trace))


def step_document(step: TraceEvent) -> dict[str, Any]:
    """Return one step of a trace."""
    return {"level": step.level, "event": step.event, "text": step.text, **msgspec.to_builtins(step.fields)}


def _eviction(eviction: Eviction) -> dict[str, str]:
    return {"action": eviction.action, "for": eviction.preemptor, "message": eviction.message}


def _claim(grant: ClaimGrant) -> dict[str, Any]:
    """Return the status of a resource claim as the API has it; empty when its devices are free again."""
    if not grant.devices:
        return {}
    return {
        "allocation": {"devices": {"results": [asdict(device) for device in grant.devices]}},
        "reservedFor": [{"resource": "pods", "name": user.name, "uid": user.uid} for user in grant.users],
    }


def _touched_tasks(snapshot: Snapshot, outcome: Outcome, lacking: frozenset[TaskKey]) -> dict[str, Any]:
    names = snapshot.nodes.names
    return {state.task.key: _touched_task(state, names, lacks_nodes=state.task.key in lacking) for state in outcome.state.tasks}


def _touched_task(state: TaskState, names: list[str], *, lacks_nodes: bool) -> dict[str, Any]:
    """Return a task as the session leaves it; one that waits with what its pod's condition will say."""
    entry = _task(state.task, state.status, names[state.node] if state.node >= 0 else state.task.node)
    if state.task.failed_binds:
        entry["failedBinds"] = failed_binds_document(state.task.failed_binds)
    if state.gpu_groups:
        entry["gpuGroups"] = [name for name, _ in state.gpu_groups]
    if state.status in WAITING and not state.task.is_gated and state.gang.gang.marks_pods:
        found = dialect_status(state.gang.gang).pod_condition(state, names)
        condition = scaling_condition(found, state.task, lacks_nodes=lacks_nodes)
        entry |= {"reason": condition.reason, "message": condition.message}
        if condition.nominated_node:
            entry["nominatedNode"] = condition.nominated_node
    return entry


def _task(task: Task, status: Status, node: str) -> dict[str, Any]:
    word = "Gated" if task.is_gated and status is Status.PENDING else status.word
    return {"group": task.gang, "status": word, "node": node or None}


def group_status(snapshot: Snapshot, outcome: Outcome) -> GroupStatus:
    """Return what a session leaves on a group, as its dialect writes it."""
    status = dialect_status(outcome.state.gang).group_status(outcome, snapshot.nodes.names)
    return replace(status, conditions=tuple(_with_reason(item, outcome, snapshot) for item in status.conditions))


def _with_reason(item: Condition, outcome: Outcome, snapshot: Snapshot) -> Condition:
    """Return a condition that says why the group waits; dialects that have no message of their own for it leave it empty."""
    if item.type != "Unschedulable" or item.message or not outcome.says_why:
        return item
    return replace(item, message=why(outcome, snapshot))


def _touched_group(snapshot: Snapshot, outcome: Outcome) -> dict[str, Any]:
    status = group_status(snapshot, outcome)
    written = status.documents.get(outcome.state.declared.key, {})
    phase = written.get("phase", status.phase)  # in the words of its dialect, where these are not those of the model
    return {"phase": phase, "conditions": _conditions(status.conditions), "why": why(outcome, snapshot)}


def _current_phase(snapshot: Snapshot, gang: Gang) -> str:
    members = snapshot.members_of(gang.key).values()
    return dialect_status(gang).current_phase(GangState(gang, ((task, -1) for task in members)))


def _conditions(conditions: tuple[Condition, ...]) -> list[dict[str, str]]:
    return [condition_document(item) for item in conditions]
