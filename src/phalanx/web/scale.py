"""The subresource `scale`: how many pods a workload wants and has, whatever its kind."""

from collections.abc import Mapping
from typing import Any

from phalanx.errors import ClusterError
from phalanx.model.kinds import REPLICA_SET, STATEFUL_SET, Document, kind_of

SCALED = frozenset({kind_of({"apiVersion": "apps/v1", "kind": "Deployment"}), REPLICA_SET, STATEFUL_SET})
KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(document: Document) -> dict[str, Any]:
    """Return the scale of a workload."""
    meta, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return {
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {key: meta[key] for key in KEPT if key in meta},
        "spec": {"replicas": spec.get("replicas", 1)}, "status": {"replicas": status.get("replicas", 0), "selector": selector},
    }  # fmt: skip


def rescaled(document: Document, scale: Document) -> dict[str, Any]:
    """Return a workload with the replicas of a scale."""
    wanted = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 0:
        raise ClusterError(f"spec.replicas: expected a whole number from 0 on, got {wanted!r}")
    version = (scale.get("metadata") or {}).get("resourceVersion")
    meta: Mapping[str, Any] = {**document["metadata"], **({"resourceVersion": version} if version else {})}
    return {**document, "metadata": meta, "spec": {**(document.get("spec") or {}), "replicas": wanted}}
