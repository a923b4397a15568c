"""Plans for gangs that our gate holds back: a session on the cluster as it would be without the gates.

Nothing is read twice before the first such pod comes. Whatever is planned is written on the pods; controllers lift the gates.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

from phalanx.controllers.controller import Patch
from phalanx.dialects.gated_cluster import GatedCluster
from phalanx.dialects.gates import GATE, gates_of, written
from phalanx.errors import SnapshotError
from phalanx.explain.why import why
from phalanx.model.kinds import POD, SILENT, Document, Kind, split_key
from phalanx.model.task import GangKey, TaskKey
from phalanx.session.cycle import Catalogue, run_cycle
from phalanx.session.decision import Decisions
from phalanx.session.policy import Policy
from phalanx.state.snapshot import Snapshot


class GatePlanner:
    """Looks behind our gate."""

    def __init__(self, policy: Policy, catalogue: Catalogue, everything: Callable[[], Iterable[Document]]) -> None:
        """Plan nothing yet; `everything` returns all objects, and is asked when the first pod is held back."""
        self._policy, self._catalogue, self._everything = policy, catalogue, everything
        self._cluster: GatedCluster | None = None
        self.waits: dict[GangKey, str] = {}
        """Why gangs that our gate holds back had no room when a session last looked."""

    def hear(self, kind: Kind, document: Document, *, is_gone: bool) -> bool:
        """Note a change; tell whether a session should look at it."""
        if self._cluster is not None and is_gone:
            self._cluster.remove(document)
        elif self._cluster is not None:
            _put(self._cluster, document)
        elif kind is POD and GATE in gates_of(document):
            self._cluster = self._begun()
        return self._cluster is not None and bool(self._cluster.held) and kind.kind not in SILENT

    def _begun(self) -> GatedCluster:
        cluster = GatedCluster()
        for document in self._everything():
            _put(cluster, document)
        return cluster

    def plan(self, now: float) -> list[Patch]:
        """Return the plans to write on pods now."""
        self.waits = {}
        if self._cluster is None or not self._cluster.held:
            return []
        snapshot, decisions = self._look(self._cluster, now)
        self.waits = self._reasons(self._cluster, snapshot, decisions)
        found = self._cluster.new_plans(decisions, now)
        versions = {key: str(self._cluster.held[key]["metadata"].get("resourceVersion", "")) for key in found}
        return [Patch(POD, *split_key(key), written(plan, versions[key])) for key, plan in found.items()]

    def reasons(self, now: float) -> dict[GangKey, str]:
        """Return why gangs that our gate holds back have no room, as a session would find it now."""
        if self._cluster is None or not self._cluster.held:
            return {}
        return self._reasons(self._cluster, *self._look(self._cluster, now))

    def waiting_pods(self) -> dict[TaskKey, str]:
        """Return the pods of gangs that had no room, each with why."""
        if self._cluster is None or not self.waits:
            return {}
        tasks = ((key, self._cluster.state.task(key)) for key in self._cluster.held)
        return {key: self.waits[task.gang] for key, task in tasks if task is not None and task.gang in self.waits}

    def _look(self, cluster: GatedCluster, now: float) -> tuple[Snapshot, Decisions]:
        snapshot = cluster.snapshot(now)
        return snapshot, run_cycle(snapshot, self._policy, self._catalogue)

    def _reasons(self, cluster: GatedCluster, snapshot: Snapshot, decisions: Decisions) -> dict[GangKey, str]:
        gangs = cluster.held_gangs()
        texts = {outcome.state.gang.key: why(outcome, snapshot) for outcome in decisions.outcomes}
        return {key: text for key, text in texts.items() if text and key in gangs}


def _put(cluster: GatedCluster, document: Document) -> None:
    """Let the cluster know of an object; who else reads it says what is wrong with a broken one."""
    with suppress(SnapshotError):
        cluster.put(document)
