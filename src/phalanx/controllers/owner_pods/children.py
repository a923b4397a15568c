"""What the controller of an owner makes of it, and the pieces it is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import field

from phalanx.controllers.controller import RecordEvent, Write
from phalanx.controllers.objects import meta_of, owner_reference
from phalanx.dialects.cluster import describe
from phalanx.dialects.reading import read_as
from phalanx.dialects.schema import Read, Strings
from phalanx.dialects.wrong_field import readable
from phalanx.errors import SnapshotError
from phalanx.model.bounds import MADE_PODS
from phalanx.model.kinds import Document

Texts = Mapping[str, str]
LISTS = ("containers", "initContainers", "volumes")
LONGEST_STEM = 58
"""Of a name to which the API server adds five characters."""


@dataclass(frozen=True, slots=True)
class Children:
    """The objects that are made of an owner now; one whose name is left to the API server has a `generateName`."""

    documents: Sequence[Document] = ()
    notes: Sequence[str] = ()
    """What is made later or is not known, in a sentence each."""


class TemplateMeta(Read):
    """What a template says about its objects besides their spec."""

    labels: Strings = None
    annotations: Strings = None


class Template(Read):
    """A template of pods, or of other objects."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    spec: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse lists of a pod's spec that are none: whoever adds to them must be able to read them."""
        for name in LISTS:
            found = self.spec.get(name)
            if found is not None and not (isinstance(found, list) and all(isinstance(item, dict) for item in found)):
                raise ValueError(f"spec.{name}: expected a list of objects")

    def plus(self, labels: Texts, annotations: Texts | None = None) -> dict[str, Any]:
        """Return the template as a part of another object, with labels and annotations added."""
        return {"metadata": self.meta(labels, annotations), "spec": self.spec}

    def meta(self, labels: Texts, annotations: Texts | None = None) -> dict[str, Any]:
        """Return its metadata with labels and annotations added."""
        return {
            "labels": {**(self.metadata.labels or {}), **labels},
            "annotations": {**(self.metadata.annotations or {}), **(annotations or {})},
        }


def numbers(owner: Document, count: int) -> range:
    """Return the numbers of what is made so many times of an owner; more than may be made are refused before any is."""
    if count > MADE_PODS.most:
        raise SnapshotError(f"{describe(owner)}: {count:,} are too many: {MADE_PODS.text}")
    return range(count)


def note(about: Document, text: str) -> Write:
    """Return a sentence about an object for whoever submits it; it has no reason, since nobody records it as an event."""
    return RecordEvent(about, "", text, is_warning=True)


def template_in(owner: Document, value: object) -> Template:
    """Return a template that stands somewhere inside an owner."""
    try:
        return read_as(value or {}, Template)
    except msgspec.ValidationError as problem:
        raise SnapshotError(f"{describe(owner)}: template: {readable(problem)}") from problem


def pod_of(
    owner: Document, name: str, template: Template, *, labels: Texts, annotations: Texts | None = None, spec: Document | None = None
) -> Document:
    """Return a pod of an owner; a name that ends with a dash is completed by the API server."""
    if not template.spec.get("containers"):
        raise SnapshotError(f"{describe(owner)}: its pod template has no containers; write at least one")
    made = {**template.spec, **(spec or {})}
    return child_of(owner, "v1", "Pod", name, meta=template.meta(labels, annotations), spec=made)


def child_of(owner: Document, api_version: str, kind: str, name: str, *, spec: Document, meta: Document | None = None) -> Document:
    """Return an object that belongs to an owner; a name that ends with a dash is completed by the API server."""
    named = {"generateName": f"{name[: LONGEST_STEM - 1].rstrip('-')}-"} if name.endswith("-") else {"name": name}
    place = {"namespace": str(meta_of(owner).get("namespace") or "default"), "ownerReferences": [owner_reference(owner)]}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**(meta or {}), **named, **place}, "spec": spec}


def with_init_container(spec: Document, container: Document) -> dict[str, Any]:
    """Return the spec of a pod with one more init container, unless it has one of that name."""
    others = list(spec.get("initContainers") or ())
    has_it = any(item.get("name") == container["name"] for item in others)
    return {**spec, "initContainers": others if has_it else [*others, container]}


def asking(**amounts: str) -> dict[str, Any]:
    """Return resources that are limits and requests alike."""
    found = {name.replace("_", "-"): amount for name, amount in amounts.items()}
    return {"requests": found, "limits": found}
