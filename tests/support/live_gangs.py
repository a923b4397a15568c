"""Gangs for a real API server: a PodGroup of Volcano with its pods, ready to be sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from phalanx.model.kinds import Document
from tests.support.store_contract import Api

GROUP_NAME = "scheduling.k8s.io/group-name"


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

    def group(self) -> Document:
        """Return the group."""
        meta = {"name": self.name, "namespace": self.namespace, "annotations": dict(self.annotations)}
        spec = {"minMember": self.size, **({"priorityClassName": self.priority_class} if self.priority_class else {})}
        return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}

    def pods(self) -> list[Document]:
        """Return the pods."""
        return [self._pod(f"{self.name}-{number:03}") for number in range(self.size)]

    def submit(self, plane: Plane) -> None:
        """Create the group, then the pods."""
        plane.create([self.group()])
        plane.create(self.pods())

    def bound(self, api: Api) -> int:
        """Return how many of its pods have a node and are not on their way out."""
        return api.bound(labelSelector=f"gang={self.name}")

    def _pod(self, name: str) -> dict[str, Any]:
        meta = {
            "name": name, "namespace": self.namespace, "annotations": {GROUP_NAME: self.name},
            "labels": {"gang": self.name, **self.labels},
        }  # fmt: skip
        main = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": self.cpu}}}
        spec = {
            "schedulerName": self.scheduler, "containers": [main], "nodeSelector": dict(self.node_labels),
            **({"priorityClassName": self.priority_class} if self.priority_class else {}),
        }  # fmt: skip
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
