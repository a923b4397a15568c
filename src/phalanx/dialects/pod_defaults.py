"""What the API server writes into a new pod: the defaults of its fields, and what admission plugins add to it.

Used wherever pods begin: when one is created in the store in memory, and when one is read from a manifest. To complete a pod twice
changes nothing. Pods that an API server has stored are complete already, and nobody completes them again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from phalanx.dialects import schema
from phalanx.dialects.pods import pod_request
from phalanx.dialects.reading import read_as
from phalanx.errors import Forbidden, SnapshotError
from phalanx.kubernetes.taints import OF_UNREADY_NODES
from phalanx.model.kinds import LIMIT_RANGE, PRIORITY, RUNTIME_CLASS, Document, Kind
from phalanx.model.resources import CPU, MEMORY, quantity_text
from phalanx.model.task import DEFAULT_SCHEDULER

DEFAULTS: Document = {
    "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": DEFAULT_SCHEDULER, "terminationGracePeriodSeconds": 30,
    "securityContext": {},
}  # fmt: skip
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""
TOLERATED_SECONDS = 300
"""Every pod stays this long on a node that fails, unless it says otherwise."""
CONTAINERS = ("containers", "initContainers")

Spec = dict[str, Any]  # plain data


class AdmissionObjects(Protocol):
    """The objects of the cluster that admission reads."""

    def within(self, kind: Kind, namespace: str = "") -> Iterable[Document]: ...


def completed_pod(pod: Document, objects: AdmissionObjects) -> dict[str, Any]:
    """Return a pod as the API server stores it; one whose priority class does not exist is refused."""
    spec = _with_host_ports(with_implied_requests({**DEFAULTS, **(pod.get("spec") or {})}))
    for limits in objects.within(LIMIT_RANGE, str(pod["metadata"].get("namespace") or "default")):
        spec = _limited(spec, limits)
    spec = _run_as_class_says(spec, objects)
    _prioritise(spec, pod, objects.within(PRIORITY))
    return {**pod, "spec": _tolerating(spec)}


# --- requests ------------------------------------------------------------------------------------------------------------


def with_implied_requests(spec: Document) -> Spec:
    """Return the spec of a pod in which a limit without a request is the request too, of containers and of the whole pod."""
    groups = {group: [_with_implied_requests(item) for item in spec[group]] for group in CONTAINERS if spec.get(group)}
    return _with_pod_requests({**spec, **groups})


def _with_implied_requests(container: Document) -> Document:
    resources = container.get("resources") or {}
    if not resources.get("limits"):
        return container
    return {**container, "resources": {**resources, "requests": {**resources["limits"], **(resources.get("requests") or {})}}}


def _with_pod_requests(spec: Spec) -> Spec:
    """Let a pod that limits itself as a whole ask for what its containers ask for together, or else for its limits."""
    resources = spec.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    missing = {name: amount for name, amount in limits.items() if _is_of_whole_pods(name) and name not in requests}
    if not missing:
        return spec
    return {**spec, "resources": {**resources, "requests": {**missing, **_of_containers(spec), **requests}}}


def _of_containers(spec: Spec) -> dict[str, str]:
    try:
        own = read_as({group: spec[group] for group in CONTAINERS if spec.get(group)}, schema.ShapeSpec)
        total = pod_request(own, pod_level=False)
    except (msgspec.ValidationError, SnapshotError):
        return {}  # whoever reads the pod says where it is wrong
    return {name: quantity_text(name, amount) for name, amount in total.items() if name in (CPU, MEMORY) and amount}


def _is_of_whole_pods(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


# --- ports ---------------------------------------------------------------------------------------------------------------


def _with_host_ports(spec: Spec) -> Spec:
    """Let a pod in the network of its node take the ports of its containers there."""
    if spec.get("hostNetwork") is not True:
        return spec
    return {**spec, **{group: [_on_host(item) for item in spec[group]] for group in CONTAINERS if spec.get(group)}}


def _on_host(container: Document) -> Document:
    if not container.get("ports"):
        return container
    ports = [{**port, "hostPort": port.get("hostPort") or port.get("containerPort")} for port in container["ports"]]
    return {**container, "ports": ports}


# --- LimitRanger ---------------------------------------------------------------------------------------------------------


def _limited(spec: Spec, limit_range: Document) -> Spec:
    """Give containers the defaults of a LimitRange for what they say nothing about."""
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            spec = {
                **spec,
                **{group: [_with(each, requests, limits) for each in spec[group]] for group in CONTAINERS if spec.get(group)},
            }
    return spec


def _with(container: Document, requests: Document, limits: Document) -> Document:
    own = container.get("resources") or {}
    found = {"requests": {**requests, **(own.get("requests") or {})}, "limits": {**limits, **(own.get("limits") or {})}}
    return {**container, "resources": {**own, **{name: amounts for name, amounts in found.items() if amounts}}}


# --- RuntimeClass --------------------------------------------------------------------------------------------------------


def _run_as_class_says(spec: Spec, objects: AdmissionObjects) -> Spec:
    """Add what the runtime of a pod takes itself, and which nodes have it."""
    name = spec.get("runtimeClassName")
    found = next((item for item in objects.within(RUNTIME_CLASS) if item["metadata"]["name"] == name), None) if name else None
    if found is None:
        return spec
    overhead, place = (found.get("overhead") or {}).get("podFixed"), found.get("scheduling") or {}
    selector = {**(spec.get("nodeSelector") or {}), **(place.get("nodeSelector") or {})}
    others = [item for item in place.get("tolerations") or () if item not in (spec.get("tolerations") or ())]
    tolerations = [*(spec.get("tolerations") or ()), *others]
    made = {"overhead": overhead, "nodeSelector": selector, "tolerations": tolerations}
    return {**spec, **{key: value for key, value in made.items() if value}}


# --- Priority ------------------------------------------------------------------------------------------------------------


def _prioritise(spec: Spec, pod: Document, classes: Iterable[Document]) -> None:
    """Write the value of the priority class. A pod that has one keeps it where the class is unknown: its cluster had the class."""
    name = spec.get("priorityClassName") or ""
    found = _named(name, classes) if name else _default(classes)
    if found is not None:
        spec |= {"priority": found["value"], "priorityClassName": found["metadata"]["name"]}
        spec.setdefault("preemptionPolicy", found.get("preemptionPolicy") or "PreemptLowerPriority")
    elif name and "priority" not in spec:
        whose = str(pod["metadata"].get("name", ""))
        raise Forbidden(f'pods "{whose}" is forbidden: no PriorityClass with name {name} was found', kind="pods", name=whose)
    spec.setdefault("priority", 0)


def _named(name: str, classes: Iterable[Document]) -> Document | None:
    if name in SYSTEM_CLASSES:
        return {"metadata": {"name": name}, "value": SYSTEM_CLASSES[name]}
    return next((item for item in classes if item["metadata"]["name"] == name), None)


def _default(classes: Iterable[Document]) -> Document | None:
    return min((item for item in classes if item.get("globalDefault")), key=lambda item: int(item["value"]), default=None)


# --- DefaultTolerationSeconds --------------------------------------------------------------------------------------------


def _tolerating(spec: Spec) -> Spec:
    own = spec.get("tolerations") or []
    added = [_for_a_while(key) for key in OF_UNREADY_NODES if not any(_covers(item, key) for item in own)]
    return {**spec, "tolerations": [*own, *added]} if added else spec


def _for_a_while(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_SECONDS}


def _covers(toleration: Mapping[str, Any], key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")
