"""What objects refer to by name and nobody has: queues, classes, claims, volumes, nodes, owners and so on.

A snapshot often lacks some kinds, and what is missing changes decisions without a word: a pod on a node that is not there takes no
room, and pods whose owner is not there are grouped as if each could start alone. So it is said, once for each thing.

Only what still matters is looked at: gangs with members that have not ended, and what waiting pods name.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.controllers.grouper.owners import kind_pair
from phalanx.controllers.grouper.rules import owner_kinds, pair_of
from phalanx.controllers.objects import controller_of, group_named, inside
from phalanx.explain.missing_groups import missing_groups
from phalanx.explain.reason_text import counted
from phalanx.model.gang import Gang
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, Kind, object_key
from phalanx.model.storage import VolumeClaim
from phalanx.model.task import Task
from phalanx.model.task_status import COMPLETED, Status
from phalanx.state.snapshot import Snapshot

NOT_IN_INPUT, DOES_NOT_EXIST = "is not in the input", "does not exist"
MOST_SHOWN = 5
"""Sentences about one kind."""
NEEDS_NO_OWNER = frozenset({("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "DaemonSet")})
"""Pods of these are grouped by the name of their owner alone."""
Naming = tuple[str, str, str]
"""The kind and the name of what is missing, and who names it."""


@dataclass(frozen=True, slots=True)
class MissingReference:
    """Something that is not there, and the objects that name it."""

    kind: str
    name: str
    """With its namespace, if it has one: ``research/data``."""
    named_by: tuple[str, ...]
    """As "Pod research/train-0"."""
    is_said: bool = False
    """Another sentence says it already."""

    def sentence(self, absent: str = NOT_IN_INPUT) -> str:
        """Say what is missing, who names it, and what follows if nothing else says that."""
        others = len(self.named_by) - 1
        who = f"{self.named_by[0]} and {counted(others, 'other')}" if others else self.named_by[0]
        return f"{self.kind} {self.name!r} {absent}; it is named by {who}{self._effect()}"

    def _effect(self) -> str:
        first, is_one = self.named_by[0].partition(" ")[0], len(self.named_by) == 1
        if self.kind == "PriorityClass":
            return ", whose priority is 0" if first == POD.kind else f", which {'has' if is_one else 'have'} the default priority"
        if self.kind == "Node" and first == POD.kind:
            return ", whose requests are not counted"
        is_owner = first == POD.kind and any(kind.kind == self.kind for kind in owner_kinds())
        return f", {'which is' if is_one else 'which are'} grouped without it" if is_owner else ""

    def document(self, absent: str = NOT_IN_INPUT) -> dict[str, Any]:
        """Return it for programs."""
        return {"kind": self.kind, "name": self.name, "namedBy": list(self.named_by), "message": self.sentence(absent)}


def gathered(namings: Iterable[Naming], *, is_said: bool = False) -> list[MissingReference]:
    """Return one reference for each thing that is missing, in the order in which they were found."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for kind, name, who in namings:
        found.setdefault((kind, name), {})[who] = None
    return [MissingReference(kind, name, tuple(who), is_said) for (kind, name), who in found.items()]


def missing_references(snapshot: Snapshot, documents: Sequence[Document], hidden: Collection[Kind] = ()) -> list[MissingReference]:
    """Return what is missing; of the kinds that could not be read nobody knows."""
    unknown = {kind.kind for kind in hidden}
    found = [*gathered(_named(snapshot, documents)), *gathered(_hypernode_members(snapshot), is_said=True)]
    return [item for item in found if item.kind not in unknown]


def sentences(found: Sequence[MissingReference], absent: str) -> Iterator[str]:
    """Say what is missing, the first few of each kind."""
    by_kind: dict[str, list[MissingReference]] = {}
    for item in (item for item in found if not item.is_said):
        by_kind.setdefault(item.kind, []).append(item)
    for kind, items in by_kind.items():
        yield from (item.sentence(absent) for item in items[:MOST_SHOWN])
        more = len(items) - MOST_SHOWN
        if more > 0:
            yield f"{counted(more, 'more object')} of kind {kind} that {'is' if more == 1 else 'are'} named {_plural(absent, more)}"


def _plural(absent: str, number: int) -> str:
    return absent if number == 1 else absent.replace("is not", "are not").replace("does not", "do not")


def _named(snapshot: Snapshot, documents: Sequence[Document]) -> Iterator[Naming]:
    yield from _groups(snapshot)
    yield from _queues(snapshot)
    yield from _topologies(snapshot)
    yield from _volumes(snapshot)
    yield from _devices(snapshot)
    yield from _nodes(snapshot)
    yield from _from_documents(snapshot, documents)


# --- gangs and queues ----------------------------------------------------------------------------------------------------


def _unfinished(snapshot: Snapshot) -> Iterator[Gang]:
    for key, gang in snapshot.gangs.items():
        if any(task.status not in COMPLETED for task in snapshot.members_of(key).values()):
            yield gang


def _groups(snapshot: Snapshot) -> Iterator[Naming]:
    for key in missing_groups(snapshot):
        for task in snapshot.members_of(key).values():
            if task.dialect in GROUP_BY_DIALECT:  # others have no object that could be missing
                yield "PodGroup", task.group, f"Pod {task.key}"


def _queues(snapshot: Snapshot) -> Iterator[Naming]:
    known = snapshot.queue_objects
    for gang in _unfinished(snapshot):
        if gang.queue and gang.queue not in known:  # that it names none is a verdict on it
            yield "Queue", gang.queue, f"PodGroup {gang.key}"
    for queue in known.values():
        if queue.parent and queue.parent not in known:
            yield "Queue", queue.parent, f"Queue {queue.name}"


def _topologies(snapshot: Snapshot) -> Iterator[Naming]:
    for gang in _unfinished(snapshot):
        for constraint in (gang.topology, *(part.topology for part in gang.subgroups)):
            if constraint is not None and constraint.topology and constraint.topology not in snapshot.surroundings.label_trees:
                yield "Topology", constraint.topology, f"PodGroup {gang.key}"


# --- what pods name ------------------------------------------------------------------------------------------------------


def _waiting(snapshot: Snapshot) -> Iterator[Task]:
    for members in snapshot.members.values():
        yield from (task for task in members.values() if task.status is Status.PENDING)


def _volumes(snapshot: Snapshot) -> Iterator[Naming]:
    claims = snapshot.surroundings.volume_claims
    for task in _waiting(snapshot):
        for name in task.shape.volume_claims:
            claim = claims.get(f"{task.namespace}/{name}")
            if claim is None:
                yield "PersistentVolumeClaim", f"{task.namespace}/{name}", f"Pod {task.key}"
            else:
                yield from _of_volume_claim(claim, snapshot)


def _of_volume_claim(claim: VolumeClaim, snapshot: Snapshot) -> Iterator[Naming]:
    around, who = snapshot.surroundings, f"PersistentVolumeClaim {claim.key}"
    if claim.volume and claim.volume not in around.volumes:
        yield "PersistentVolume", claim.volume, who
    if not claim.volume and claim.storage_class and claim.storage_class not in around.storage_classes:
        yield "StorageClass", claim.storage_class, who


def _devices(snapshot: Snapshot) -> Iterator[Naming]:
    around = snapshot.surroundings
    for task in _waiting(snapshot):
        for key in (f"{task.namespace}/{use.claim}" for use in task.shape.resource_claims if use.claim):
            claim = around.resource_claims.get(key)
            if claim is None:
                yield "ResourceClaim", key, f"Pod {task.key}"
                continue
            for request in claim.requests:
                if request.device_class and request.device_class not in around.device_classes:
                    yield "DeviceClass", request.device_class, f"ResourceClaim {key}"


def _nodes(snapshot: Snapshot) -> Iterator[Naming]:
    for node, tasks in snapshot.on_node.items():
        if node not in snapshot.nodes.number_by_name:
            yield from (("Node", node, f"Pod {key}") for key in tasks)


def _hypernode_members(snapshot: Snapshot) -> Iterator[Naming]:
    known = {True: snapshot.hypernodes.number_by_name, False: snapshot.nodes.number_by_name}
    for hypernode in snapshot.hypernodes.hypernodes:
        for member in hypernode.members:
            if member.name and member.name not in known[member.is_hypernode]:
                yield "HyperNode" if member.is_hypernode else "Node", member.name, f"HyperNode {hypernode.name}"


# --- what only the objects say -------------------------------------------------------------------------------------------


def _from_documents(snapshot: Snapshot, documents: Sequence[Document]) -> Iterator[Naming]:
    """Yield what only objects say: owners of waiting pods without a group, and templates of claims that nobody has made yet."""
    waiting = {task.key for task in _waiting(snapshot)}
    known = {(*kind_pair(item), object_key(item)) for item in documents if item["kind"] != POD.kind}
    for pod in (item for item in documents if item["kind"] == POD.kind and object_key(item) in waiting):
        namespace = object_key(pod).partition("/")[0]
        for group, kind, name in (*_owner(pod), *_unused_templates(pod)):
            if (group, kind, f"{namespace}/{name}") not in known:
                yield kind, f"{namespace}/{name}", f"Pod {object_key(pod)}"


def _owner(pod: Document) -> Iterator[tuple[str, str, str]]:
    """Yield the owner by which a pod is grouped, if it does not name a group itself."""
    owner = controller_of(pod)
    needed = {pair_of(kind) for kind in owner_kinds()} - NEEDS_NO_OWNER
    if owner is not None and kind_pair(owner) in needed and not group_named(pod):
        yield (*kind_pair(owner), str(owner.get("name")))


def _unused_templates(pod: Document) -> Iterator[tuple[str, str, str]]:
    """Yield the templates of a pod's claims that have not been made."""
    made = {_text(item, "name") for item in inside(pod, "status", "resourceClaimStatuses") or ()}
    for use in inside(pod, "spec", "resourceClaims") or ():
        template = _text(use, "resourceClaimTemplateName")
        if template and _text(use, "name") not in made:
            yield "resource.k8s.io", "ResourceClaimTemplate", template


def _text(item: Any, name: str) -> str:  # Any: nobody has checked it
    return str(item.get(name) or "") if isinstance(item, Mapping) else ""
