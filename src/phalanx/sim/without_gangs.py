"""The cluster as a scheduler sees it that knows no gangs: every pod is a gang of one, in the order in which pods were made."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from phalanx.dialects.cluster import Document, ObjectCluster
from phalanx.dialects.group_references import GROUP, with_group_name
from phalanx.model.kinds import object_key
from phalanx.model.task import TaskKey

GROUP_API = "scheduling.volcano.sh/v1beta1"


class SoloCluster(ObjectCluster):
    """Reads objects as an ordinary cluster does, but takes gangs apart."""

    def __init__(self, *, schedulers: frozenset[str] = frozenset()) -> None:
        """Begin with the first pod; those of other schedulers than these, if any, are left to them."""
        super().__init__(schedulers=schedulers)
        self._numbers = count()

    def put(self, document: Document) -> bool:
        """Enter an object; a pod with a group of its own, and no other groups."""
        kind = document.get("kind")
        if kind == "PodGroup":
            return True
        if kind != "Pod":
            return super().put(document)
        if self.state.task(TaskKey(object_key(document))) is None:
            super().put(_group(document, next(self._numbers)))
        return super().put(_alone(document))

    def remove(self, document: Document) -> bool:
        """Take an object away; a pod with its group."""
        if document.get("kind") == "PodGroup":
            return True
        if document.get("kind") == "Pod":
            super().remove(_group(document, 0))
        return super().remove(document)


def _group(pod: Document, number: int) -> dict[str, Any]:
    meta: Mapping[str, Any] = pod["metadata"]
    made = str(meta.get("creationTimestamp") or "1970-01-01T00:00:00Z")
    return {
        "apiVersion": GROUP_API,
        "kind": "PodGroup",
        "metadata": {
            "name": meta["name"], "namespace": meta.get("namespace", "default"),
            "creationTimestamp": f"{made.rstrip('Z')[:19]}.{number % 1_000_000:06}Z",
        },
        "spec": {"minMember": 1, "queue": "default", "priorityClassName": pod["spec"].get("priorityClassName", "")},
        "status": {"phase": "Inqueue"},
    }  # fmt: skip


def _alone(pod: Document) -> dict[str, Any]:
    bare = with_group_name(pod, None)
    annotations = {**(bare["metadata"].get("annotations") or {}), GROUP: pod["metadata"]["name"]}
    return {**bare, "metadata": {**bare["metadata"], "annotations": annotations}}
