"""Owners in a few words, as a user writes them, and what comes of submitting them.

made = submissions.submit(submissions.owner("batch/v1", "Job", parallelism=2, template=submissions.template()))
made.names == ["train-00000", "train-00001"]
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from phalanx.controllers.builtin import ControllerSettings
from phalanx.model.kinds import Document
from phalanx.store.submission import Submission, submitted
from phalanx.testing import build

NOW = 1000.0
Texts = Mapping[str, str]


def template(labels: Texts | None = None, *, gpus: int = 1, scheduler: str = "phalanx", **spec: Any) -> dict[str, Any]:
    """Return a pod template of one container that asks for GPUs."""
    container = {"name": "main", "image": "train:1", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": str(gpus)}}}
    return {"metadata": {"labels": dict(labels or {})}, "spec": {"schedulerName": scheduler, "containers": [container], **spec}}


def owner(api_version: str, kind: str, name: str = "train", *, annotations: Texts | None = None, **spec: Any) -> dict[str, Any]:
    """Return an object as a manifest has it: no uid, no status, and what the API server insists on."""
    if api_version == "batch/v1" and "template" in spec:
        spec["template"] = {**spec["template"], "spec": {"restartPolicy": "Never", **spec["template"]["spec"]}}
    if api_version == "apps/v1":
        labels = {**spec["template"]["metadata"]["labels"], "set": name}
        spec = {
            "selector": {"matchLabels": {"set": name}},
            **spec,
            "template": {**spec["template"], "metadata": {"labels": labels}},
        }
    meta: dict[str, Any] = {"name": name, "namespace": "ml", **({"annotations": dict(annotations)} if annotations else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


@dataclass(frozen=True, slots=True)
class Submitted:
    """What came of a submission."""

    found: Submission

    def of(self, kind: str) -> list[Document]:
        """Return the objects of a kind."""
        return [item for item in self.found.documents if item["kind"] == kind]

    @property
    def pods(self) -> dict[str, Document]:
        """The pods by name."""
        return {pod["metadata"]["name"]: pod for pod in self.of("Pod")}

    @property
    def names(self) -> list[str]:
        """The names of the pods."""
        return list(self.pods)

    @property
    def minima(self) -> dict[str, int]:
        """The minimum of each group, by its name up to the uid."""
        return {group["metadata"]["name"].partition("-0000")[0]: group["spec"]["minMember"] for group in self.of("PodGroup")}

    def label(self, key: str) -> list[str]:
        """Return one label of all pods."""
        return [pod["metadata"]["labels"].get(key, "") for pod in self.pods.values()]

    def decided(self, cluster: build.Cluster) -> build.Cycle:
        """Hold one session on a cluster with the submission."""
        for document in self.found.documents:
            cluster.objects.put(document)
        return cluster.run_cycle(now=NOW)


def submit(*new: Document, existing: Iterable[Document] = (), settings: ControllerSettings | None = None) -> Submitted:
    """Submit objects to a cluster."""
    return Submitted(submitted(new, existing, settings, now=NOW))
