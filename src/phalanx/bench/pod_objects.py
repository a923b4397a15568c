"""Gangs as objects of an API server: bare ones as in examples, and real ones with all that admission and controllers add.

A real pod has a volume for its token with a name of its own, labels and annotations with its index and with hashes, an owner,
default tolerations. None of it tells placement anything, so a cycle with real pods should take as long as one with bare pods.
"""

from collections.abc import Iterator
from typing import Any

from phalanx.dialects.cluster import ObjectCluster

Document = dict[str, Any]

INDEX = "batch.kubernetes.io/job-completion-index"
GROUP = "scheduling.k8s.io/group-name"
NAMESPACE = "bench"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


def put_gangs(cluster: ObjectCluster, *, pods: int, gang: int, is_real: bool) -> None:
    """Enter gangs of equal size, waiting for their admission."""
    for document in gang_objects(pods=pods, gang=gang, is_real=is_real):
        cluster.put(document)


def gang_objects(*, pods: int, gang: int, is_real: bool) -> Iterator[Document]:
    """Yield gangs of equal size, each with its group first."""
    for number in range(pods // gang):
        yield _group(number, gang)
        for member in range(gang):
            pod = _pod(number, member)
            yield as_made_by_a_job(pod, number, member) if is_real else pod


def _group(number: int, gang: int) -> Document:
    meta = {"name": f"gang-{number}", "namespace": NAMESPACE, "uid": f"uid-gang-{number}", "creationTimestamp": _stamp(number)}
    resources = {"cpu": str(4 * gang), "memory": f"{16 * gang}Gi"}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta,
        "spec": {"minMember": gang, "minResources": resources},
    }  # fmt: skip


def _pod(number: int, member: int) -> Document:
    name = f"gang-{number}-{member}"
    meta = {
        "name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "creationTimestamp": _stamp(number),
        "labels": {"app": f"gang-{number}"}, "annotations": {GROUP: f"gang-{number}"},
    }  # fmt: skip
    worker = {
        "name": "worker", "image": "registry.example/worker:1", "resources": {"requests": {"cpu": "4", "memory": "16Gi"}}
    }  # fmt: skip
    spec = {"schedulerName": "phalanx", "containers": [worker]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def as_made_by_a_job(pod: Document, number: int, member: int) -> Document:
    """Return a pod as an indexed Job of some number and the admission of a real API server make it."""
    meta, spec, token = pod["metadata"], pod["spec"], f"kube-api-access-{number:x}{member:05x}"
    mount = {"name": token, "mountPath": TOKEN, "readOnly": True}
    labels, notes = {**meta.get("labels", {}), **_labels(number, member)}, {**meta.get("annotations", {}), INDEX: str(member)}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"gang-{number}", "uid": f"uid-job-{number}", "controller": True}
    return {
        **pod,
        "metadata": {**meta, "annotations": notes, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            **spec, "hostname": meta["name"], "serviceAccountName": "default",
            "tolerations": [*spec.get("tolerations", ()), *_tolerations()],
            "containers": [{**container, "volumeMounts": [mount]} for container in spec["containers"]],
            "volumes": [*spec.get("volumes", ()), {"name": token, "projected": {"defaultMode": 420, "sources": []}}],
        },
    }  # fmt: skip


def _labels(number: int, member: int) -> dict[str, str]:
    owner = f"{number:08x}-0000-4000-8000-000000000000"
    return {
        INDEX: str(member), "batch.kubernetes.io/controller-uid": owner, "controller-uid": owner,
        "batch.kubernetes.io/job-name": f"gang-{number}", "job-name": f"gang-{number}",
        "pod-template-hash": f"{number * 7919 + member:010x}",
    }  # fmt: skip


def _tolerations() -> Iterator[Document]:
    for key in ("not-ready", "unreachable"):
        yield {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _stamp(number: int) -> str:
    minutes, seconds = divmod(number, 60)
    return f"2026-01-01T{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}Z"
