"""What device plugins, provisioners and Kubernetes' volume controller do: a pod that reserves a GPU is told which one it got, a
volume claim for which a node was chosen gets a volume, and one for which a volume is reserved gets that.
"""

from collections.abc import Callable

from phalanx.controllers.binder.gpu_reservations import is_reservation
from phalanx.controllers.binder.preparation import SELECTED_NODE
from phalanx.controllers.binder.reservation_pod import DEVICE
from phalanx.controllers.objects import annotations_of, inside, key_of
from phalanx.errors import ClusterError
from phalanx.model.kinds import POD, VOLUME, VOLUME_CLAIM, Document
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.sim.virtual_time import Precedence, VirtualTime
from phalanx.store.memory import MemoryStore

PROVISIONING_SECONDS = 1.0


class Devices:
    """Follows reservation pods and volume claims."""

    def __init__(self, store: MemoryStore, time: VirtualTime) -> None:
        """Begin to listen."""
        self._store, self._time = store, time
        store.listen(self._hear)

    def _hear(self, event: WatchEvent) -> None:
        if event.type == DELETED:
            return
        if event.kind is POD and _lacks_device(event.object):
            self._time.after(0, Precedence.KUBELET, lambda: self._try(self._name_device, event.object))
        elif event.kind is VOLUME_CLAIM and _lacks_volume(event.object):
            self._time.after(PROVISIONING_SECONDS, Precedence.KUBELET, lambda: self._try(self._provision, event.object))
        elif event.kind is VOLUME and inside(event.object, "spec", "claimRef"):
            self._time.after(0, Precedence.KUBELET, lambda: self._try(self._give, event.object))

    def _try(self, deed: Callable[[Document], None], document: Document) -> None:
        try:
            deed(document)
        except ClusterError:
            return  # it is gone meanwhile

    def _name_device(self, pod: Document) -> None:
        """Give a reservation pod the first device of its node that no other one has."""
        node, key = inside(pod, "spec", "nodeName"), key_of(pod)
        others = (other for other in self._store.within(POD, key.namespace) if inside(other, "spec", "nodeName") == node)
        taken = {annotations_of(other).get(DEVICE) for other in others if is_reservation(other)}
        index = next(str(number) for number in range(len(taken) + 1) if str(number) not in taken)
        self._store.patch(POD, key.namespace, key.name, {"metadata": {"annotations": {DEVICE: index}}})

    def _provision(self, old: Document) -> None:
        """Make a volume for a claim that still waits for one on that node."""
        key = key_of(old)
        claim = self._store.get(VOLUME_CLAIM, key.namespace, key.name)
        if not _lacks_volume(claim) or annotations_of(claim)[SELECTED_NODE] != annotations_of(old)[SELECTED_NODE]:
            return
        self._store.create(_volume(f"pvc-{claim['metadata']['uid']}", claim))

    def _give(self, volume: Document) -> None:
        """Give a claim the volume that is reserved for it."""
        reference, name = volume["spec"]["claimRef"], volume["metadata"]["name"]
        place = (reference["namespace"], reference["name"])
        claim = self._store.find(VOLUME_CLAIM, *place)
        if claim is None or claim["metadata"]["uid"] != reference.get("uid") or inside(claim, "spec", "volumeName"):
            return
        self._store.patch(VOLUME_CLAIM, *place, {"spec": {"volumeName": name}})
        self._store.patch(VOLUME_CLAIM, *place, {"status": {"phase": "Bound"}}, is_status=True)
        self._store.patch(VOLUME, "", name, {"status": {"phase": "Bound"}}, is_status=True)


def _lacks_device(pod: Document) -> bool:
    return is_reservation(pod) and inside(pod, "status", "phase") == "Running" and DEVICE not in annotations_of(pod)


def _lacks_volume(claim: Document) -> bool:
    return SELECTED_NODE in annotations_of(claim) and not inside(claim, "spec", "volumeName")


def _volume(name: str, claim: Document) -> Document:
    spec, key = claim["spec"], key_of(claim)
    reference = {"kind": "PersistentVolumeClaim", "namespace": key.namespace, "name": key.name, "uid": claim["metadata"]["uid"]}
    capacity = inside(spec, "resources", "requests") or {}
    given = {
        "capacity": dict(capacity), "accessModes": spec.get("accessModes") or [], "claimRef": reference,
        "storageClassName": spec.get("storageClassName", ""),
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": given}
