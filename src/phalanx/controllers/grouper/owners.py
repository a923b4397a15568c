"""The owner chain of a pod, from its controller up to the top owner, whose kind decides how the pod is grouped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from phalanx.controllers.controller import View
from phalanx.controllers.grouper.settings import GrouperSettings
from phalanx.controllers.objects import annotations_of, controller_of, labels_of, meta_of
from phalanx.dialects import schema
from phalanx.dialects.cluster import describe
from phalanx.dialects.reading import read_as
from phalanx.dialects.wrong_field import readable
from phalanx.errors import Missing, SnapshotError
from phalanx.model.kinds import POD, SILENT, Document, Kind, kind_of
from phalanx.model.moment import moment_of

Struct = TypeVar("Struct")
LARGEST_COUNT = 2**31 - 1
MIN_MEMBER = "phalanx.dev/min-member"
OWNER_MIN_MEMBERS = (MIN_MEMBER, "scheduling.volcano.sh/group-min-member", "kai.scheduler/batch-min-member")
"""Annotations of an owner that say how large its gang is; the first that is there counts."""

SKIPPED = frozenset({
    ("argoproj.io", "Workflow"), ("argoproj.io", "CronWorkflow"), ("trainer.kubeflow.org", "TrainJob"),
    ("nvidia.com", "DynamoGraphDeployment"), ("run.ai", "TrainingWorkload"), ("run.ai", "InteractiveWorkload"),
    ("run.ai", "DistributedWorkload"), ("run.ai", "InferenceWorkload"), ("run.ai", "DistributedInferenceWorkload"),
})  # fmt: skip
"""Top owners that leave the decision to the owner below them, which gets their labels and annotations."""
BETWEEN = tuple(
    kind_of({"apiVersion": version, "kind": name})
    for version, name in (
        ("apps/v1", "ReplicaSet"), ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"),
        ("ray.io/v1", "RayCluster"), ("jobset.x-k8s.io/v1alpha2", "JobSet"), ("grove.io/v1alpha1", "PodClique"),
        ("grove.io/v1alpha1", "PodCliqueScalingGroup"), ("grove.io/v1alpha1", "PodCliqueSet"),
        ("serving.knative.dev/v1", "Revision"), ("serving.knative.dev/v1", "Configuration"),
    )
)  # fmt: skip
"""Kinds of objects between a top owner and its pods."""


@dataclass(frozen=True, slots=True)
class OwnerChain:
    """A pod and its owners."""

    view: View
    settings: GrouperSettings
    pod: Document
    owners: Sequence[Document]
    """Nearest first, without those that leave the decision to the owner below; empty for a pod without owners."""
    head: Document
    """The object that decides how the pod is grouped: the top owner, or the pod itself."""
    kinds: Sequence[tuple[str, str]]
    """Group and kind of all owners, nearest first."""
    is_circle: bool = False
    """The last owner belongs to one of those before it."""
    unseen: Document | None = None
    """The last owner, if it is of a kind that we read but is not there: only its reference is known, and not who owns it."""

    @property
    def awaited_until(self) -> float:
        """Return until when to wait for the owner in `unseen`, which a watch may not have shown yet; 0 if there is none."""
        if self.unseen is None or self.view.is_hidden(kind_of(self.unseen)):
            return 0.0
        made = moment_of(str(meta_of(self.pod).get("creationTimestamp") or ""))
        return 0.0 if made is None else made + self.settings.owner_patience_seconds

    @property
    def has_own_size(self) -> bool:
        """Tell whether our own annotation on an owner, or on the pod for it, says how large the gang is."""
        return bool(self.owners) and any(MIN_MEMBER in annotations_of(each) for each in (*self.owners, self.pod))

    def min_member(self) -> int | None:
        """Return how large the gang is by an annotation of an owner, the top one first, or of the pod; None without any."""
        for owner in reversed(self.owners):
            for key in OWNER_MIN_MEMBERS:
                if (text := annotations_of(owner).get(key)) is not None:
                    return _count(owner, key, text)
        text = annotations_of(self.pod).get(MIN_MEMBER)
        return None if text is None else _count(self.pod, MIN_MEMBER, text)


def _count(document: Document, key: str, text: str) -> int:
    return whole_number(text, where=f"{describe(document)}: metadata.annotations[{key!r}]", least=1)


def whole_number(text: str, *, where: str, least: int) -> int:
    """Return the number that a label or an annotation holds."""
    if not text.isdecimal() or not text.isascii() or not least <= int(text) <= LARGEST_COUNT:
        raise SnapshotError(f"{where}: {text!r} is not a whole number of {least} or more; write for example '{max(least, 4)}'")
    return int(text)


def read(document: Document, kind: type[Struct]) -> Struct:
    """Read the fields of an object that matter."""
    try:
        return read_as(document, kind)
    except msgspec.ValidationError as problem:
        raise SnapshotError(f"{describe(document)}: {readable(problem)}") from problem


def kind_pair(document: Document) -> tuple[str, str]:
    """Return the API group and the kind of an object; the version does not matter."""
    return str(document.get("apiVersion", "")).rpartition("/")[0], str(document.get("kind", ""))


def owner_chain(view: View, settings: GrouperSettings, pod: Document) -> OwnerChain:
    """Return the owner chain of a pod."""
    pod = {**pod, "apiVersion": "v1", "kind": "Pod"}
    owners = list(_owners(view, pod))
    kinds = [kind_pair(owner) for owner in owners]
    is_circle = bool(owners) and _controller(owners[-1]) is not None
    unseen = owners[-1] if owners and _is_unseen(view, owners[-1]) else None
    head = owners[-1] if owners else pod
    while owners and kind_pair(owners[-1]) in SKIPPED:
        skipped = owners.pop()
        head = _with_metadata(owners[-1] if owners else pod, skipped)
        owners[-1:] = [head] if owners else []
    return OwnerChain(view, settings, pod, owners, head, kinds, is_circle=is_circle, unseen=unseen)


def _is_unseen(view: View, owner: Document) -> bool:
    """Tell whether an owner is of a kind that we know and look at, and not there."""
    meta = meta_of(owner)
    try:
        kind = kind_of(owner)
    except Missing:
        return False
    found = view.find(kind, str(meta.get("namespace", "")), str(meta["name"]))
    return kind.kind not in SILENT and (found is None or meta_of(found).get("uid") != meta.get("uid"))


def _owners(view: View, pod: Document) -> Iterator[Document]:
    """Yield the owner, its owner and so on; each once, even if they own each other."""
    namespace, document, seen = str(meta_of(pod).get("namespace") or "default"), pod, set[str]()
    while (reference := _controller(document)) is not None and reference.get("uid", "") not in seen:
        seen.add(str(reference.get("uid", "")))
        document = _owner(view, namespace, reference)
        yield document


def _controller(document: Document) -> Document | None:
    read(document, schema.Named)
    return controller_of(document)


def _owner(view: View, namespace: str, reference: Document) -> Document:
    """Return the object that a reference means, or what the reference says of it if it is not there."""
    name, uid = str(reference.get("name", "")), str(reference.get("uid", ""))
    known = {"apiVersion": str(reference.get("apiVersion", "")), "kind": str(reference.get("kind", ""))}
    try:
        found = view.find(kind_of(reference), namespace, name)
    except Missing:
        found = None
    if found is not None and meta_of(found).get("uid") == uid:
        return {**found, **known}
    return {**known, "metadata": {"name": name, "namespace": namespace, "uid": uid}}


def _with_metadata(document: Document, other: Document) -> dict[str, Any]:
    """Return an object with the labels and annotations of another where it has none of its own."""
    labels, annotations = labels_of(other) | labels_of(document), annotations_of(other) | annotations_of(document)
    return {**document, "metadata": {**meta_of(document), "labels": labels, "annotations": annotations}}


def pods_under(view: View, uid: str) -> Iterator[Document]:
    """Yield the pods below an owner, at any depth; each once, even if owners own each other."""
    waiting, seen = [uid], {uid}
    while waiting:
        owner = waiting.pop()
        found = [(kind, document) for kind in (POD, *BETWEEN) for document in view.owned(owner, kind)]
        fresh = [(kind, document) for kind, document in found if str(meta_of(document)["uid"]) not in seen]
        yield from (document for kind, document in fresh if kind is POD)
        waiting += [str(meta_of(document)["uid"]) for _, document in fresh]
        seen.update(waiting)


def find(view: View, kind: Kind, pod: Document, name: str) -> Document | None:
    """Return an object in the namespace of a pod."""
    return view.find(kind, str(meta_of(pod).get("namespace") or "default"), name)
