"""A test's own piece of a real cluster: namespaces, nodes and whatever else it makes. All of it goes when the test ends.

    with scheduling(plane, folder, "--scheduler-name=volcano"), Site(plane) as site:
        site.make(example("deadlock", "nodes.yaml", "jobs.yaml"))
        site.await_phase("bert-", "Running")

Tests follow each other, so nobody else's nodes are there meanwhile. Names of namespaces and nodes get an end of their own, since
what a test before has left may take a while to go.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import yaml

from phalanx.model.kinds import Document
from tests.support.http_api import connection_to
from tests.support.store_contract import Api, eventually

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLAYED = {"kwok.x-k8s.io/node": "fake"}
"""The annotation of nodes that kwok plays."""
HOSTNAME = "kubernetes.io/hostname"
WITHOUT_NAMESPACE = frozenset(
    {
        "Node",
        "Queue",
        "PriorityClass",
        "Topology",
        "HyperNode",
        "CustomResourceDefinition",
        "SchedulingShard",
        "NodeShard",
        "Namespace",
        "DeviceClass",
        "ResourceSlice",
    }
)


class Plane(Protocol):
    """A control plane: how to get in, and its kubectl."""

    @property
    def kubeconfig(self) -> Path:
        """Of somebody who may do everything."""
        ...

    def kubectl(self, *arguments: str, text: str = "") -> str:
        """Run kubectl with some input and return what it prints."""
        ...

    def create_namespace(self, name: str) -> None:
        """Make a namespace and wait until pods can be created in it."""
        ...

    def wait_for_nodes(self, names: Iterable[str]) -> None:
        """Wait until pods may use nodes."""
        ...


def example(name: str, *files: str) -> list[Document]:
    """Return the objects of some files of an example."""
    return [item for file in files for item in yaml.safe_load_all((EXAMPLES / name / file).read_text()) if item]


class Site:
    """Where one test makes its objects."""

    def __init__(self, plane: Plane) -> None:
        """Begin with nothing."""
        self._plane, self._mark = plane, secrets.token_hex(2)
        self._namespaces: list[str] = []
        self._others: list[str] = []
        """Objects without a namespace, as kubectl names them."""
        self.connection = connection_to(str(plane.kubeconfig))

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *problem: object) -> None:
        """Remove everything: namespaces first, so that no controller makes pods anew, and pods before their nodes."""
        for name in self._namespaces:
            self.connection.ask("DELETE", f"/api/v1/namespaces/{name}")
            self.connection.ask("DELETE", f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})
        if self._others:
            self._plane.kubectl("delete", "--wait=false", "--ignore-not-found", *self._others[::-1])

    # --- names -------------------------------------------------------------------------------------------------------

    def namespace(self, name: str = "default") -> str:
        """Return what a namespace of the manifests is called here, and make it if it is not there."""
        found = f"{name}-{self._mark}"
        if found not in self._namespaces:
            self._plane.create_namespace(found)
            self._namespaces.append(found)
        return found

    def node(self, name: str) -> str:
        """Return what a node of the manifests is called here."""
        return f"{name}-{self._mark}"

    def here(self, document: Document) -> dict[str, Any]:
        """Return an object with the names that it has here."""
        meta = {key: value for key, value in document["metadata"].items() if key not in ("creationTimestamp", "uid")}
        found = {**document, "metadata": meta}
        if document["kind"] == "Node":
            return self._node_here(found)
        if document["kind"] not in WITHOUT_NAMESPACE:
            meta["namespace"] = self.namespace(meta.get("namespace", "default"))
        if document["kind"] == "Pod":
            found["spec"] = self._pod_here(document["spec"])
        return found

    def _pod_here(self, spec: Document) -> dict[str, Any]:
        containers = [{"image": "train:1", **container} for container in spec["containers"]]
        node = {"nodeName": self.node(spec["nodeName"])} if spec.get("nodeName") else {}
        return {"schedulerName": "phalanx", **spec, "containers": containers, **node}

    def _node_here(self, document: dict[str, Any]) -> dict[str, Any]:
        meta, name = document["metadata"], self.node(document["metadata"]["name"])
        labels = {**meta.get("labels", {}), HOSTNAME: name}
        offers = document["status"]["allocatable"]
        return {
            **document,
            "metadata": {**meta, "name": name, "labels": labels, "annotations": {**meta.get("annotations", {}), **PLAYED}},
            "status": {"capacity": offers, "allocatable": offers},
        }

    # --- what is in it -----------------------------------------------------------------------------------------------

    def make(self, documents: Iterable[Document], verb: str = "create") -> None:
        """Create objects in their order, or apply them, by kubectl; nodes are ready when this returns."""
        found = [self.here(document) for document in documents]
        nodes = [item["metadata"]["name"] for item in found if item["kind"] == "Node"]
        self._others += [_address(item) for item in found if item["kind"] in WITHOUT_NAMESPACE]
        self._plane.kubectl(verb, "-f", "-", text=yaml.safe_dump_all(found))
        self._plane.wait_for_nodes(nodes)

    def kubectl(self, *arguments: str, namespace: str = "default", text: str = "") -> str:
        """Run kubectl in a namespace."""
        return self._plane.kubectl("-n", self.namespace(namespace), *arguments, text=text)

    def get(self, *arguments: str, namespace: str = "default") -> dict[str, Any]:
        """Return what `kubectl get` finds."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "-o", "json", namespace=namespace))
        return found

    def api(self, namespace: str = "default") -> Api:
        """Return a client of a namespace that asks without kubectl, for those who ask often."""
        return Api(self.connection, self.namespace(namespace))

    def pods(self, start: str = "", namespace: str = "default") -> list[dict[str, Any]]:
        """Return the pods whose names begin so."""
        found: Sequence[dict[str, Any]] = self.api(namespace).read("pods").body["items"]
        return [pod for pod in found if pod["metadata"]["name"].startswith(start)]

    def bound(self, start: str = "", namespace: str = "default") -> dict[str, str]:
        """Return who is on which node."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in self.pods(start, namespace) if pod["spec"].get("nodeName")
        }

    def phases(self, start: str = "", namespace: str = "default") -> list[str]:
        """Return the phases of pods whose names begin so."""
        return [pod["status"]["phase"] for pod in self.pods(start, namespace)]

    def await_phases(self, start: str, expected: Mapping[str, int], namespace: str = "default") -> None:
        """Wait until pods are in so many of each phase and no others."""

        def count() -> dict[str, int]:
            found = self.phases(start, namespace)
            return {phase: found.count(phase) for phase in found}

        self.wait(lambda: count() == expected, lambda: f"pods {start}* are {count()}, not {dict(expected)}")

    def wait(self, holds: Callable[[], bool], problem: Callable[[], object]) -> None:
        """Wait until something is so; say what is so instead if it takes too long."""
        assert eventually(holds), problem()


def _address(document: Document) -> str:
    group = document["apiVersion"].rpartition("/")[0]
    kind = document["kind"].lower()
    return f"{kind}.{group}/{document['metadata']['name']}" if group else f"{kind}/{document['metadata']['name']}"
