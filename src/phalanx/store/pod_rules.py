"""What the API server does for pods in particular: their first status, binding, grace periods, and which fields may be changed."""

from collections.abc import Iterable, Mapping
from typing import Any

from phalanx.errors import Conflict, Invalid, ServerError
from phalanx.model.conditions import BY_EVICTION, DISRUPTION_TARGET, IS_GATED, POD_SCHEDULED
from phalanx.model.kinds import Document
from phalanx.model.task_status import ENDED

DEFAULT_GRACE = 30
MAY_CHANGE = ("tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates")
MAY_CHANGE_WHILE_GATED = ("nodeSelector", "affinity")


def waiting(pod: Document) -> dict[str, Any]:
    """Return a new pod with the status that it begins with."""
    gated = {"conditions": [dict(IS_GATED)]} if pod["spec"].get("schedulingGates") else {}
    return {**pod, "status": {"phase": "Pending", **gated}}


def grace(pod: Document, asked: int | None) -> int:
    """Return how many seconds a pod may take to leave: none unless it is on a node and has not ended."""
    if not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in ENDED:
        return 0
    return asked if asked is not None else int(pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE))


def bound(pod: Document, binding: Document, moment: str) -> dict[str, Any]:
    """Return a pod on the node that a binding names, with the binding's labels and annotations."""
    meta, asked = dict(pod["metadata"]), binding.get("metadata") or {}
    for table in ("labels", "annotations"):
        if asked.get(table):
            meta[table] = {**(meta.get(table) or {}), **asked[table]}
    scheduled = {"type": POD_SCHEDULED, "status": "True", "lastTransitionTime": moment}
    others = [item for item in pod.get("status", {}).get("conditions") or () if item.get("type") != POD_SCHEDULED]
    status = {**pod.get("status", {}), "conditions": [*others, scheduled]}
    status.pop("nominatedNodeName", None)
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": binding["target"]["name"]}, "status": status}


def disrupted(pod: Document, moment: str) -> dict[str, Any]:
    """Return a pod with the condition that the eviction API leaves on it."""
    target = {
        "type": DISRUPTION_TARGET, "status": "True", "reason": BY_EVICTION, "message": "Eviction API: evicting",
        "lastTransitionTime": moment,
    }  # fmt: skip
    others = [item for item in pod.get("status", {}).get("conditions") or () if item.get("type") != DISRUPTION_TARGET]
    return {**pod, "status": {**pod.get("status", {}), "conditions": [*others, target]}}


def refuse_binding(pod: Document, binding: Document) -> None:
    """Raise unless the binding says where to, means this very pod, and the pod waits for one."""
    name, target = pod["metadata"]["name"], binding.get("target") or {}
    if target.get("kind", "") not in ("", "Node"):
        raise ServerError(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise ServerError("target.name: Required value")
    if problem := _other_pod(pod, binding.get("metadata") or {}):
        raise Conflict(f'Operation cannot be fulfilled on pods "{name}": {problem}', kind="pods", name=name)
    if problem := _why_not_bound(pod, name):
        raise Conflict(f'Operation cannot be fulfilled on pods/binding "{name}": {problem}', kind="pods/binding", name=name)


def _other_pod(pod: Document, asked: Document) -> str:
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if asked.get(field) and asked[field] != pod["metadata"][field]:
            meta = pod["metadata"]
            place = f"Code: 4, Key: /registry/pods/{meta['namespace']}/{meta['name']}, ResourceVersion: 0"
            problem = f"Precondition failed: {word} in precondition: {asked[field]}, {word} in object meta: {meta[field]}"
            return f"StorageError: invalid object, {place}, AdditionalErrorMsg: {problem}"
    return ""


def _why_not_bound(pod: Document, name: str) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if pod["spec"].get("schedulingGates") else ""


def refuse_change(old: Document, new: Document) -> None:
    """Raise if something changes that is fixed once a pod was made."""
    if new.get("spec") is old.get("spec"):
        return
    before, after, name = old.get("spec") or {}, new.get("spec") or {}, old["metadata"]["name"]
    gates = before.get("schedulingGates") or []
    if any(gate not in gates for gate in after.get("schedulingGates") or ()):
        raise Invalid.because("Pod", name, "spec.schedulingGates: Forbidden: only deletion is allowed")
    free = {*MAY_CHANGE, *(MAY_CHANGE_WHILE_GATED if gates else ())}
    if _fixed(before, free) != _fixed(after, free):
        text = "pod updates may not change fields other than images, added tolerations, deadlines and removed gates"
        raise Invalid.because("Pod", name, f"spec: Forbidden: {text}; use bind to give it a node")


def _fixed(spec: Document, free: Iterable[str]) -> dict[str, Any]:
    kept = {key: value for key, value in spec.items() if key not in free}
    for group in ("containers", "initContainers"):
        if group in kept:
            kept[group] = [_without_image(container) for container in kept[group]]
    return kept


def _without_image(container: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in container.items() if key != "image"}
