"""How sessions ask for binds where a binder carries them out: a BindRequest for every pod that gets a node."""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from phalanx.controllers.controller import Create, Delete, Patch, Write
from phalanx.dialects.bind_requests import FAILED_BINDS, bind_request_document, failed_binds_document
from phalanx.kai.bind_orders import bind_orders
from phalanx.model.kinds import BIND_REQUEST, POD, split_key
from phalanx.model.task import Task, TaskKey
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot


def request_writes(snapshot: Snapshot, decisions: Decisions, asked: Collection[TaskKey] | None = None) -> Iterator[Write]:
    """Tidy up, then ask for what was decided, or for a part of it; what is refused is left to the next session."""
    for key in snapshot.lost_requests:
        yield from _forgotten(snapshot, key)
    for order in bind_orders(snapshot, decisions):
        if asked is None or order.task.key in asked:
            yield from _annotated(order.task, decisions.annotations.get(order.task.key, {}))
            yield Create(bind_request_document(order))


def _forgotten(snapshot: Snapshot, key: str) -> Iterator[Write]:
    """Delete a request, after its pod was told what the request knew."""
    task = snapshot.refused.get(snapshot.bind_requests[key].task)
    if task is not None:
        yield from _annotated(task, {FAILED_BINDS: msgspec.json.encode(failed_binds_document(task.failed_binds)).decode()})
    yield Delete(BIND_REQUEST, *split_key(key))


def _annotated(task: Task, texts: Mapping[str, str]) -> Iterator[Write]:
    if texts:
        yield Patch(POD, task.namespace, task.name, {"metadata": {"annotations": dict(texts)}})
