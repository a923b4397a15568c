"""Gangs for a real API server: a PodGroup of Volcano with its pods, ready to be sent, or with a workload that makes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from phalanx.model.kinds import Document
from tests.support.store_contract import Api, eventually

GROUP_NAME = "scheduling.k8s.io/group-name"
Owner = Literal["nobody", "Job", "indexed Job", "StatefulSet", "Deployment"]
OWNERS: tuple[Owner, ...] = get_args(Owner)
"""Who makes the pods of a gang; nobody where they are created by themselves."""
PATIENCE = 10_000
"""A Job counts pods that had to go as failed, and gives up after six by default."""
GROUPS = "scheduling.volcano.sh/v1beta1:podgroups"
WORKLOADS = ("batch/v1:jobs", "apps/v1:statefulsets", "apps/v1:deployments")


class Plane(Protocol):
    """Where objects are created."""

    def create(self, documents: Sequence[Document]) -> None:
        """Create objects, many at once."""
        ...


@dataclass(frozen=True, slots=True)
class Ranks:
    """Who stands in a row: as many pods as the gang needs, all alike."""

    namespace: str
    name: str
    size: int
    scheduler: str
    cpu: str = "1"
    node_labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the group."""
    priority_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the pods."""
    owner: Owner = "nobody"
    tolerated: str = ""
    """The key of a taint that the pods tolerate."""

    def group(self) -> Document:
        """Return the group."""
        meta = {"name": self.name, "namespace": self.namespace, "annotations": dict(self.annotations)}
        spec = {"minMember": self.size, **({"priorityClassName": self.priority_class} if self.priority_class else {})}
        return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}

    def pods(self) -> list[Document]:
        """Return the pods."""
        return [self._pod(f"{self.name}-{number:03}") for number in range(self.size)]

    def members(self) -> list[Document]:
        """Return the pods, or the workload that makes them."""
        return self.pods() if self.owner == "nobody" else [self._workload()]

    def submit(self, plane: Plane) -> None:
        """Create the group, then the pods or the workload that makes them."""
        plane.create([self.group()])
        plane.create(self.members())

    def bound(self, api: Api) -> int:
        """Return how many of its pods have a node and are not on their way out."""
        return api.bound(labelSelector=f"gang={self.name}")

    def _pod(self, name: str) -> dict[str, Any]:
        template = self._template()
        meta = {"name": name, "namespace": self.namespace, **template["metadata"]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}

    def _template(self) -> dict[str, Any]:
        meta = {"annotations": {GROUP_NAME: self.name}, "labels": {"gang": self.name, **self.labels}}
        main = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": self.cpu}}}
        spec = {
            "schedulerName": self.scheduler, "containers": [main], "nodeSelector": dict(self.node_labels),
            **({"priorityClassName": self.priority_class} if self.priority_class else {}),
            **({"tolerations": [{"key": self.tolerated, "operator": "Exists"}]} if self.tolerated else {}),
        }  # fmt: skip
        return {"metadata": meta, "spec": spec}

    def _workload(self) -> dict[str, Any]:
        version, spec = ("batch/v1", self._job()) if "Job" in self.owner else ("apps/v1", self._replicas())
        meta = {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": version, "kind": self.owner.rpartition(" ")[2], "metadata": meta, "spec": spec}

    def _job(self) -> dict[str, Any]:
        template = self._template()
        return {
            "parallelism": self.size, "completions": self.size, "backoffLimit": PATIENCE,
            "completionMode": "Indexed" if self.owner == "indexed Job" else "NonIndexed",
            "template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}},
        }  # fmt: skip

    def _replicas(self) -> dict[str, Any]:
        at_once = {"podManagementPolicy": "Parallel"} if self.owner == "StatefulSet" else {}
        return {"replicas": self.size, "selector": {"matchLabels": {"gang": self.name}}, "template": self._template(), **at_once}


def clear(api: Api) -> None:
    """Remove all pods of a namespace, and first their groups and the workloads that would make them anew."""
    for workloads in (*WORKLOADS, GROUPS):
        api.remove(workloads, {"propagationPolicy": "Background"})
    api.remove("pods", gracePeriodSeconds=0)
    assert eventually(lambda: not api.read("pods").body["items"])
