"""What operators do to a real API server, played by a test: they create objects and pods, change them, and take them away.

Pods are created as each operator writes them: its labels, and references to its objects as controllers. Batch Jobs are real: their
controller makes the pods. All of it runs on nodes of the test's own.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from phalanx.controllers.objects import owner_reference
from phalanx.model.kinds import Document
from tests.support.live_site import Plane, Site
from tests.support.operator_workloads import place_of

LANE, GPU = "example.com/lane", "nvidia.com/gpu"
SCHEDULER = "phalanx"


class PlayedOperator:
    """An operator in the namespace of a site."""

    def __init__(self, plane: Plane, site: Site) -> None:
        """Begin without nodes."""
        self._plane, self.site, self.api = plane, site, site.api()

    def add_nodes(self, name: str, count: int, *, gpus: int = 1, lane: str = "") -> None:
        """Make nodes for the pods of this operator."""
        self.site.make(self._nodes(name, count, gpus, lane))

    def _nodes(self, name: str, count: int, gpus: int, lane: str) -> Iterator[Document]:
        offers = {"cpu": "16", "memory": "64Gi", "pods": "110", **({GPU: str(gpus)} if gpus else {})}
        for number in range(count):
            meta = {"name": f"{name}-{number}", "labels": {LANE: lane or self.site.namespace()}}
            yield {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": offers}}

    # --- objects -----------------------------------------------------------------------------------------------------

    def create(self, document: Document, by: Document | None = None) -> dict[str, Any]:
        """Create an object that belongs to another, and return it."""
        meta = {**document["metadata"], **({"ownerReferences": [owner_reference(by)]} if by is not None else {})}
        made = self.api.make(place_of(document), {**document, "metadata": meta})
        assert made.code == 201, made
        return {**made.body, "apiVersion": document["apiVersion"], "kind": document["kind"]}

    def change(self, document: Document, patch: Mapping[str, Any]) -> None:
        """Change an object."""
        changed = self.api.patch(f"{place_of(document)}/{document['metadata']['name']}", patch)
        assert changed.code == 200, changed

    def remove(self, document: Document) -> None:
        """Delete an object; what belongs to it goes afterwards."""
        removed = self.api.remove(f"{place_of(document)}/{document['metadata']['name']}", {"propagationPolicy": "Background"})
        assert removed.code in (200, 202), removed

    # --- pods --------------------------------------------------------------------------------------------------------

    def pods(self, names: Iterable[str], by: Document | None, *, labels: Mapping[str, str] | None = None, **more: Any) -> None:
        """Create pods; `more` are annotations, a number of GPUs, and other fields of their spec."""
        for name in names:
            template = self.template(labels=labels, **more)
            self.create({"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**template["metadata"], "name": name}}, by)

    def remove_pods(self, names: Iterable[str]) -> None:
        """Delete pods."""
        for name in names:
            self.api.remove(f"pods/{name}", {"gracePeriodSeconds": 0})

    def job(self, name: str, by: Document, pods: int, *, labels: Mapping[str, str], **more: Any) -> dict[str, Any]:
        """Create a Job of batch, whose pods Kubernetes makes."""
        template = self.template(labels=labels, restartPolicy="Never", **more)
        spec = {"parallelism": pods, "completions": pods, "template": template}
        return self.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}, by)

    def template(
        self, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None, gpus: int = 1, **spec: Any
    ) -> dict[str, Any]:
        """Return a template of pods that run on the nodes of this operator."""
        limits = {"cpu": "100m", **({GPU: gpus} if gpus else {})}
        container = {"name": "main", "image": "train:1", "resources": {"limits": limits}}
        own = {"schedulerName": SCHEDULER, "nodeSelector": {LANE: self.site.namespace()}, "containers": [container]}
        return {"metadata": {"labels": dict(labels or {}), "annotations": dict(annotations or {})}, "spec": {**own, **spec}}

    def running(self, start: str = "") -> set[str]:
        """Return the pods that run, by their uids."""
        return {pod["metadata"]["uid"] for pod in self.site.pods(start) if pod["status"]["phase"] == "Running"}

    # --- what is said ------------------------------------------------------------------------------------------------

    def warnings(self) -> list[str]:
        """Return the warnings in the namespace, oldest first."""
        events = self.api.read("events").body["items"]
        found = sorted((item for item in events if item["type"] == "Warning"), key=lambda item: str(item["eventTime"]))
        return [f"{item['reason']}: {item['message']}" for item in found]

    def gangs(self) -> dict[str, tuple[str, int]]:
        """Return what `phalanx get gangs` shows: by name the status and the minimum."""
        command = [sys.executable, "-m", "phalanx", "get", "gangs", f"--kubeconfig={self._plane.kubeconfig}", "-o", "json"]
        shown = subprocess.run([*command, "-n", self.site.namespace()], check=True, capture_output=True, text=True).stdout
        return {item["metadata"]["name"]: (item["status"], item["minimum"]) for item in json.loads(shown)["items"]}
