"""What is wrong with a pod that should be able to do nothing on its node, by the profile `restricted` of Kubernetes and more."""

from collections.abc import Iterable, Iterator
from typing import Any

from phalanx.model.kinds import Document

ALLOWED_VOLUMES = frozenset({"configMap", "emptyDir", "secret", "persistentVolumeClaim"})
HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC")


def faults(spec: Document, *, has_token: bool) -> list[str]:
    """Return what a pod may do that it should not, and what it does not say; `has_token`: it talks to the API server."""
    return [
        *_pod_faults(spec, has_token),
        *(f"{item['name']}: {text}" for item in _containers(spec) for text in _faults(spec, item)),
    ]


def _pod_faults(spec: Document, has_token: bool) -> Iterator[str]:
    if spec.get("automountServiceAccountToken") is not has_token:
        yield f"automountServiceAccountToken is not {has_token}"
    if spec.get("securityContext", {}).get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "no seccomp profile"
    yield from (f"{field} is on" for field in HOST_FIELDS if spec.get(field))
    volumes: Iterable[dict[str, Any]] = spec.get("volumes", ())
    yield from (f"volume {item['name']} is no part of the pod" for item in volumes if not ALLOWED_VOLUMES & item.keys())


def _containers(spec: Document) -> list[dict[str, Any]]:
    return [*spec.get("initContainers", ()), *spec["containers"]]


def _faults(spec: Document, container: dict[str, Any]) -> Iterator[str]:
    own = {**spec.get("securityContext", {}), **container.get("securityContext", {})}
    if own.get("runAsNonRoot") is not True or own.get("runAsUser", 1) == 0:
        yield "may be root"
    if own.get("readOnlyRootFilesystem") is not True:
        yield "writes on its root file system"
    if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
        yield "may gain privileges"
    if own.get("capabilities") != {"drop": ["ALL"]}:
        yield "has capabilities"
    yield from (f"requests no {name}" for name in ("cpu", "memory") if name not in container["resources"].get("requests", {}))
