"""LeaderWorkerSets: a StatefulSet of leaders, and for each leader a StatefulSet of its workers."""

from collections.abc import Mapping
from hashlib import sha1
from typing import Any

from msgspec import field

from phalanx.controllers.controller import View
from phalanx.controllers.grouper.grouping import Count
from phalanx.controllers.grouper.job_sets import GROUP_INDEX, LEADER_READY, WORKER_INDEX
from phalanx.controllers.grouper.owners import find, read
from phalanx.controllers.objects import annotations_of, labels_of, meta_of
from phalanx.controllers.owner_pods.apps import PARALLEL
from phalanx.controllers.owner_pods.children import Children, Template, child_of
from phalanx.controllers.owner_pods.exclusive import with_exclusive_affinity
from phalanx.dialects.schema import Read
from phalanx.model.kinds import Document, kind_of

LEADER_WORKER_SET = kind_of({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"})
PREFIX = "leaderworkerset.sigs.k8s.io/"
SET_NAME, GROUP_KEY, SIZE, LEADER_NAME = (f"{PREFIX}{name}" for name in ("name", "group-key", "size", "leader-name"))
EXCLUSIVE = f"{PREFIX}exclusive-topology"


class ReplicaTemplate(Read):
    """What one replica is made of."""

    size: Count | None = None
    leader_template: Template | None = None
    worker_template: Template = field(default_factory=Template)


class LeadersAndWorkersSpec(Read):
    """What a LeaderWorkerSet asks for."""

    replicas: Count | None = None
    startup_policy: str | None = None
    leader_worker_template: ReplicaTemplate = field(default_factory=ReplicaTemplate)

    @property
    def size(self) -> int:
        """Return how many pods a replica has, its leader among them."""
        return 1 if self.leader_worker_template.size is None else self.leader_worker_template.size


class LeadersAndWorkers(Read):
    """A LeaderWorkerSet."""

    spec: LeadersAndWorkersSpec = field(default_factory=LeadersAndWorkersSpec)


def defaulted(owner: Document) -> Document:
    """Return a LeaderWorkerSet with the defaults of its definition: one replica of one pod."""
    spec: dict[str, Any] = {"replicas": 1, "leaderWorkerTemplate": {}, **(owner.get("spec") or {})}
    parts = spec["leaderWorkerTemplate"]
    whole = {"leaderWorkerTemplate": {"size": 1, **parts}} if isinstance(parts, Mapping) else {}
    return {**owner, "spec": {**spec, **whole}}


def leader_worker_set(owner: Document) -> Children:
    """Return the StatefulSet of the leaders."""
    spec, name = read(owner, LeadersAndWorkers).spec, str(meta_of(owner)["name"])
    template = spec.leader_worker_template.leader_template or spec.leader_worker_template.worker_template
    texts = {SET_NAME: name, WORKER_INDEX: "0"}
    made = {
        "replicas": 1 if spec.replicas is None else spec.replicas, "podManagementPolicy": PARALLEL, "serviceName": name,
        "template": template.plus(texts, {SIZE: str(spec.size), **_exclusive(owner)}),
    }  # fmt: skip
    labels = {"labels": {SET_NAME: name}}
    return Children([child_of(owner, "apps/v1", "StatefulSet", name, spec=made, meta=labels)], _notes(owner, spec))


def _exclusive(owner: Document) -> dict[str, str]:
    found = annotations_of(owner).get(EXCLUSIVE, "")
    return {EXCLUSIVE: found} if found else {}


def _notes(owner: Document, spec: LeadersAndWorkersSpec) -> list[str]:
    found = []
    if spec.startup_policy == LEADER_READY and spec.size > 1:
        found.append("the workers of each replica are made once its leader is ready")
    if _exclusive(owner) and spec.size > 1:
        found.append(f"{EXCLUSIVE}: the workers of each replica are made once its leader has a node")
    return found


def workers_of(view: View, leader: Document) -> Children:
    """Return the StatefulSet of the workers of a leader; nothing for a pod that is no leader."""
    labels = labels_of(leader)
    owner = find(view, LEADER_WORKER_SET, leader, labels.get(SET_NAME, "")) if labels.get(WORKER_INDEX) == "0" else None
    spec = None if owner is None else read(owner, LeadersAndWorkers).spec
    if spec is None or spec.size < 2 or spec.startup_policy == LEADER_READY or EXCLUSIVE in annotations_of(leader):
        return Children()
    name = str(meta_of(leader)["name"])
    texts = {key: labels[key] for key in (SET_NAME, GROUP_INDEX, GROUP_KEY) if key in labels}
    made = {
        "replicas": spec.size - 1, "ordinals": {"start": 1}, "podManagementPolicy": PARALLEL, "serviceName": labels[SET_NAME],
        "template": spec.leader_worker_template.worker_template.plus(texts, {SIZE: str(spec.size), LEADER_NAME: name}),
    }  # fmt: skip
    return Children([child_of({**leader, "apiVersion": "v1", "kind": "Pod"}, "apps/v1", "StatefulSet", name, spec=made)])


def admitted(pod: Document) -> Document:
    """Return a pod with the labels that the webhook of LeaderWorkerSets writes; other pods stay as they are."""
    labels, meta = labels_of(pod), meta_of(pod)
    if SET_NAME not in labels:
        return pod
    ordinal = str(meta["name"]).rpartition("-")[2]
    key = sha1(f"{meta.get('namespace') or 'default'}/{meta['name']}".encode(), usedforsecurity=False).hexdigest()
    is_leader, topology = labels.get(WORKER_INDEX) == "0", annotations_of(pod).get(EXCLUSIVE, "")
    own = {GROUP_INDEX: ordinal, GROUP_KEY: key} if is_leader else {WORKER_INDEX: ordinal}
    marked = {**pod, "metadata": {**meta, "labels": {**own, **labels}}}
    return with_exclusive_affinity(marked, label=GROUP_KEY, topology=topology) if is_leader and topology else marked
