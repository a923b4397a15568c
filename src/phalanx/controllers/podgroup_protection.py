"""Lets a PodGroup of Kubernetes go that is being deleted, once no pod needs it any more.

The API server puts a finalizer on every PodGroup; only kube-controller-manager with the feature gate GenericWorkload takes it off.
On clusters without that a deleted group would stay for ever. Where both do it, the second finds nothing left to do.
"""

from collections.abc import Iterable

from phalanx.controllers.controller import NOTHING, Key, Patch, Result, View
from phalanx.controllers.objects import is_leaving, key_of, meta_of
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, Kind
from phalanx.model.task_status import ENDED

GROUP = GROUP_BY_DIALECT["native"]
FINALIZER = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtection:
    """Removes the finalizer of groups that are being deleted."""

    name = "podgroup-protection"
    watches = (GROUP, POD)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the group, or the group that a pod names."""
        key = key_of(document)
        if kind is GROUP:
            return [key]
        name = _group_of(document)
        return [Key(key.namespace, name)] if name else []

    def reconcile(self, view: View, key: Key) -> Result:
        """Take the finalizer off when the last pod that could still run has gone."""
        group = view.find(GROUP, key.namespace, key.name)
        finalizers = list(meta_of(group).get("finalizers") or ()) if group is not None else []
        if group is None or not is_leaving(group) or FINALIZER not in finalizers or _is_needed(view, key):
            return NOTHING
        left = [name for name in finalizers if name != FINALIZER]
        meta = {"finalizers": left, "resourceVersion": meta_of(group)["resourceVersion"]}
        return Result([Patch(GROUP, key.namespace, key.name, {"metadata": meta})])


def _group_of(pod: Document) -> str:
    return str(((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName") or "")


def _is_needed(view: View, key: Key) -> bool:
    pods = (pod for pod in view.within(POD, key.namespace) if _group_of(pod) == key.name)
    return any((pod.get("status") or {}).get("phase") not in ENDED for pod in pods)
