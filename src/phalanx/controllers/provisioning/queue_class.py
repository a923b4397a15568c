"""Whether nodes are asked for by ProvisioningRequests: the annotations of a queue that say so, and in which class."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from phalanx.controllers.controller import View
from phalanx.controllers.objects import annotations_of
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.kinds import KAI_QUEUE, POD_TEMPLATE, PROVISIONING_REQUEST, QUEUE, Document

CLASS, PARAMETERS = "phalanx.dev/provisioning-class", "phalanx.dev/provisioning-parameters"
"""Annotations of a queue: the provisioning class of its requests, and the parameters of the class as a JSON object."""
QUEUES = (QUEUE, KAI_QUEUE)
"""Where both projects have a queue of a name, the first one that has the annotation counts."""
BEST_EFFORT = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
LONGEST_CLASS, LONGEST_PARAMETER, MOST_PARAMETERS = 253, 255, 100
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class ProvisioningClass:
    """How nodes are asked for."""

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)


def class_of_queue(queue: Document) -> ProvisioningClass | None:
    """Return the class of a queue; None without one. A class that no request could have is an error."""
    texts = annotations_of(queue)
    name = texts.get(CLASS, "")
    if not name:
        return None
    if len(name) > LONGEST_CLASS or not _SUBDOMAIN.fullmatch(name):
        raise SnapshotError(
            f"metadata.annotations[{CLASS!r}]: {name!r} is not the name of a class; write for example {BEST_EFFORT!r}"
        )
    return ProvisioningClass(name, _parameters(texts.get(PARAMETERS, "")))


def _parameters(text: str) -> dict[str, str]:
    try:
        found = msgspec.json.decode(text, type=dict[str, str]) if text else {}
    except msgspec.DecodeError as problem:
        raise SnapshotError(f"{_wrong(text)}: {problem}") from problem
    if len(found) > MOST_PARAMETERS or any(len(value) > LONGEST_PARAMETER for value in found.values()):
        raise SnapshotError(f"{_wrong(text)}: a request has at most {MOST_PARAMETERS}, of {LONGEST_PARAMETER} characters each")
    return found


def _wrong(text: str) -> str:
    example = '{"ValidUntilSeconds": "3600"}'
    return f"metadata.annotations[{PARAMETERS!r}]: {text!r} are no parameters; write texts by name, for example {example!r}"


def class_of_gang(view: View, gang: Gang) -> ProvisioningClass | None:
    """Return the class of the queue that a gang is in; None if it has none, or one that is reported on the queue."""
    preferred = [queue for kind in QUEUES if (queue := view.find(kind, "", gang.preferred_queue)) is not None]
    found = preferred or [queue for kind in QUEUES if (queue := view.find(kind, "", gang.queue)) is not None]
    try:
        return next((chosen for queue in found if (chosen := class_of_queue(queue)) is not None), None)
    except SnapshotError:
        return None


def can_ask(view: View) -> bool:
    """Tell whether this cluster takes requests, and lets us look at them."""
    kinds = (PROVISIONING_REQUEST, POD_TEMPLATE)
    return all(view.is_served(kind) and not view.is_hidden(kind) for kind in kinds)


def problem_of_queue(view: View, queue: Document) -> str:
    """Return why no nodes are asked for though a queue says so; empty if they are, or it does not."""
    try:
        if class_of_queue(queue) is None or can_ask(view):
            return ""
    except SnapshotError as problem:
        return str(problem)
    resource = PROVISIONING_REQUEST.resource
    return (
        f"metadata.annotations[{CLASS!r}]: no nodes are asked for, since this cluster does not serve {resource} or does not let us "
        "read them; install their definition, or remove the annotation"
    )
