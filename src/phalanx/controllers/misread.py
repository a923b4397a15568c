"""Pods that say nonsense of the gang that they make: they are set aside alone, and told so where their owner looks.

What is wrong is what the dialect says that sets them aside; here it is written on the pod, and an event tells it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from phalanx.controllers.base import Key, Patch, Result, Tell, View, Write
from phalanx.controllers.members import gang_keys, members, waits
from phalanx.controllers.parts import key_of
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.makers import MAKERS
from phalanx.errors import SnapshotError
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, Kind
from phalanx.model.moment import moment_text

MISCONFIGURED = "Misconfigured"
POD_SCHEDULED = "PodScheduled"
GROUPS = tuple(GROUP_BY_DIALECT[dialect] for dialect in MAKERS if dialect in GROUP_BY_DIALECT)
"""Objects that say what a gang is in place of its pods."""


class MisreadPodController:
    """Tells pods what is wrong with what they say of their gang."""

    name = "misread-pods"
    watches: Sequence[Kind] = (POD, *GROUPS)
    brings_back: Sequence[Kind] = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Look at the gang that a pod names: a pod that leaves may have been the one whose word counted."""
        if kind in GROUPS:
            return [key_of(document)]
        return {key for dialect, key in gang_keys(document).items() if dialect in MAKERS}

    def reconcile(self, view: View, key: Key) -> Result:
        """Write what is wrong on the pods with which it is wrong, once."""
        groups = [group for kind in GROUPS if (group := view.find(kind, key.namespace, key.name)) is not None]
        problems = _problems(groups, members(view, key, MAKERS))
        found = [(pod, text) for pod, text in problems if waits(pod) and _said(pod) != text]
        return Result([write for pod, text in found for write in _complaint(pod, text, view.now)])


def _problems(groups: Sequence[Document], pods: Sequence[Document]) -> Iterator[tuple[Document, str]]:
    """Yield the pods that cannot be understood beside all others, the oldest first, each with the reason."""
    cluster = ObjectCluster()
    for document in (*groups, *pods):
        with suppress(SnapshotError):
            cluster.put(document)
    for pod in pods:
        try:
            cluster.put(pod)
        except SnapshotError as problem:
            yield pod, str(problem)


def _said(pod: Document) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((item.get("message", "") for item in conditions if item.get("type") == POD_SCHEDULED), "")


def _complaint(pod: Document, text: str, now: float) -> Iterator[Write]:
    others = [item for item in (pod.get("status") or {}).get("conditions") or () if item.get("type") != POD_SCHEDULED]
    own = {
        "type": POD_SCHEDULED, "status": "False", "reason": MISCONFIGURED, "message": text,
        "lastTransitionTime": moment_text(int(now)),
    }  # fmt: skip
    place = key_of(pod)
    yield Patch(POD, place.namespace, place.name, {"status": {"conditions": [*others, own]}}, is_status=True)
    yield Tell(pod, MISCONFIGURED, text, is_warning=True)
