"""Changes of volume claims: bound to a volume that any node can use, or gone."""

from dataclasses import dataclass

from phalanx.dialects.supporting import BOUND
from phalanx.model.kinds import VOLUME_CLAIM, Document, split_key
from phalanx.whatif.changes.object_change import ObjectChange, edited, found_in, namespaced, part
from phalanx.whatif.trial_cluster import Edit, TrialCluster


@dataclass(frozen=True, slots=True)
class ClaimChange(ObjectChange):
    """What would be different about a PersistentVolumeClaim."""

    word = "pvc"
    states = ("bound", "gone")

    def edits(self, cluster: TrialCluster) -> list[Edit]:
        """Return the objects that it changes; a claim that does not exist is made where it is to be bound."""
        if self.value == "bound":
            claim = cluster.find(VOLUME_CLAIM, namespaced(self.name))
            return [Edit(None, self._volume(claim or {})), Edit(claim, self._bound(claim))]
        return self.gone(found_in(cluster, self, VOLUME_CLAIM))

    @property
    def _volume_name(self) -> str:
        return f"volume-for-{'-'.join(split_key(namespaced(self.name)))}"

    def _volume(self, claim: Document) -> Document:
        """Return a volume that suits a claim; no node is too far away for it."""
        namespace, name = split_key(namespaced(self.name))
        spec = {
            "capacity": {"storage": part(claim, "spec", "resources", "requests", "storage") or "1Gi"},
            "accessModes": part(claim, "spec", "accessModes") or ["ReadWriteMany"],
            "storageClassName": part(claim, "spec", "storageClassName") or "",
            "claimRef": {"namespace": namespace, "name": name},
        }
        meta = {"name": self._volume_name}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec, "status": {"phase": "Bound"}}

    def _bound(self, claim: Document | None) -> Document:
        namespace, name = split_key(namespaced(self.name))
        made = {
            "apiVersion": VOLUME_CLAIM.api_version,
            "kind": VOLUME_CLAIM.kind,
            "metadata": {"namespace": namespace, "name": name},
        }
        found = edited(claim or made, "spec", "volumeName", to=self._volume_name)
        found = edited(found, "metadata", "annotations", BOUND, to="yes")
        return edited(edited(found, "metadata", "deletionTimestamp", to=None), "status", "phase", to="Bound")
