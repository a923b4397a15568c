"""Deployments, ReplicaSets and StatefulSets, and notebooks, which are StatefulSets."""

from typing import Any
from zlib import crc32

import msgspec
from msgspec import field

from phalanx.controllers.grouper.grouping import Count
from phalanx.controllers.grouper.owners import read
from phalanx.controllers.objects import labels_of, meta_of
from phalanx.controllers.owner_pods.children import Children, Template, child_of, numbers, pod_of
from phalanx.dialects.schema import Read
from phalanx.model.kinds import Document

HASH, REVISION = "pod-template-hash", "controller-revision-hash"
POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
PARALLEL = "Parallel"


class Ordinals(Read):
    """How the pods of a StatefulSet are numbered."""

    start: Count | None = None


class ClaimTemplateMeta(Read):
    """The name of a template of claims."""

    name: str = ""


class ClaimTemplate(Read):
    """A template of claims."""

    metadata: ClaimTemplateMeta = field(default_factory=ClaimTemplateMeta)
    spec: dict[str, Any] = field(default_factory=dict)


class SetSpec(Read):
    """What a set of equal pods asks for."""

    replicas: Count | None = None
    template: Template = field(default_factory=Template)
    paused: bool | None = None
    pod_management_policy: str | None = None
    ordinals: Ordinals = field(default_factory=Ordinals)
    volume_claim_templates: list[ClaimTemplate] | None = None
    service_name: str | None = None

    @property
    def count(self) -> int:
        """Return how many pods there are; one by default."""
        return 1 if self.replicas is None else self.replicas


class EqualPods(Read):
    """A Deployment, a ReplicaSet or a StatefulSet."""

    spec: SetSpec = field(default_factory=SetSpec)


def deployment(owner: Document) -> Children:
    """Return the ReplicaSet of a Deployment; one that is paused before it has any gets none."""
    spec = read(owner, EqualPods).spec
    if spec.paused:
        return Children(notes=["is paused, so that no pods are made; write paused: false"])
    labels = {HASH: _hash(spec.template)}
    meta = {"labels": {**labels_of(owner), **(spec.template.metadata.labels or {}), **labels}}
    made = {"replicas": spec.count, "template": spec.template.plus(labels)}
    name = f"{meta_of(owner)['name']}-{labels[HASH]}"
    return Children([child_of(owner, "apps/v1", "ReplicaSet", name, spec=made, meta=meta)])


def _hash(template: Template) -> str:
    """Return what stands for the hash of a template; the real one is different, and nobody but names shows it."""
    return f"{crc32(msgspec.json.encode(template, order='sorted')):08x}"


def replica_set(owner: Document) -> Children:
    """Return the pods of a ReplicaSet."""
    spec = read(owner, EqualPods).spec
    return Children([pod_of(owner, f"{meta_of(owner)['name']}-", spec.template, labels={}) for _ in numbers(owner, spec.count)])


def stateful_set(owner: Document) -> Children:
    """Return the pods of a StatefulSet, and their claims: the first alone where each waits for the one before it."""
    spec, name = read(owner, EqualPods).spec, str(meta_of(owner)["name"])
    first = spec.ordinals.start or 0
    now = spec.count if spec.pod_management_policy == PARALLEL else min(spec.count, 1)
    text = f"{spec.count - now} more of its pods are made one after the other, each once the one before it is ready"
    notes = [f"{text}; write podManagementPolicy: Parallel to have all at once"] if now < spec.count else []
    documents: list[Document] = []
    for number in numbers(owner, now):
        documents += [*_claims(owner, spec, f"{name}-{first + number}"), _numbered(owner, spec, first + number)]
    return Children(documents, notes)


def _numbered(owner: Document, spec: SetSpec, ordinal: int) -> Document:
    set_name = str(meta_of(owner)["name"])
    name = f"{set_name}-{ordinal}"
    labels = {POD_NAME: name, POD_INDEX: str(ordinal), REVISION: f"{set_name}-{_hash(spec.template)}"}
    own = [
        {"name": item.metadata.name, "persistentVolumeClaim": {"claimName": f"{item.metadata.name}-{name}"}}
        for item in spec.volume_claim_templates or ()
    ]
    names = {item["name"] for item in own}
    others = [item for item in spec.template.spec.get("volumes") or () if item.get("name") not in names]
    made = {"hostname": name, "subdomain": spec.service_name or "", **({"volumes": [*others, *own]} if own else {})}
    return pod_of(owner, name, spec.template, labels=labels, spec=made)


def _claims(owner: Document, spec: SetSpec, pod: str) -> list[Document]:
    """Return the claims of a pod; they outlive their set, and so belong to nobody."""
    place = {"namespace": str(meta_of(owner).get("namespace") or "default")}
    return [
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"{item.metadata.name}-{pod}", **place}, "spec": item.spec,
        }
        for item in spec.volume_claim_templates or ()
    ]  # fmt: skip


def daemon_set(owner: Document) -> Children:
    """Say that the pods of a DaemonSet are not tried."""
    return Children(notes=["has a pod on each node that suits it; they are left out here"])


def notebook(owner: Document) -> Children:
    """Return the StatefulSet of a notebook."""
    name = str(meta_of(owner)["name"])
    labels = {"statefulset": name, "notebook-name": name}
    made = {"replicas": 1, "template": read(owner, EqualPods).spec.template.plus({**labels_of(owner), **labels})}
    return Children([child_of(owner, "apps/v1", "StatefulSet", name, spec=made)])
