"""Kubernetes' own PodGroups in a few words, for tests.

world.submit([native.gang("train", tasks=3, gpus=1)])
"""

from collections.abc import Mapping
from typing import Any

from phalanx.testing import build
from phalanx.testing.build import Document

API = "scheduling.k8s.io"


def group(name: str, *, min_count: int | None = None, version: str = "v1alpha2", **spec: Any) -> Document:
    """Return a PodGroup; without a minimum its policy is basic. `spec` holds further fields by their names in the API."""
    policy: Document = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {
        "apiVersion": f"{API}/{version}", "kind": "PodGroup",
        "metadata": {"namespace": "default", "name": name, "uid": f"{name}-uid"},
        "spec": {"schedulingPolicy": policy, **spec},
    }  # fmt: skip


def pod(name: str, group: str, *, spec: Document | None = None, **asks: Any) -> Document:
    """Return a pod that names a group."""
    return build.pod(name, spec={"schedulingGroup": {"podGroupName": group}, **(spec or {})}, **asks)


def pods(group: str, tasks: int, **asks: Any) -> list[Document]:
    """Return pods of a group, called ``GROUP-0`` and so on."""
    return [pod(f"{group}-{number}", group, **asks) for number in range(tasks)]


def gang(name: str, *, tasks: int, min_count: int | None = None, spec: Document | None = None, **asks: Any) -> list[Document]:
    """Return a PodGroup and its pods; all of them are needed unless said otherwise."""
    return [group(name, min_count=tasks if min_count is None else min_count, **(spec or {})), *pods(name, tasks, **asks)]


def priority_class(name: str, value: int) -> Document:
    """Return a PriorityClass."""
    return {"apiVersion": f"{API}/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def kubernetes_condition(group: Mapping[str, Any]) -> Document:
    """Return the one condition of a group that tells whether it is scheduled; empty without it."""
    conditions = group.get("status", {}).get("conditions") or []
    return next((item for item in conditions if item["type"].startswith("PodGroup")), {})
