"""Volumes of tests: a claim, the class that it asks for, and a pod that uses it."""

from typing import Any

from phalanx.model.kinds import Document


def volume_claim(name: str, class_: str) -> Document:
    """Return a claim of a class."""
    spec = {"storageClassName": class_, "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def storage_class(name: str) -> Document:
    """Return a class whose volumes are made once the node is known."""
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": "disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip


def with_volume(pod: Document, claim: str) -> dict[str, Any]:
    """Return a pod that uses a claim."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}}
