"""How sessions ask for binds where a binder carries them out: a BindRequest for every pod that gets a node.

A request is assumed as soon as it is sent: the next session sees its pod on the way, before the server has the request.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

import msgspec

from phalanx.controllers.controller import Create, Delete, Patch
from phalanx.dialects.bind_requests import FAILED_BINDS, bind_request_document, failed_binds_document
from phalanx.errors import ClusterError
from phalanx.kai.bind_orders import bind_orders
from phalanx.model.kinds import BIND_REQUEST, POD, Document, object_key, split_key
from phalanx.model.task import Task, TaskKey
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.port import ClusterPort, Report
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot

RequestWrite = Create | Patch | Delete


class BindRequester:
    """Sends BindRequests."""

    def __init__(self, port: ClusterPort, cache: SchedulerCache, *, wake: Callable[[], None], report: Report) -> None:
        """`wake` is called when another session is needed, `report` when a request was refused."""
        self._port, self._cache, self._wake, self._report = port, cache, wake, report

    def start(self, writes: Iterable[RequestWrite]) -> None:
        """Send what a session asks for."""
        for write in writes:
            if isinstance(write, Create):
                self._cache.assume_request(write.document)
                self._port.send(write, partial(self._answered, write.document))
            else:
                self._port.send(write)

    def _answered(self, document: Document, problem: ClusterError | None) -> None:
        found = self._port.view.find(BIND_REQUEST, *split_key(object_key(document)))
        is_as_assumed = self._cache.confirm_request(document, found)
        if problem is not None:
            self._report(str(problem))
        if not is_as_assumed:
            self._wake()


def request_writes(snapshot: Snapshot, decisions: Decisions, asked: Collection[TaskKey] | None = None) -> Iterator[RequestWrite]:
    """Tidy up, then ask for what was decided, or for a part of it; what is refused is left to the next session."""
    for key in snapshot.lost_requests:
        if not _tells_of_round(snapshot, snapshot.bind_requests[key].task):
            yield from _forgotten(snapshot, key)
    for order in bind_orders(snapshot, decisions):
        if asked is None or order.task.key in asked:
            yield from _annotated(order.task, decisions.annotations.get(order.task.key, {}))
            yield Create(bind_request_document(order))


def _tells_of_round(snapshot: Snapshot, key: TaskKey) -> bool:
    """Tell whether a request that failed is why others of its gang are rolled back; it stays until they are."""
    return any(key in snapshot.members_of(gang) for gang in snapshot.failing_rounds)


def _forgotten(snapshot: Snapshot, key: str) -> Iterator[RequestWrite]:
    """Delete a request, after the pod has got what the request knew."""
    task = snapshot.refused.get(snapshot.bind_requests[key].task)
    if task is not None:
        yield from _annotated(task, {FAILED_BINDS: msgspec.json.encode(failed_binds_document(task.failed_binds)).decode()})
    yield Delete(BIND_REQUEST, *split_key(key))


def _annotated(task: Task, texts: Mapping[str, str]) -> Iterator[RequestWrite]:
    if texts:
        yield Patch(POD, task.namespace, task.name, {"metadata": {"annotations": dict(texts)}})
