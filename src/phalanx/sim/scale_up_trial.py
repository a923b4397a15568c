"""On which nodes pods would fit, found out by trial, for a simulated autoscaler.

Cluster Autoscaler asks a scheduler of its own, which knows pods and no gangs; so does this: a session with the filters of
Kubernetes places pods one by one, each on the fullest node that holds it. The cluster is followed by its events, so that a trial
costs what it tries and a session.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD, Document, object_key
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.session.cycle import run_cycle
from phalanx.sim.without_gangs import SoloCluster
from phalanx.store.memory import MemoryStore

CONFIGURATION: Mapping[str, Any] = {
    "profile": "default-scheduler",
    "tiers": [{"plugins": [
        {"name": "predicates", "arguments": {"predicate.VolumeRestrictionsEnable": True}},
        {"name": "binpack", "arguments": {"binpack.resources": "*/*", "binpack.resources.*/*": 5}},
    ]}],
}  # fmt: skip
LEFT_OUT = frozenset({"PodGroup", "Queue", "BindRequest", "SchedulingShard", "NodeShard"})
"""Kinds that say something about gangs and queues alone."""
OF_WAITING = ("priority", "priorityClassName", "schedulingGates", "nodeName")
"""What a pod on trial does not have: pods are tried in the order in which they are given."""
ONE_MOMENT = "2000-01-01T00:00:00Z"


class ScaleUpTrial:
    """Follows a cluster, and tries pods on it."""

    def __init__(self, store: MemoryStore) -> None:
        """Begin with what is there."""
        self._cluster = SoloCluster()
        self._policy = policy_of(CONFIGURATION)
        self._catalogue = catalogue_of(self._policy.catalogue)
        for document in store.everything():
            self._enter(document)
        store.listen(self._hear)

    def _hear(self, event: WatchEvent) -> None:
        if event.type == DELETED:
            self._remove(event.object)
        elif event.kind is not POD or event.object["spec"].get("nodeName"):
            self._enter(event.object)

    def placed(
        self, pods: Sequence[Document], *, nodes: Sequence[Document] = (), bound: Mapping[str, str] | None = None, now: float
    ) -> dict[str, str]:  # fmt: skip
        """Return on which node each pod would be, by its key, if these nodes were there too; the first pods are placed first.

        Pods that `bound` names are on their nodes already.
        """
        places = bound or {}
        documents = [*nodes, *(_on_trial(pod, places.get(object_key(pod), "")) for pod in pods)]
        entered = [document for document in documents if self._enter(document)]
        try:
            decisions = run_cycle(self._cluster.snapshot(now), self._policy, self._catalogue)
        finally:
            self._remove(*reversed(entered))
        return {str(key): node for key, node in decisions.binds.items()}

    def _enter(self, document: Document) -> bool:
        """Enter an object; tell whether it could be read. One that could not is reported by those who schedule."""
        if document["kind"] in LEFT_OUT:
            return False
        try:
            return self._cluster.put(document)
        except SnapshotError:
            return False

    def _remove(self, *documents: Document) -> None:
        for document in documents:
            self._cluster.remove(document)


def _on_trial(pod: Document, node: str) -> Document:
    """Return a pod as if it were new, or on a node."""
    spec = {name: value for name, value in pod["spec"].items() if name not in OF_WAITING}
    meta = {**pod["metadata"], "creationTimestamp": ONE_MOMENT}
    return {**pod, "metadata": meta, "spec": {**spec, "nodeName": node} if node else spec, "status": {"phase": "Pending"}}
