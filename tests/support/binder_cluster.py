"""A binder at work on a small cluster, for tests: requests are made by hand, pods start, GPUs and volumes are given out.

stage = BindStage(nodes=2)
stage.ask(kai.gang("train", tasks=2, gpus=1), on=["node-0", "node-1"])
stage.run(5)
assert stage.phases() == {"train-0": "Succeeded", "train-1": "Succeeded"}
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from phalanx.controllers.binder.controller import Binder
from phalanx.controllers.binder.gpu_reservations import GpuReservations
from phalanx.controllers.binder.reservation_pod import HOME
from phalanx.controllers.controller import Controller
from phalanx.manifests.gpu_reservations import home_documents
from phalanx.model.kinds import BIND_REQUEST, NODE, POD, Document
from phalanx.model.watch_event import WatchEvent
from phalanx.sim.claim_controller import ClaimKeeping
from phalanx.sim.device_plugins import Devices
from phalanx.sim.faults import Faults
from phalanx.sim.kubelets import Kubelets
from phalanx.sim.replacement_pods import ReplacementPods
from phalanx.sim.settings import Settings
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support.controller_store import Stage


class BindStage(Stage):
    """Equal nodes ``node-0`` and so on, kubelets, devices, and a binder or what a test puts in its place."""

    def __init__(self, *controllers: Controller, nodes: int = 2) -> None:
        """Begin without pods."""
        super().__init__(*(controllers or (Binder(), GpuReservations())))
        settings = Settings()
        kubelets = Kubelets(self.store, self.time, settings, Random(0))
        Devices(self.store, self.time)
        ClaimKeeping(self.store, self.time)
        self.make(*home_documents({}))
        self.faults = Faults(self.store, kubelets, ReplacementPods(self.store, self.time, settings, lambda pod: True))
        self.binds: list[str] = []
        """Pods that were given a node, each time they were."""
        self.store.listen(self._hear)
        self.make(*(build.node(f"node-{number}", cpu=64, gpus=4) for number in range(nodes)))

    def _hear(self, event: WatchEvent) -> None:
        had_node = event.before is not None and event.before["spec"].get("nodeName") if event.kind is POD else True
        if not had_node and event.object["spec"].get("nodeName") and event.object["metadata"]["namespace"] != HOME:
            self.binds.append(event.object["metadata"]["name"])

    def ask(self, gang: Sequence[Document], *, on: Sequence[str], devices: Sequence[str] = (), **spec: Any) -> None:
        """Create a gang, and a request for each of its pods; `spec` holds further fields of the requests."""
        made = [self.store.create(document) for document in gang]
        pods = [document for document in made if document["kind"] == "Pod"]
        for pod, node in zip(pods, on, strict=False):
            self.request(pod, node, devices=devices, **spec)

    def request(self, pod: Document, node: str, *, devices: Sequence[str] = (), **spec: Any) -> Document:
        """Ask for a bind."""
        meta = pod["metadata"]
        document = kai.bind_request(meta["name"], node, groups=devices)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        fields = {"receivedResourceType": "Fraction" if devices else "Regular", **document["spec"], **spec}
        named = {"namespace": meta["namespace"], "name": meta["name"], "ownerReferences": [owner]}
        return self.store.create({**document, "metadata": named, "spec": fields})

    def remove_node(self, name: str) -> None:
        """Take a node away; pods on it stay as they are."""
        self.store.delete(NODE, "", name)

    def phases(self) -> dict[str, str]:
        """Return how far each request got."""
        found = self.store.items(BIND_REQUEST)
        return {item["metadata"]["name"]: (item.get("status") or {}).get("phase", "Pending") for item in found}

    def reasons(self) -> dict[str, str]:
        """Return what each request says went wrong."""
        return {item["metadata"]["name"]: (item.get("status") or {}).get("reason", "") for item in self.store.items(BIND_REQUEST)}

    def places(self) -> dict[str, str]:
        """Return the nodes of the pods that have one and stay."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in self.store.items(POD)
            if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["namespace"] != HOME
        }  # fmt: skip

    def reservations(self) -> list[str]:
        """Return the pods that reserve GPUs and stay."""
        found = self.store.within(POD, HOME)
        return [pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]]
