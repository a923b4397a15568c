"""ProvisioningRequests and the PodTemplates that they name: how they are called, what they hold, and what becomes of them.

A request is called after its gang and its attempt, a template after what it holds besides: the same pods always ask for nodes by
the same objects. What is in a template is what placement reads of a pod; environment variables and the like stay on the pod.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from phalanx.controllers.conditions import listed_conditions
from phalanx.controllers.controller import Create, Delete, View, Write
from phalanx.controllers.objects import (
    annotations_of,
    controller_of,
    inside,
    is_leaving,
    key_of,
    labels_of,
    meta_of,
    owner_reference,
)
from phalanx.controllers.provisioning.asking_gang import AskingGang, GangPlace
from phalanx.controllers.provisioning.queue_class import ProvisioningClass
from phalanx.model.kinds import POD_TEMPLATE, PROVISIONING_REQUEST, Document, kind_of, object_key

GANG = "phalanx.dev/provisions-for"
"""Annotation of requests and templates: the dialect and the name of their gang."""
CONSUMED_CLASS = "autoscaling.x-k8s.io/provisioning-class-name"
"""Annotation of pods for which nodes are asked for: by what class of request."""
OVER = ("Failed", "CapacityRevoked", "BookingExpired")
"""Conditions of a request of which nothing comes any more."""
MOST_POD_SETS = 32
PLACED_BY = (
    "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "overhead", "resources", "resourceClaims", "priority",
    "priorityClassName", "preemptionPolicy", "schedulerName", "restartPolicy",
)  # fmt: skip
"""Fields of a pod's spec that a template takes over as they are."""
OF_CONTAINERS = ("name", "image", "resources", "restartPolicy")
CLAIMING = ("persistentVolumeClaim", "ephemeral")
"""Volumes that say where a pod can be."""
LONGEST_PREFIX = 200


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods that ask for the same."""

    template: dict[str, Any]
    count: int


# --- names ---------------------------------------------------------------------------------------------------------------


def mark_of(place: GangPlace) -> str:
    """Return the text by which a request names its gang."""
    return f"{place.dialect}/{place.name}"


def place_named(document: Document) -> GangPlace | None:
    """Return the gang that a request or a template is for; None if it is not ours."""
    dialect, _, name = annotations_of(document).get(GANG, "").partition("/")
    return GangPlace(key_of(document).namespace, name, dialect) if name else None


def prefix_of(place: GangPlace, uid: str) -> str:
    """Return how the names of all requests of a gang begin; the uid is that of its group, if it has one."""
    name = re.sub(r"[^a-z0-9]+", "-", place.name.lower())[:LONGEST_PREFIX].strip("-")
    return f"{name or 'gang'}-{_digest([mark_of(place), uid])}-"


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:8]


# --- contents ------------------------------------------------------------------------------------------------------------


def pod_sets(gang: AskingGang, pods: Sequence[Document]) -> dict[str, PodSet]:
    """Return what some pods of a gang ask for, by the digest of their template; it does not depend on which of them these are."""
    found, chosen = dict[str, PodSet](), {*map(object_key, pods)}
    for alike in gang.alike():
        template, count = _template(alike), sum(object_key(pod) in chosen for pod in alike)
        digest = _digest(template)
        if count:
            found[digest] = PodSet(template, count + (found[digest].count if digest in found else 0))
    return found


def _template(pods: Sequence[Document]) -> dict[str, Any]:
    """Return what placement reads of pods that ask for the same, and the labels that all of them have."""
    spec: Document = pods[0]["spec"]
    volumes = [item for item in spec.get("volumes") or () if any(item.get(name) for name in CLAIMING)]
    lists = {
        "containers": [_container(item) for item in spec.get("containers") or ()],
        "initContainers": [_container(item) for item in spec.get("initContainers") or ()], "volumes": volumes,
    }  # fmt: skip
    kept = {name: spec[name] for name in PLACED_BY if spec.get(name) is not None}
    labels = set.intersection(*({*labels_of(pod).items()} for pod in pods))
    return {"metadata": {"labels": dict(sorted(labels))}, "spec": kept | {name: items for name, items in lists.items() if items}}


def _container(container: Document) -> dict[str, Any]:
    ports = [port for port in container.get("ports") or () if port.get("hostPort")]
    return {name: container[name] for name in OF_CONTAINERS if container.get(name)} | ({"ports": ports} if ports else {})


def made(gang: AskingGang, chosen: ProvisioningClass, name: str, sets: Mapping[str, PodSet]) -> list[Write]:
    """Return the creation of a request; its templates come first, since whoever finds the request looks for them."""
    templates = [
        Create({
            "apiVersion": POD_TEMPLATE.api_version, "kind": POD_TEMPLATE.kind, "metadata": _meta(gang, f"{name}-{digest}"),
            "template": found.template,
        })
        for digest, found in sets.items()
    ]  # fmt: skip
    asked = [{"podTemplateRef": {"name": f"{name}-{digest}"}, "count": found.count} for digest, found in sets.items()]
    parameters = {"parameters": dict(chosen.parameters)} if chosen.parameters else {}
    request = {
        "apiVersion": PROVISIONING_REQUEST.api_version, "kind": PROVISIONING_REQUEST.kind, "metadata": _meta(gang, name),
        "spec": {"provisioningClassName": chosen.name, **parameters, "podSets": asked},
    }  # fmt: skip
    return [*templates, Create(request)]


def _meta(gang: AskingGang, name: str) -> dict[str, Any]:
    return {
        "namespace": gang.place.namespace, "name": name, "annotations": {GANG: mark_of(gang.place)},
        "ownerReferences": [_owner(gang)],
    }  # fmt: skip


def _owner(gang: AskingGang) -> dict[str, Any]:
    """Return with whom a request goes: the group, who makes the pods, or the oldest pod. Nobody has to wait for the request."""
    reference = None if gang.group is not None else controller_of(gang.pods[0])
    about = gang.about if gang.group is not None else {**gang.about, "apiVersion": "v1", "kind": "Pod"}
    found = owner_reference(about) if reference is None else reference
    return {**found, "controller": False, "blockOwnerDeletion": False}


# --- those that are there ------------------------------------------------------------------------------------------------


def requests_of(view: View, place: GangPlace) -> list[Document]:
    """Return the requests of a gang."""
    found = view.within(PROVISIONING_REQUEST, place.namespace)
    return [request for request in found if annotations_of(request).get(GANG) == mark_of(place)]


def templates_of(view: View, place: GangPlace) -> list[Document]:
    """Return the templates of a gang's requests."""
    found = view.within(POD_TEMPLATE, place.namespace)
    return [template for template in found if annotations_of(template).get(GANG) == mark_of(place)]


def counts_of(request: Document) -> dict[str, int]:
    """Return for how many pods of each template a request asks."""
    found = inside(request, "spec", "podSets") or ()
    return {str(inside(item, "podTemplateRef", "name")): int(item.get("count") or 0) for item in found}


def is_of_class(request: Document, chosen: ProvisioningClass) -> bool:
    """Tell whether a request asks in this way."""
    asked = inside(request, "spec", "provisioningClassName"), inside(request, "spec", "parameters") or {}
    return asked == (chosen.name, dict(chosen.parameters))


def end_of(request: Document) -> Document | None:
    """Return the condition that says that nothing comes of a request; None as long as something may."""
    found = {item.get("type"): item for item in listed_conditions(request) if item.get("status") == "True"}
    return next((found[kind] for kind in OVER if kind in found), None)


def deleted(documents: Iterable[Document]) -> list[Write]:
    """Return the deletion of requests and templates, but for those that are being deleted."""
    found = (document for document in documents if not is_leaving(document))
    return [Delete(kind_of(item), *_place(item), str(meta_of(item).get("uid", ""))) for item in found]


def _place(document: Document) -> tuple[str, str]:
    key = key_of(document)
    return key.namespace, key.name
