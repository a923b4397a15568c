"""The volumes that pods attach: each takes a slot of its node, which is counted as a resource by CSI driver.

The driver of a claim is that of its volume, or that of its storage class while it has none. A driver that no CSINode names is no
CSI driver, or one that nobody has installed; by `AttachRules` its volumes are not counted, as in kube-scheduler, or counted, as in
Volcano: no node has a slot for them then, and such pods wait until the configuration names the provisioner among those to ignore.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from phalanx.dialects.nodes import slot_name
from phalanx.model.resources import Resources
from phalanx.model.storage import AttachRules
from phalanx.model.task import TaskKey
from phalanx.state.surrounding_tables import SurroundingTables

Document = Mapping[str, Any]
ONE = 1000


class AttachedVolumes:
    """Counts the volumes of pods, and knows which pods to read again when something about volumes changes."""

    def __init__(self, tables: SurroundingTables, rules: AttachRules) -> None:
        """Count by these tables."""
        self._tables, self.rules = tables, rules
        self._pods: dict[TaskKey, tuple[Document, tuple[str, ...], Resources]] = {}
        """Pods with claims: as they were last read, the keys of their claims, and the slots they took then."""
        self._pods_by_claim: dict[str, dict[TaskKey, None]] = {}
        self._volume_by_claim: dict[str, str] = {}
        self._claims_by_volume: dict[str, dict[str, None]] = {}
        self._drivers_by_node: dict[str, frozenset[str]] = {}
        self._nodes_by_driver: Counter[str] = Counter()

    def slots(self, namespace: str, claims: Iterable[str]) -> Resources:
        """Count the slots of a pod with these claims, by driver."""
        drivers = (self._driver(f"{namespace}/{claim}") for claim in claims)
        return {slot_name(driver): count * ONE for driver, count in Counter(filter(self._counts, drivers)).items()}

    def _counts(self, driver: str) -> bool:
        is_known = self.rules.counts_unknown or self._nodes_by_driver[driver] > 0
        return bool(driver) and is_known and driver not in self.rules.ignored

    def _driver(self, key: str) -> str:
        claim = self._tables.table("volume_claims").get(key)
        if claim is None:
            return ""
        volume = self._tables.table("volumes").get(claim.volume)
        if volume is not None:
            return str(volume.csi_driver)
        found = self._tables.table("storage_classes").get(claim.storage_class)
        return "" if found is None or not found.can_provision else str(found.csi_driver or found.provisioner)

    # --- pods --------------------------------------------------------------------------------------------------------

    def has(self, pod: TaskKey) -> bool:
        """Tell whether a pod was read that has claims."""
        return pod in self._pods

    def put(self, pod: TaskKey, document: Document, namespace: str, claims: tuple[str, ...]) -> None:
        """Note how a pod was read."""
        self.remove(pod)
        if claims:
            keys = tuple(f"{namespace}/{claim}" for claim in claims)
            self._pods[pod] = (document, keys, self.slots(namespace, claims))
            for key in keys:
                self._pods_by_claim.setdefault(key, {})[pod] = None

    def remove(self, pod: TaskKey) -> None:
        """Forget a pod."""
        _, keys, _ = self._pods.pop(pod, ({}, (), {}))
        for key in keys:
            _take(self._pods_by_claim, key, pod)

    # --- changes -----------------------------------------------------------------------------------------------------

    def changed(self, table: str, key: str) -> list[Document]:
        """Take an entry of a table as it is now; return the pods that take other slots by it."""
        asked: Iterable[TaskKey] = ()
        if table == "volume_claims":
            self._note_claim(key)
            asked = self._pods_by_claim.get(key, ())
        elif table == "volumes":
            claims = self._claims_by_volume.get(key, ())
            asked = dict.fromkeys(pod for claim in claims for pod in self._pods_by_claim.get(claim, ()))
        elif table == "storage_classes" or (table == "volume_limits" and self._note_limits(key)):
            asked = self._pods
        return self._outdated(asked)

    def follow(self, rules: AttachRules) -> list[Document]:
        """Count by other rules from now on; return the pods that take other slots by them."""
        if rules == self.rules:
            return []
        self.rules = rules
        return self._outdated(self._pods)

    def _outdated(self, pods: Iterable[TaskKey]) -> list[Document]:
        return [document for document, keys, slots in map(self._pods.__getitem__, pods) if self._slots_of(keys) != slots]

    def _slots_of(self, keys: tuple[str, ...]) -> Resources:
        return self.slots(keys[0].partition("/")[0], (key.partition("/")[2] for key in keys))

    def _note_claim(self, key: str) -> None:
        claim, before = self._tables.table("volume_claims").get(key), self._volume_by_claim.pop(key, "")
        if before:
            _take(self._claims_by_volume, before, key)
        if claim is not None and claim.volume:
            self._volume_by_claim[key] = claim.volume
            self._claims_by_volume.setdefault(claim.volume, {})[key] = None

    def _note_limits(self, node: str) -> bool:
        """Note which drivers a node has; tell whether a driver is known now that was not, or the other way round."""
        limits, known = self._tables.table("volume_limits").get(node), set(+self._nodes_by_driver)
        drivers = frozenset() if limits is None else frozenset(limits.limit_by_driver)
        self._nodes_by_driver.subtract(self._drivers_by_node.pop(node, ()))
        self._nodes_by_driver.update(drivers)
        if drivers:
            self._drivers_by_node[node] = drivers
        return not self.rules.counts_unknown and set(+self._nodes_by_driver) != known


def _take(keys: dict[str, dict[Any, None]], key: str, entry: Any) -> None:  # Any: keys of pods or of claims
    """Remove an entry below a key, and the key with the last one."""
    found = keys.get(key, {})
    found.pop(entry, None)
    if not found:
        keys.pop(key, None)
