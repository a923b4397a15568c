"""Requests to a scheduler extender and its answers, in the JSON of Volcano's extender plugin.

Volcano sends its own structures; here are the fields of them that are about scheduling, under the same names. An extender that
was written for Volcano finds tasks, nodes, jobs and queues where it looks for them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from phalanx.dialects.reading import decode_as
from phalanx.model.queue import Queue
from phalanx.model.resources import CPU, MEMORY, Resources
from phalanx.plugins.extender import Answer, Question
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState


class Reply(msgspec.Struct, rename="camel"):
    """The fields of all answers together."""

    status: str | int | bool | None = None
    code: int = 0
    error_message: str = ""
    node_score: dict[str, float] | None = None
    victims: list[dict[str, Any]] | None = None
    overused: bool = False


def encode(question: Question) -> bytes:
    """Write a question."""
    return msgspec.json.encode(_BODIES[question.verb](question))


def decode(verb: str, body: bytes) -> Answer:
    """Read an answer; one that cannot be read counts as none."""
    try:
        reply = decode_as(body, Reply) if body.strip() else Reply()
    except msgspec.MsgspecError as found:
        return Answer(problem=f"its answer to {verb} cannot be read: {found}")
    if verb == "prioritize" and (reply.error_message or reply.node_score is None):
        return Answer(problem=reply.error_message or "its answer to prioritize has no nodeScore")
    is_text = isinstance(reply.status, str)
    return Answer(
        message=str(reply.status) if is_text else reply.error_message, code=reply.code,
        vote=0 if is_text or reply.status is None else int(reply.status),
        is_true=reply.overused if verb == "queueOverused" else reply.status is True,
        score_by_node=reply.node_score or {},
        victim_uids=frozenset(str(victim.get("UID", "")) for victim in reply.victims or ()),
    )  # fmt: skip


def _resources(amounts: Resources) -> dict[str, Any]:
    scalars = {name: amount for name, amount in amounts.items() if name not in (CPU, MEMORY)}
    return {"MilliCPU": amounts.get(CPU, 0), "Memory": amounts.get(MEMORY, 0), "ScalarResources": scalars}


def _column(session: Session, amounts: NDArray[np.int64], node: int) -> dict[str, Any]:
    names = session.snapshot.space.names
    return _resources({name: int(amount) for name, amount in zip(names, amounts[:, node], strict=True) if amount})


def _task(session: Session, state: TaskState, node: int | None = None) -> dict[str, Any]:
    task, number = state.task, state.node if node is None else node
    request, name = _resources(task.shape.request), session.node_name(number) if number >= 0 else ""
    meta = {"name": task.name, "namespace": task.namespace, "uid": task.uid, "labels": task.labels}
    return {
        "UID": task.uid, "Job": state.gang.key, "Name": task.name, "Namespace": task.namespace, "TaskRole": task.role,
        "Resreq": request, "InitResreq": request, "NodeName": name, "Status": 1 << int(state.status), "Priority": task.priority,
        "Preemptable": task.is_preemptable, "BestEffort": task.is_best_effort,
        "Pod": {"metadata": {**meta, "annotations": task.annotations}},
    }  # fmt: skip


def _node(session: Session, number: int) -> dict[str, Any]:
    node, ledger = session.snapshot.nodes.nodes[number], session.ledger
    meta = {"name": node.name, "labels": node.labels, "annotations": node.annotations}
    return {
        "Name": node.name, "Idle": _column(session, ledger.idle, number), "Used": _column(session, ledger.used, number),
        "Releasing": _column(session, ledger.releasing, number), "Allocatable": _column(session, ledger.allocatable, number),
        "Node": {"metadata": meta, "spec": {"unschedulable": node.is_unschedulable}},
    }  # fmt: skip


def _job(session: Session, state: GangState) -> dict[str, Any]:
    gang = state.gang
    meta = {"name": gang.name, "namespace": gang.namespace, "uid": gang.uid, "annotations": gang.annotations}
    spec = {"minMember": gang.min_member, "queue": gang.queue}
    return {
        "UID": gang.key, "Name": gang.name, "Namespace": gang.namespace, "Queue": gang.queue, "Priority": gang.priority,
        "MinAvailable": gang.min_member, "Tasks": {task.task.uid: _task(session, task) for task in state.tasks},
        "PodGroup": {"metadata": meta, "spec": spec, "status": {"phase": state.phase}},
    }  # fmt: skip


def _queue(queue: Queue) -> dict[str, Any]:
    meta = {"name": queue.name, "uid": queue.uid, "annotations": queue.annotations}
    spec = {"weight": queue.weight, "parent": queue.parent, "priority": queue.priority, "reclaimable": queue.is_reclaimable}
    return {"UID": queue.name, "Name": queue.name, "Weight": queue.weight, "Queue": {"metadata": meta, "spec": spec}}


def _session(question: Question) -> dict[str, Any]:
    session = question.session
    nodes = {name: _node(session, number) for number, name in enumerate(session.snapshot.nodes.names)}
    return {
        "Jobs": {key: _job(session, gang) for key, gang in session.gangs.items()}, "Nodes": nodes,
        "Queues": {name: _queue(queue) for name, queue in session.queues.items()}, "NodeList": list(nodes),
    }  # fmt: skip


def _one_node(question: Question) -> dict[str, Any]:
    assert question.task is not None
    return {"task": _task(question.session, question.task), "node": _node(question.session, question.nodes[0])}


def _many_nodes(question: Question) -> dict[str, Any]:
    assert question.task is not None
    nodes = [_node(question.session, number) for number in question.nodes]
    return {"task": _task(question.session, question.task), "nodes": nodes}


def _victims(question: Question) -> dict[str, Any]:
    assert question.task is not None
    evictees = [_task(question.session, victim) for victim in question.victims]
    return {"evictor": _task(question.session, question.task), "evictees": evictees}


def _one_job(question: Question) -> dict[str, Any]:
    assert question.gang is not None
    return {"job": _job(question.session, question.gang)}


def _one_queue(question: Question) -> dict[str, Any]:
    assert question.queue is not None
    return {"queue": _queue(question.queue)}


def _event(question: Question) -> dict[str, Any]:
    assert question.task is not None
    return {"task": _task(question.session, question.task, question.nodes[0])}


_BODIES: Mapping[str, Any] = {
    "onSessionOpen": _session, "onSessionClose": lambda question: {}, "predicate": _one_node, "prioritize": _many_nodes,
    "preemptable": _victims, "reclaimable": _victims, "queueOverused": _one_queue, "jobEnqueueable": _one_job,
    "jobReady": _one_job, "allocateFunc": _event, "deallocateFunc": _event,
}  # fmt: skip
