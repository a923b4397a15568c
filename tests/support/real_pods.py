"""Pods as a real API server and real controllers make them: what is added to each pod, and differs from pod to pod."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

Document = dict[str, Any]

INDEX = "batch.kubernetes.io/job-completion-index"


def as_made_by_controllers(documents: Iterable[Document]) -> list[Document]:
    """Return objects in which each pod has what admission and an indexed Job add to it."""
    return [
        _with_own_parts(document, number) if document.get("kind") == "Pod" else document
        for number, document in enumerate(documents)
    ]


def _with_own_parts(document: Document, number: int) -> Document:
    pod = deepcopy(document)
    meta, spec = pod["metadata"], pod["spec"]
    token = f"kube-api-access-{number:05x}"
    meta["labels"] = {
        **(meta.get("labels") or {}), INDEX: str(number), "batch.kubernetes.io/controller-uid": f"uid-{number // 7}",
        "pod-template-hash": f"{number * 7919:010x}", "apps.kubernetes.io/pod-index": str(number),
    }  # fmt: skip
    meta["annotations"] = {**(meta.get("annotations") or {}), INDEX: str(number)}
    spec["hostname"], spec["serviceAccountName"] = f"{meta['name']}-host", "default"
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": token, "projected": {"sources": []}}]
    for container in spec["containers"]:
        container["volumeMounts"] = [{"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    return pod
