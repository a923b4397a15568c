"""What tests of the contract say to a store: short words for requests inside one namespace."""

from collections.abc import Callable, Iterator
from typing import Any

from phalanx.dev.processes import wait_until
from phalanx.store.patches import MERGE
from tests.support.http_api import Answer, Connection

PATIENCE_SECONDS = 60.0
STEP_SECONDS = 0.05
LEASE = "coordination.k8s.io/v1:leases/phalanx"


class Api:
    """One namespace of an API server; paths that begin with a slash are whole, others name something inside it."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        """Speak through a connection."""
        self.connection, self.namespace = connection, namespace

    def path(self, place: str) -> str:
        """Return the path of a place: ``pods/a``, ``policy/v1:poddisruptionbudgets/b``."""
        if place.startswith("/"):
            return place
        group, _, rest = place.rpartition(":")
        return f"/{f'apis/{group}' if group else 'api/v1'}/namespaces/{self.namespace}/{rest}"

    def read(self, place: str, **query: Any) -> Answer:
        """Get an object or a list."""
        return self.connection.ask("GET", self.path(place), **query)

    def make(self, place: str, body: Any, **query: Any) -> Answer:
        """Post an object, a binding or an eviction."""
        return self.connection.ask("POST", self.path(place), body, **query)

    def put(self, place: str, body: Any, **query: Any) -> Answer:
        """Replace an object."""
        return self.connection.ask("PUT", self.path(place), body, **query)

    def patch(self, place: str, body: Any, form: str = MERGE, **query: Any) -> Answer:
        """Change a part of an object."""
        return self.connection.ask("PATCH", self.path(place), body, form=form, **query)

    def remove(self, place: str, body: Any = None, **query: Any) -> Answer:
        """Delete an object."""
        return self.connection.ask("DELETE", self.path(place), body, **query)

    def watch(self, place: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the events of a watch."""
        return self.connection.watch(self.path(place), **query)

    def bound(self, **query: Any) -> int:
        """Return how many pods have a node and are not on their way out."""
        pods = [pod for pod in self.read("pods", **query).body["items"] if "deletionTimestamp" not in pod["metadata"]]
        return sum("nodeName" in pod["spec"] for pod in pods)

    def leader(self) -> str:
        """Return the name of the replica that holds the lease in this namespace; empty where nobody does."""
        return str(self.read(LEASE).body.get("spec", {}).get("holderIdentity", "")).partition("_")[0]

    # --- things that most tests need ---------------------------------------------------------------------------------

    def pod(
        self, name: str, *, finalizers: tuple[str, ...] = (), labels: dict[str, str] | None = None, **spec: Any
    ) -> dict[str, Any]:
        """Create a pod that nobody but a test schedules."""
        made = self.make("pods", pod(name, finalizers=finalizers, labels=labels, **spec))
        assert made.code == 201, made
        return made.body

    def bound_pod(self, name: str, **spec: Any) -> dict[str, Any]:
        """Create a pod and bind it to a node that nobody runs."""
        self.pod(name, **spec)
        assert self.bind(name).code == 201
        return self.read(f"pods/{name}").body

    def ready_pod(self, name: str, **spec: Any) -> dict[str, Any]:
        """Create a pod that runs and is ready."""
        self.bound_pod(name, **spec)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        assert self.patch(f"pods/{name}/status", {"status": status}).code == 200
        return self.read(f"pods/{name}").body

    def bind(self, name: str, node: str = "nowhere-1", *, meta: dict[str, Any] | None = None, **query: Any) -> Answer:
        """Bind a pod."""
        return self.make(f"pods/{name}/binding", binding(name, {"kind": "Node", "name": node}, meta or {}), **query)

    def evict(self, name: str, *, options: dict[str, Any] | None = None, **query: Any) -> Answer:
        """Evict a pod."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options or {}}
        return self.make(f"pods/{name}/eviction", body, **query)

    def settings(self, name: str, **more: Any) -> dict[str, Any]:
        """Create a ConfigMap, the plainest object there is."""
        made = self.make("configmaps", {"metadata": {"name": name, **more}, "data": {"colour": "red"}})
        assert made.code == 201, made
        return made.body

    def budget(self, name: str, *, needs: int, labels: dict[str, str]) -> dict[str, Any]:
        """Create a disruption budget."""
        spec = {"minAvailable": needs, "selector": {"matchLabels": labels}}
        made = self.make("policy/v1:poddisruptionbudgets", {"metadata": {"name": name}, "spec": spec})
        assert made.code == 201, made
        return made.body


def pod(name: str, *, finalizers: tuple[str, ...] = (), labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a pod that nobody but a test schedules."""
    meta: dict[str, Any] = {"name": name, **({"finalizers": list(finalizers)} if finalizers else {}), "labels": labels or {}}
    containers = [{"name": "main", "image": "train:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"schedulerName": "nobody", "containers": containers, **spec},
    }


def binding(name: str, target: dict[str, Any], meta: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a Binding."""
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **(meta or {})}, "target": target}


def eventually(holds: Callable[[], bool], *, seconds: float = PATIENCE_SECONDS, step: float = STEP_SECONDS) -> bool:
    """Wait for something that a controller does, and look every few moments; tell whether it came true."""
    return wait_until(holds, seconds, step=step)
