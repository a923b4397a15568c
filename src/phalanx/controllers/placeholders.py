"""Placeholder pods of YuniKorn's applications: they hold the places of pods that the originator creates once it runs.

They are members of the gang like all others, so it starts only when there is room for the whole of it. When a pod of a task group
comes later, a session nominates it for the node of a placeholder of that group (`actions/placeholders.py`); which placeholder it
replaces is then written on the pod, and the placeholder is deleted. A crash in between loses nothing: all of it is on objects.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from phalanx.controllers.controller import Create, Delete, Key, Patch, Write
from phalanx.controllers.gang_pods import has_started, waits
from phalanx.controllers.objects import annotations_of, inside, is_leaving, key_of, labels_of, meta_of, owner_reference
from phalanx.dialects.group_references import YUNIKORN_APP
from phalanx.dialects.pods import PLACEHOLDER, REPLACES, TASK_GROUP
from phalanx.dialects.yunikorn import TASK_GROUPS, TaskGroupRead
from phalanx.model.kinds import POD, Document
from phalanx.model.task_status import ENDED

IMAGE = "registry.k8s.io/pause:3.10"
"""The default image of placeholders; it does nothing."""
USER = 65535
"""The user that placeholders run as: nobody."""
HANDED_DOWN = ("schedulerName", "priorityClassName", "imagePullSecrets")
"""Fields of the spec that placeholders copy from their originator."""

Groups = Mapping[str, TaskGroupRead]
PodTest = Callable[[Document], bool]
"""Whether a pod counts."""


@dataclass(frozen=True, slots=True)
class YuniKornApplication:
    """The pods of an application, real ones and placeholders, the oldest first."""

    key: Key
    real: Sequence[Document]
    placeholders: Sequence[Document]
    """Without those that are being deleted."""

    @property
    def originator(self) -> Document | None:
        """The pod that describes the task groups; None if it is gone, or not there yet."""
        return next((pod for pod in self.real if TASK_GROUPS in annotations_of(pod)), None)


def application(key: Key, pods: Iterable[Document]) -> YuniKornApplication:
    """Return the application of these pods."""
    found = list(pods)
    staying = [pod for pod in found if is_placeholder(pod) and not is_leaving(pod)]
    return YuniKornApplication(key, [pod for pod in found if not is_placeholder(pod)], staying)


def is_placeholder(pod: Document) -> bool:
    """Tell whether a pod only keeps room for another."""
    return annotations_of(pod).get(PLACEHOLDER) == "true"


# --- before an application starts ----------------------------------------------------------------------------------------


def create_missing(app: YuniKornApplication, originator: Document, groups: Groups, image: str) -> list[Write]:
    """Return the creation of the placeholders that an application lacks before it starts."""
    writes: list[Write] = []
    for group in groups.values():
        lacking = group.min_member - _count(app.real, group.name, is_present) - _count(app.placeholders, group.name, is_present)
        numbers = _free_numbers(app, originator, group, lacking)
        writes += (Create(placeholder(app.key, originator, group, number=number, image=image)) for number in numbers)
    return writes


def is_present(pod: Document) -> bool:
    """Tell whether a pod is a member that could start, or did."""
    return not is_leaving(pod) and inside(pod, "status", "phase") != "Failed"


def needs_no_placeholder(pod: Document) -> bool:
    """Tell whether a pod of a running application needs no placeholder any more: it has a node, or replaces a placeholder."""
    return has_started(pod) or REPLACES in annotations_of(pod)


def _free_numbers(app: YuniKornApplication, originator: Document, group: TaskGroupRead, lacking: int) -> list[int]:
    taken = {meta_of(pod)["name"] for pod in app.placeholders}
    numbers = range(max(lacking, 0) + len(taken))
    return [number for number in numbers if _name(app.key, originator, group.name, number) not in taken][: max(lacking, 0)]


def _count(pods: Iterable[Document], group: str, counts: PodTest) -> int:
    return sum(group_of(pod) == group and counts(pod) for pod in pods)


def group_of(pod: Document) -> str:
    """Return the task group that a pod names."""
    return annotations_of(pod).get(TASK_GROUP, "")


# --- afterwards ----------------------------------------------------------------------------------------------------------


def replace_placeholders(app: YuniKornApplication) -> list[Write]:
    """Return what lets pods replace placeholders on the nodes they are nominated for.

    The pod is annotated before the placeholder is deleted: after a crash in between, the annotation shows which one is still to go.
    """
    writes: list[Write] = []
    replaced, free = _replaced(app), dict[tuple[str, str], list[Document]]()
    for pod in app.placeholders:
        if meta_of(pod)["name"] not in replaced:
            free.setdefault((group_of(pod), str(inside(pod, "spec", "nodeName"))), []).append(pod)
    for pod in app.real:
        found = free.get((group_of(pod), _nominated_node(pod)))
        if found:
            key, name = key_of(pod), meta_of(found[-1])["name"]
            patch = Patch(POD, key.namespace, key.name, {"metadata": {"annotations": {REPLACES: name}}})
            writes += [patch, _deleted(found.pop())]
    return writes


def _replaced(app: YuniKornApplication) -> set[str]:
    return {annotations_of(pod).get(REPLACES, "") for pod in app.real}


def _nominated_node(pod: Document) -> str:
    """Return the node that a pod is nominated for; empty if it does not wait, or already replaces a placeholder."""
    may_replace = waits(pod) and REPLACES not in annotations_of(pod)
    return str(inside(pod, "status", "nominatedNodeName") or "") if may_replace else ""


def remove_surplus(app: YuniKornApplication, groups: Groups, counts: PodTest) -> list[Write]:
    """Return the deletion of placeholders that are replaced, have ended, or are too many beside the pods that count."""
    kept, replaced = set[str](), _replaced(app)
    useful = [pod for pod in app.placeholders if not (_has_ended(pod) or meta_of(pod)["name"] in replaced)]
    for group in groups.values():
        wanted = max(group.min_member - _count(app.real, group.name, counts), 0)
        kept.update([meta_of(pod)["name"] for pod in useful if group_of(pod) == group.name][:wanted])
    return remove_placeholders(pod for pod in app.placeholders if meta_of(pod)["name"] not in kept)


def _has_ended(pod: Document) -> bool:
    return inside(pod, "status", "phase") in ENDED


def remove_placeholders(placeholders: Iterable[Document]) -> list[Write]:
    """Return the deletion of placeholders."""
    return list(map(_deleted, placeholders))


def _deleted(pod: Document) -> Delete:
    key = key_of(pod)
    return Delete(POD, key.namespace, key.name, meta_of(pod).get("uid", ""))


# --- what they are -------------------------------------------------------------------------------------------------------


def placeholder(key: Key, originator: Document, group: TaskGroupRead, *, number: int, image: str) -> Document:
    """Return a placeholder of a task group, with the requests and placement constraints of the group."""
    link = {YUNIKORN_APP: key.name}
    is_label = key.name in labels_of(originator).values()
    meta = {
        "namespace": key.namespace, "name": _name(key, originator, group.name, number),
        "labels": {**(group.labels or {}), **(link if is_label else {})},
        "annotations": {**(group.annotations or {}), **({} if is_label else link), TASK_GROUP: group.name, PLACEHOLDER: "true"},
        "ownerReferences": [owner_reference(originator)],
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _spec(originator, group, image)}


def _spec(originator: Document, group: TaskGroupRead, image: str) -> dict[str, Any]:
    own = originator["spec"]
    where = {
        "nodeSelector": group.node_selector, "tolerations": group.tolerations, "affinity": group.affinity,
        "topologySpreadConstraints": group.topology_spread_constraints,
    }  # fmt: skip
    return {
        **{name: own[name] for name in HANDED_DOWN if own.get(name)},
        **{name: value for name, value in where.items() if value},
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(group, image)],
    }  # fmt: skip


def _container(group: TaskGroupRead, image: str) -> dict[str, Any]:
    asks = {name: str(quantity) for name, quantity in (group.min_resource or {}).items()}
    return {
        "name": "placeholder", "image": image, "resources": {"requests": asks, "limits": asks},
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        },
    }  # fmt: skip


def _name(key: Key, originator: Document, group: str, number: int) -> str:
    """Return a name that is always the same for this originator, so that a placeholder is created once, and unique to it."""
    digest = sha256(f"{meta_of(originator).get('uid', '')}\n{group}".encode()).hexdigest()[:8]
    return f"tg-{_plain(key.name)}-{_plain(group)}-{digest}-{number}"


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:20].strip("-")
