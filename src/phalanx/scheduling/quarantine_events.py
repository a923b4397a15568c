"""Events on objects that cannot be understood, where no controller writes a condition on them.

Groups and pods are told by the controller in `controllers/quarantine.py`. Nodes, queues, volumes, quotas and all others get an
event when they are found, and once more from each leader that begins.
"""

from phalanx.controllers.controller import RecordEvent
from phalanx.controllers.quarantine import MISCONFIGURED
from phalanx.errors import SnapshotError
from phalanx.model.kinds import GROUP_BY_DIALECT, POD
from phalanx.scheduling.cache import QuarantinedObject, SchedulerCache
from phalanx.scheduling.port import ClusterPort

TOLD_BY_CONTROLLER = frozenset({POD, *GROUP_BY_DIALECT.values()})


class QuarantineEvents:
    """Records them from `start` to `stop`."""

    def __init__(self, port: ClusterPort, cache: SchedulerCache) -> None:
        """Listen to a cache, and record nothing yet."""
        self._port, self._cache, self._is_running = port, cache, False
        cache.refused.append(self._refused)

    def start(self) -> None:
        """Record what is quarantined now, and what will be."""
        self._is_running = True
        for found in self._cache.quarantined.values():
            self._record(found)

    def stop(self) -> None:
        """Record nothing any more."""
        self._is_running = False

    def _refused(self, found: QuarantinedObject, _: SnapshotError) -> None:
        if self._is_running:
            self._record(found)

    def _record(self, found: QuarantinedObject) -> None:
        if found.kind not in TOLD_BY_CONTROLLER:
            self._port.send(RecordEvent(found.object, MISCONFIGURED, found.problem, is_warning=True))
