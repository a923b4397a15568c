"""Nominations: the nodes on which room is kept for pods, as their statuses name them.

Sessions go by them, so that nobody else takes room that others were evicted for. The next session may be held before the server has
answered, and must see them all the same: a nomination that was sent is assumed, as a bind is, until its answer has come.
"""

from functools import partial

from phalanx.controllers.controller import Patch
from phalanx.errors import ClusterError
from phalanx.model.kinds import POD, split_key
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.port import ClusterPort, Effort
from phalanx.scheduling.refusals import Refusals
from phalanx.session.decision import Decisions
from phalanx.state.gang_state import TaskState
from phalanx.state.snapshot import Snapshot


class Nominator:
    """Writes the nominations of sessions."""

    def __init__(self, port: ClusterPort, cache: SchedulerCache) -> None:
        """Begin with none that was refused."""
        self._port, self._cache = port, cache
        self._refusals = Refusals()

    def write(self, snapshot: Snapshot, decisions: Decisions) -> None:
        """Send what changes."""
        self._refusals.due = None
        for outcome in decisions.outcomes:
            for state in outcome.state.tasks:
                node = _node_of(state, snapshot)
                if node is not None and self._refusals.is_due(state.task.uid, outcome.now):
                    self._send(state.task, node)

    @property
    def due(self) -> float | None:
        """When the first of what the last session held back may be written."""
        return self._refusals.due

    def forget(self) -> None:
        """Know of nothing that was refused: somebody else may have written since."""
        self._refusals = Refusals()

    def _send(self, task: Task, node: str) -> None:
        self._cache.assume(task, Status.PENDING, node)
        patch = Patch(POD, *split_key(task.key), {"status": {"nominatedNodeName": node or None}}, is_status=True)
        self._port.send(patch, partial(self._answered, task.key, task.uid), effort=Effort.JOINED)

    def _answered(self, key: TaskKey, uid: str, problem: ClusterError | None) -> None:
        if problem is None:
            self._refusals.clear(uid)
        else:
            self._refusals.note(uid, self._port.clock.now, at_least=problem.retry_after)
        self._cache.forget_nomination(key, uid, self._port.view.find(POD, *split_key(key)))


def _node_of(state: TaskState, snapshot: Snapshot) -> str | None:
    """Return the node to name on a pod, empty for none; None if its status says that already, or it is bound."""
    if state.task.status is not Status.PENDING or state.status is Status.BINDING:
        return None
    # A place that is free already is kept too, or others take it while the rest of the gang waits for those who leave.
    node = snapshot.nodes.names[state.node] if state.status in (Status.PIPELINED, Status.ALLOCATED) else ""
    return node if node != state.task.nominated_node else None
