"""How sessions ask for binds where a binder carries them out: a BindRequest for every pod that gets a node.

A request is assumed as soon as it is sent: the next session sees its pod on the way, before the server has the request. Where the
server refuses one, its gang is not asked for again at once: the next session would decide the same.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

import msgspec

from phalanx.controllers.controller import Create, Delete, Patch
from phalanx.dialects.bind_requests import FAILED_BINDS, bind_request_document, failed_binds_document
from phalanx.errors import ClusterError, Unreachable
from phalanx.kai.bind_orders import bind_orders
from phalanx.model.kinds import BIND_REQUEST, POD, Document, object_key, split_key
from phalanx.model.task import Task, TaskKey
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.port import ClusterPort, Report
from phalanx.scheduling.refusals import Refusals
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot

RequestWrite = Create | Patch | Delete
MOST_REFUSED = 1000


class BindRequester:
    """Sends BindRequests."""

    def __init__(self, port: ClusterPort, cache: SchedulerCache, *, wake: Callable[[], None], report: Report) -> None:
        """`wake` is called when another session is needed, `report` when a request was refused."""
        self._port, self._cache, self._wake, self._report = port, cache, wake, report
        self._refusals = Refusals()

    @property
    def due(self) -> float | None:
        """When the first gang may be asked for that the last session wanted to bind and that rests."""
        return self._refusals.due

    def forget(self) -> None:
        """Know of nothing that was refused: the rights may be others by now."""
        self._refusals = Refusals()

    def start(self, snapshot: Snapshot, decisions: Decisions, asked: Collection[TaskKey]) -> None:
        """Send what a session asks for, of these pods."""
        if len(self._refusals) > MOST_REFUSED:
            self._refusals.keep({*map(self._gang_of, asked)})
        self._refusals.due = None
        due = [key for key in asked if self._refusals.is_due(self._gang_of(key), snapshot.now)]
        for write in request_writes(snapshot, decisions, due):
            if isinstance(write, Create):
                self._cache.assume_request(write.document)
                gang = self._gang_of(TaskKey(object_key(write.document)))
                self._port.send(write, partial(self._answered, write.document, gang))
            else:
                self._port.send(write)

    def _gang_of(self, key: TaskKey) -> str:
        task = self._cache.cluster.state.task(key)
        return key if task is None else task.gang or key

    def _answered(self, document: Document, gang: str, problem: ClusterError | None) -> None:
        found = self._port.view.find(BIND_REQUEST, *split_key(object_key(document)))
        is_as_assumed = self._cache.confirm_request(document, found)
        now = self._port.clock.now
        if self._refusals.until(gang, now) <= now:  # what is refused together counts once
            self._note(gang, problem, now)
        if problem is not None:
            self._report(str(problem))
        if not is_as_assumed:
            self._wake()

    def _note(self, gang: str, problem: ClusterError | None, now: float) -> None:
        if problem is None:
            self._refusals.clear(gang)
        elif not isinstance(problem, Unreachable):
            self._refusals.note(gang, now, at_least=problem.retry_after)


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
