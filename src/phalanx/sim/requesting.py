"""How sessions ask for binds where a binder carries them out: a BindRequest for every pod that gets a node."""

from collections.abc import Mapping

import msgspec

from phalanx.core.decision import Decisions
from phalanx.core.snapshot import Snapshot
from phalanx.dialects.binding import FAILED_BINDS, bind_request_document, failed_binds_document
from phalanx.errors import ClusterError
from phalanx.kai.binding import bind_orders
from phalanx.model.kinds import BIND_REQUEST, POD, split_key
from phalanx.model.task import Task
from phalanx.store.memory import MemoryStore


class BindAsking:
    """Writes requests, and removes those that nobody will work off."""

    def __init__(self, store: MemoryStore) -> None:
        """Ask for nothing yet."""
        self._store = store

    def carry_out(self, snapshot: Snapshot, decisions: Decisions) -> None:
        """Tidy up, then ask for what was decided."""
        for key in snapshot.lost_requests:
            self._forget(snapshot, key)
        for order in bind_orders(snapshot, decisions):
            self._annotate(order.task, decisions.annotations.get(order.task.key, {}))
            self._ask(bind_request_document(order))

    def _forget(self, snapshot: Snapshot, key: str) -> None:
        """Delete a request, after its pod was told what the request knew."""
        task = snapshot.refused.get(snapshot.bind_requests[key].task)
        if task is not None:
            self._annotate(task, {FAILED_BINDS: msgspec.json.encode(failed_binds_document(task.failed_binds)).decode()})
        try:
            self._store.delete(BIND_REQUEST, *split_key(key))
        except ClusterError:
            return  # gone already

    def _annotate(self, task: Task, texts: Mapping[str, str]) -> None:
        try:
            if texts:
                self._store.patch(POD, task.namespace, task.name, {"metadata": {"annotations": dict(texts)}})
        except ClusterError:
            return  # gone meanwhile

    def _ask(self, request: Mapping[str, object]) -> None:
        try:
            self._store.create(request)
        except ClusterError:
            return  # an older request of that name is still there: the next session sees what becomes of it
