"""Pods that say nonsense of the gang that they make: they are set aside alone, and told so where their owner looks.

What is wrong is what the dialect says that sets them aside; here it is written on the pod, and an event tells it.
"""

from collections.abc import Iterable, Iterator, Sequence

from phalanx.controllers.base import Key, Patch, Result, Tell, View, Write
from phalanx.controllers.members import gang_key, members, waits
from phalanx.controllers.parts import key_of
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.makers import MAKERS
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD, Document, Kind
from phalanx.model.moment import moment_text

MISCONFIGURED = "Misconfigured"
SCHEDULED = "PodScheduled"


class MisreadPodController:
    """Tells pods what is wrong with what they say of their gang."""

    name = "misread-pods"
    watches: Sequence[Kind] = (POD,)
    brings_back: Sequence[Kind] = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Look at the gang that a pod names: a pod that leaves may have been the one whose word counted."""
        keys = (gang_key(document, dialect) for dialect in MAKERS)
        return [key for key in keys if key is not None]

    def reconcile(self, view: View, key: Key) -> Result:
        """Write what is wrong on the pods with which it is wrong, once."""
        pods = {pod["metadata"]["name"]: pod for dialect in MAKERS for pod in members(view, key, dialect)}
        found = [(pod, text) for pod, text in _problems(pods.values()) if waits(pod) and _said(pod) != text]
        return Result([write for pod, text in found for write in _complaint(pod, text, view.now)])


def _problems(pods: Iterable[Document]) -> Iterator[tuple[Document, str]]:
    """Yield the pods that cannot be understood beside the others, the oldest first, each with the reason."""
    cluster = ObjectCluster()
    for pod in pods:
        try:
            cluster.put(pod)
        except SnapshotError as problem:
            yield pod, str(problem)


def _said(pod: Document) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((item.get("message", "") for item in conditions if item.get("type") == SCHEDULED), "")


def _complaint(pod: Document, text: str, now: float) -> Iterator[Write]:
    others = [item for item in (pod.get("status") or {}).get("conditions") or () if item.get("type") != SCHEDULED]
    own = {
        "type": SCHEDULED, "status": "False", "reason": MISCONFIGURED, "message": text, "lastTransitionTime": moment_text(int(now)),
    }  # fmt: skip
    place = key_of(pod)
    yield Patch(POD, place.namespace, place.name, {"status": {"conditions": [*others, own]}}, is_status=True)
    yield Tell(pod, MISCONFIGURED, text, is_warning=True)
