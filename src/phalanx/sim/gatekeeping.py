"""Plans for gangs that our gate holds back: a session on the cluster as it would be without the gates, after every change.

Nobody looks before the first such pod comes. Whatever is planned is written on the pods; controllers lift the gates.
"""

from contextlib import suppress

from phalanx.core.cycle import run_cycle
from phalanx.core.decision import Decisions
from phalanx.core.snapshot import Snapshot
from phalanx.dialects.gated_cluster import GatedCluster
from phalanx.dialects.gates import GATE, gates_of, written
from phalanx.errors import ClusterError, SnapshotError
from phalanx.explain.why import why
from phalanx.model.kinds import POD, Document, split_key
from phalanx.model.task import GangKey
from phalanx.sim.kernel import Kernel, Rank
from phalanx.sim.scheduling import Mind
from phalanx.store.history import DELETED, Event
from phalanx.store.memory import MemoryStore

BETWEEN_SESSIONS_SECONDS, AFTER_REFUSAL_SECONDS = 1.0, 5.0
SILENT = frozenset({"Event", "Lease", "ConfigMap", "Secret"})


class Gatekeeping:
    """Watches a store and writes plans."""

    def __init__(self, store: MemoryStore, kernel: Kernel, mind: Mind) -> None:
        """Begin to listen."""
        self._store, self._kernel, self._mind = store, kernel, mind
        self._cluster: GatedCluster | None = None
        self._is_planned = False
        self.waits: dict[GangKey, str] = {}
        """Why gangs that our gate holds back had no room when a session last looked."""
        self._last = -1e18
        store.listen(self._hear)

    def _hear(self, event: Event) -> None:
        if self._cluster is not None and event.type == DELETED:
            self._cluster.remove(event.object)
        elif self._cluster is not None:
            _put(self._cluster, event.object)
        elif event.kind is POD and GATE in gates_of(event.object):
            self._cluster = self._begun()
        if self._cluster is not None and self._cluster.held and event.kind.kind not in SILENT:
            self._wake(max(self._kernel.now, self._last + BETWEEN_SESSIONS_SECONDS))

    def _begun(self) -> GatedCluster:
        cluster = GatedCluster()
        for document in self._store.everything():
            _put(cluster, document)
        return cluster

    def _wake(self, moment: float) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._kernel.at(moment, Rank.SESSION, self._decide)

    def _decide(self) -> None:
        self._is_planned, self._last = False, self._kernel.now
        self.waits = {}
        if self._cluster is None or not self._cluster.held:
            return
        snapshot, decisions = self._look(self._cluster)
        self.waits = self._reasons(self._cluster, snapshot, decisions)
        try:
            for key, plan in self._cluster.new_plans(decisions, self._kernel.now).items():
                self._store.patch(POD, *split_key(key), written(plan))
        except ClusterError:
            self._wake(self._kernel.now + AFTER_REFUSAL_SECONDS)

    def _look(self, cluster: GatedCluster) -> tuple[Snapshot, Decisions]:
        snapshot = cluster.snapshot(self._kernel.now)
        return snapshot, run_cycle(snapshot, self._mind.policy, self._mind.catalogue)

    def reasons(self) -> dict[GangKey, str]:
        """Return why gangs that our gate holds back have no room, as a session would find it now."""
        if self._cluster is None or not self._cluster.held:
            return {}
        return self._reasons(self._cluster, *self._look(self._cluster))

    def _reasons(self, cluster: GatedCluster, snapshot: Snapshot, decisions: Decisions) -> dict[GangKey, str]:
        gangs = cluster.held_gangs()
        texts = {outcome.state.gang.key: why(outcome, snapshot) for outcome in decisions.outcomes}
        return {key: text for key, text in texts.items() if text and key in gangs}


def _put(cluster: GatedCluster, document: Document) -> None:
    """Let the cluster know of an object; who else reads it says what is wrong with a broken one."""
    with suppress(SnapshotError):
        cluster.put(document)
