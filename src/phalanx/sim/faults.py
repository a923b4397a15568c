"""What happens to nodes and pods: nodes join, are drained, die and return; pods fail; binds are refused."""

from collections.abc import Callable
from typing import Any

from phalanx.errors import ClusterError, Forbidden, Missing
from phalanx.model.kinds import NODE, POD, Document
from phalanx.sim.kubelets import Kubelets
from phalanx.sim.replacement_pods import ReplacementPods
from phalanx.store.memory import MemoryStore
from phalanx.store.selection import selection

UNREACHABLE = "node.kubernetes.io/unreachable"
OF_THE_DEAD = tuple({"key": UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute"))
"""The taints of the node controller; every pod tolerates the second for a while, and none the first."""


class Faults:
    """Does to a cluster what a scenario says."""

    def __init__(self, store: MemoryStore, kubelets: Kubelets, comebacks: ReplacementPods) -> None:
        """Do nothing yet."""
        self._store, self._kubelets, self._comebacks = store, kubelets, comebacks
        self._refusals: dict[str, float] = {}
        """Nodes, and pods by namespace and name, to which so many more binds are refused."""
        store.binding.append(self._judge)
        self.by_name: dict[str, Callable[[str], None]] = {
            "die": self.die, "return": self.come_back, "drain": self.drain, "cordon": self.cordon, "uncordon": self.uncordon,
            "leave": self.leave,
        }  # fmt: skip

    def die(self, node: str) -> None:
        """Stop a node: its pods are lost, and nothing is placed there until it returns."""
        self._store.patch(NODE, "", node, {"spec": {"taints": [*self._other_taints(node), *OF_THE_DEAD]}})
        self._kubelets.dead.add(node)
        self._set_ready(node, is_ready=False)
        for pod in self._pods_on(node):
            self.lose(pod)

    def come_back(self, node: str) -> None:
        """Let a node take pods again."""
        self._kubelets.dead.discard(node)
        self._store.patch(NODE, "", node, {"spec": {"taints": self._other_taints(node) or None, "unschedulable": None}})
        self._set_ready(node, is_ready=True)

    def cordon(self, node: str) -> None:
        """Let a node take no more pods; those it has stay."""
        self._store.patch(NODE, "", node, {"spec": {"unschedulable": True}})

    def uncordon(self, node: str) -> None:
        """Let a node that was cordoned or drained take pods again."""
        self._store.patch(NODE, "", node, {"spec": {"unschedulable": None}})

    def drain(self, node: str) -> None:
        """Cordon a node and evict its pods, as far as disruption budgets allow."""
        self.cordon(node)
        for pod in self._pods_on(node):
            self._comebacks.expect(pod["metadata"]["uid"])
            try:
                self._store.evict(pod["metadata"]["namespace"], pod["metadata"]["name"])
            except ClusterError:
                continue  # a budget says no: the pod stays, as with kubectl drain before it tries again

    def leave(self, node: str) -> None:
        """Take a node away with everything on it."""
        self._store.delete(NODE, "", node)
        self._kubelets.dead.add(node)
        for pod in self._pods_on(node):
            self.lose(pod)

    def join(self, node: Document) -> None:
        """Add a node."""
        self._store.create(node)
        self._kubelets.dead.discard(node["metadata"]["name"])

    def fail(self, namespace: str, name: str) -> None:
        """Let a pod fail; what brings it back removes it first, unless a controller decides what becomes of it."""
        pod = self._store.get(POD, namespace, name)
        if pod["status"].get("phase") not in ("Pending", "Running"):
            return
        self._comebacks.expect(pod["metadata"]["uid"])
        status = {"phase": "Failed", "reason": "Error", "containerStatuses": [_ended(item) for item in pod["spec"]["containers"]]}
        self._store.patch(POD, namespace, name, {"status": status}, is_status=True)
        if not self._comebacks.is_managed(pod):
            self._store.delete(POD, namespace, name)

    def refuse_binds(self, name: str, times: float) -> None:
        """Refuse so many binds to a node, or of a pod that is named by namespace and name."""
        self._refusals[name] = times

    def _judge(self, pod: Document, node: str) -> None:
        """Refuse a bind if a scenario says so."""
        meta = pod["metadata"]
        for name in (node, f"{meta['namespace']}/{meta['name']}"):
            if self._refusals.get(name, 0) > 0:
                self._refusals[name] -= 1
                text = f"the scenario refuses binds {'of pod' if '/' in name else 'to node'} {name}"
                raise Forbidden(f'pods/binding "{meta["name"]}" is forbidden: {text}', kind="pods/binding", name=meta["name"])

    def lose(self, pod: Document) -> None:
        """Take a pod away whose node is gone."""
        self._comebacks.expect(pod["metadata"]["uid"])
        self._store.delete(POD, pod["metadata"]["namespace"], pod["metadata"]["name"], grace=0)

    def _pods_on(self, node: str) -> list[Document]:
        """Return the pods that work on a node; those that have ended lose nothing."""
        return self._store.items(POD, selection(fields=f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed"))

    def _other_taints(self, node: str) -> list[dict[str, Any]]:
        """Return the taints of a node besides those of the dead."""
        taints = self._store.get(NODE, "", node).get("spec", {}).get("taints") or ()
        return [taint for taint in taints if taint.get("key") != UNREACHABLE]

    def _set_ready(self, node: str, *, is_ready: bool) -> None:
        ready = {"type": "Ready", "status": "True" if is_ready else "False"}
        found = self._store.find(NODE, "", node)
        if found is None:
            raise Missing(f'nodes "{node}" not found', kind="nodes", name=node)
        others = [item for item in found.get("status", {}).get("conditions") or () if item.get("type") != "Ready"]
        self._store.patch(NODE, "", node, {"status": {"conditions": [*others, ready]}}, is_status=True)


def _ended(container: Document) -> dict[str, Any]:
    return {"name": container.get("name", ""), "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
