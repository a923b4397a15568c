"""The nodes of a control plane on this machine: objects without machines; kwok keeps them ready and runs their pods in name."""

from dataclasses import dataclass
from typing import Any

from phalanx.dev.programs import PROGRAMS
from phalanx.model.kinds import Document

KWOK_MARK = "kwok.x-k8s.io/node"
"""Annotation of nodes that kwok plays; it leaves all others alone."""
RACK, ZONE = "example.com/rack", "topology.kubernetes.io/zone"

READY = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    "nodeInfo": {"kubeletVersion": f"kwok-{PROGRAMS['kwok'].version}", "operatingSystem": "linux", "architecture": "amd64"},
}
"""Nodes are ready from the start: a thousand of them would take kwok half a minute."""


@dataclass(frozen=True, slots=True)
class Machines:
    """What nodes offer, and how many share a rack and a zone."""

    cpu: str = "96"
    memory: str = "1024Gi"
    gpus: int = 8
    pods: int = 110
    per_rack: int = 8
    per_zone: int = 64

    def documents(self, count: int, first: int = 1) -> list[Document]:
        """Return so many nodes, numbered from the first on."""
        return [self._node(number) for number in range(first, first + count)]

    def _node(self, number: int) -> dict[str, Any]:
        name, place = f"node-{number}", number - 1
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            RACK: f"rack-{place // self.per_rack + 1}",
            ZONE: f"zone-{place // self.per_zone + 1}",
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": {KWOK_MARK: "fake"}},
            "status": {"capacity": self._offers(), "allocatable": self._offers(), **READY},
        }

    def _offers(self) -> dict[str, str]:
        gpus = {"nvidia.com/gpu": str(self.gpus)} if self.gpus else {}
        return {"cpu": self.cpu, "memory": self.memory, "pods": str(self.pods), **gpus}
