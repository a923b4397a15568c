"""What every real operator is tried with: workloads of eight-GPU pods in a namespace of their own, and what became of them."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import Process, wait_until
from phalanx.dev.programs import is_built
from phalanx.dev.replicas import scheduling
from phalanx.model.kinds import Document

NAMESPACE = "ml"
NODES, GPUS = 4, 8
MACHINES = Machines(gpus=GPUS)
"""Each pod of a lane takes a node of its own."""
WAIT_SECONDS, STILL_SECONDS = 60.0, 4.0
LEFT = (
    "pods", "jobs.batch", "statefulsets.apps", "podgroups.scheduling.volcano.sh", "podgroups.scheduling.run.ai",
    "podgroups.scheduling.x-k8s.io",
)  # fmt: skip
"""What may be made of a workload, and has to go with it."""
Operator = Callable[[ControlPlane, Path], AbstractContextManager[Process]]
"""Runs an operator beside a control plane; its log and its files go to a folder."""


def needs(name: str) -> pytest.MarkDecorator:
    """Leave tests out where the program of an operator is not built."""
    return pytest.mark.skipif(not is_built(name), reason=f"{name} is not built; run 'phalanx dev build {name}' once")


def template(container: str = "main", scheduler: str = "phalanx", **spec: Any) -> dict[str, Any]:
    """Return a template of pods that take a node each."""
    main = {"name": container, "image": "registry.example/train:1", "resources": {"limits": {"nvidia.com/gpu": str(GPUS)}}}
    return {"spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [main], **spec}}


def workload(api_version: str, kind: str, name: str, spec: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
    """Return an object in the namespace of the lane."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE, **meta}, "spec": spec}


@contextmanager
def lane_of(operator: Operator, folder: Path, *flags: str) -> Iterator["Lane"]:
    """Run an operator and a scheduler on a control plane of their own, where no other definitions clash with its."""
    with (
        ControlPlane(folder / "plane", nodes=NODES, machines=MACHINES) as plane,
        operator(plane, folder),
        scheduling(plane, folder, "--scheduler-name=phalanx", *flags),
    ):
        yield Lane(plane)


class Lane:
    """The namespace in which an operator is tried."""

    def __init__(self, plane: ControlPlane) -> None:
        """Make the namespace."""
        self._plane = plane
        plane.create_namespace(NAMESPACE)

    @contextmanager
    def submitted(self, *documents: Document) -> Iterator[None]:
        """Let workloads be there, and nothing of them be left afterwards."""
        for document in documents:
            self._plane.apply([document])
        try:
            yield
        finally:
            self.delete(*documents)
        self.wait(lambda: not self.left(), self.left)

    @contextmanager
    def submitted_beside(self, document: Document) -> Iterator[None]:
        """Let one more workload be there, and none of its pods afterwards."""
        self._plane.apply([document])
        yield
        self.delete(document)
        self.await_pods(f"{document['metadata']['name']}-", 0)

    def apply(self, documents: Sequence[Document]) -> None:
        """Create objects, in their order."""
        self._plane.apply(documents)

    def delete(self, *documents: Document) -> None:
        """Delete workloads and do not wait for them."""
        names = (f"{_resource(document)}/{document['metadata']['name']}" for document in documents)
        self._plane.kubectl("delete", "-n", NAMESPACE, "--ignore-not-found", "--wait=false", *names)

    def change(self, document: Document, patch: Document) -> None:
        """Change a workload, as its user does."""
        place = f"{_resource(document)}/{document['metadata']['name']}"
        self._plane.kubectl("patch", "-n", NAMESPACE, place, "--type=merge", "--patch", json.dumps(patch))

    # --- what became of them -----------------------------------------------------------------------------------------

    def pods(self, start: str = "") -> list[Document]:
        """Return the pods whose names begin so."""
        found = json.loads(self._plane.kubectl("get", "pods", "-n", NAMESPACE, "-o", "json"))["items"]
        return [pod for pod in found if pod["metadata"]["name"].startswith(start)]

    def running(self, start: str = "") -> int:
        """Return how many of these pods run."""
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods(start))

    def bound(self, start: str = "") -> int:
        """Return how many of these pods have a node."""
        return sum("nodeName" in pod["spec"] for pod in self.pods(start))

    def current(self, document: Document) -> dict[str, Any]:
        """Return a workload as it is now."""
        place = f"{_resource(document)}/{document['metadata']['name']}"
        found: dict[str, Any] = json.loads(self._plane.kubectl("get", "-n", NAMESPACE, place, "-o", "json"))
        return found

    def listed(self, resource: str) -> list[dict[str, Any]]:
        """Return the objects of a kind."""
        found: list[dict[str, Any]] = json.loads(self._plane.kubectl("get", "-n", NAMESPACE, resource, "-o", "json"))["items"]
        return found

    def subresources(self, resource: str) -> set[str]:
        """Return what a definition has beside its objects, in any version."""
        versions = json.loads(self._plane.kubectl("get", "crd", resource, "-o", "json"))["spec"]["versions"]
        return {name for version in versions for name in version.get("subresources") or ()}

    def gangs(self) -> dict[str, dict[str, Any]]:
        """Return what `phalanx get gangs` says, by the names of gangs."""
        command = [sys.executable, "-m", "phalanx", "get", "gangs", "-n", NAMESPACE, "--kubeconfig", str(self._plane.kubeconfig)]
        done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return {gang["metadata"]["name"]: gang for gang in json.loads(done.stdout)["items"]}

    def warnings(self) -> list[str]:
        """Return the warnings of our scheduler about what is there now."""
        events = json.loads(self._plane.kubectl("get", "events", "-n", NAMESPACE, "-o", "json"))["items"]
        known = {pod["metadata"]["uid"] for pod in self.pods()}
        found = (item for item in events if item["type"] == "Warning" and item["involvedObject"].get("uid") in known)
        return [f"{item['reason']}: {item['message']}" for item in found]

    def left(self) -> list[str]:
        """Return the names of all that workloads leave behind."""
        return self._plane.kubectl("get", "-n", NAMESPACE, "--ignore-not-found", "-o", "name", ",".join(LEFT)).split()

    def await_running(self, start: str, count: int) -> None:
        """Wait until so many pods run."""
        self.wait(lambda: self.running(start) == count, lambda: (self._summary(), self.gangs()))

    def await_pods(self, start: str, count: int) -> None:
        """Wait until so many pods are there."""
        self.wait(lambda: len(self.pods(start)) == count, lambda: (self._summary(), self.gangs()))

    def check_one_runs_and_the_other_waits(self, first: str, second: str, size: int) -> tuple[str, str]:
        """Check that of two workloads one runs whole and no pod of the other has a node; return who runs and who waits."""

        def counts() -> list[int]:
            return sorted((self.running(first), self.running(second)))

        self.wait(lambda: counts() == [0, size], lambda: (self._summary(), self.gangs()))
        runs, waits = (first, second) if self.running(first) else (second, first)
        self.check_none_starts(waits)
        return runs, waits

    def check_none_starts(self, start: str) -> None:
        """Check that no pod gets a node for a while."""
        assert not wait_until(lambda: self.bound(start) > 0, STILL_SECONDS, step=0.5), self._summary()

    def why(self, start: str) -> str:
        """Return why the gang whose name begins so waits."""
        (gang,) = [gang for name, gang in self.gangs().items() if start in name]
        return str(gang["why"])

    def _summary(self) -> list[str]:
        return [f"{pod['metadata']['name']}: {pod['status'].get('phase')} {pod['spec'].get('nodeName')}" for pod in self.pods()]

    def wait(self, holds: Callable[[], bool], problem: Callable[[], object]) -> None:
        """Wait until something is so; say what is so instead if it takes too long."""
        assert wait_until(holds, WAIT_SECONDS, step=0.3), problem()


def _resource(document: Document) -> str:
    group = document["apiVersion"].rpartition("/")[0]
    return f"{document['kind'].lower()}s.{group}" if group else f"{document['kind'].lower()}s"
