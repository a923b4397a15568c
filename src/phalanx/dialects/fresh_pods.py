"""Pods that come back: as they were submitted, without anything that happened to them."""

from typing import Any

from phalanx.dialects.gates import as_made
from phalanx.dialects.pods import GPU_GROUP
from phalanx.model.kinds import Document

_OF_THE_OLD_POD = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def fresh(pod: Document) -> dict[str, Any]:
    """Return a pod as it was submitted: without a node, and nothing that happened to it."""
    pod = as_made(pod)
    meta = {key: value for key, value in pod["metadata"].items() if key not in _OF_THE_OLD_POD}
    if meta.get("labels"):
        meta["labels"] = {name: text for name, text in meta["labels"].items() if name.partition("/")[0] != GPU_GROUP}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
