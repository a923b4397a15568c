"""Groups for pods that come without one: a pod by itself, and the pods of a ReplicaSet, a StatefulSet or any other owner.

A pod that names a group of any scheduler is left alone, also if that group does not exist.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from phalanx.controllers.controller import NOTHING, Create, Delete, Key, Patch, RecordEvent, Result, View, Write
from phalanx.controllers.objects import (
    annotations_of,
    controller_of,
    group_named,
    inside,
    is_leaving,
    key_of,
    meta_of,
    owner_reference,
)
from phalanx.dialects import group_references as links
from phalanx.dialects import pods, schema
from phalanx.dialects.reading import read_as
from phalanx.errors import ClusterError, SnapshotError
from phalanx.model.kinds import GROUP_BY_DIALECT, NAMESPACE, POD, REPLICA_SET, STATEFUL_SET, Document, Kind, kind_of
from phalanx.model.resources import quantity_text
from phalanx.model.task_status import ENDED

GROUP = GROUP_BY_DIALECT["volcano"]
PREFIX = "podgroup-"
OUR_SCHEDULERS = frozenset({"volcano", "phalanx"})
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
TOPOLOGY_MODE, HIGHEST_TIER = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier"
INHERITED = "volcano.sh/"
"""How annotations begin that a group takes over from its owner and its pod: preemptable, cooldown-time, revocable-zone, jdb-..."""


def own_group(uid: str) -> str:
    """Return the name of the group that is made for an owner, or for a pod without one."""
    return f"{PREFIX}{uid}"


class PodGroupController:
    """Creates groups for pods that name none, and names them on the pods."""

    name = "podgroup"
    watches = (POD,)
    brings_back = ()

    def __init__(
        self,
        schedulers: frozenset[str] = OUR_SCHEDULERS,
        is_left_out: Callable[[View, Document], bool] = lambda view, pod: False,
        awaits_owner: Callable[[View, Document], float] = lambda view, pod: 0.0,
    ) -> None:
        """Serve the pods that name one of these schedulers, but for those that another controller groups.

        `awaits_owner` returns until when it is unknown who that is.
        """
        self._schedulers, self._is_left_out, self._awaits_owner = schedulers, is_left_out, awaits_owner

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return a pod of ours that has not ended and names no group but the one that is made for it."""
        is_ours = inside(document, "spec", "schedulerName") in self._schedulers
        is_over = is_leaving(document) or inside(document, "status", "phase") in ENDED
        return [key_of(document)] if is_ours and not is_over and group_named(document) in ("", _group_for(document)) else []

    def reconcile(self, view: View, key: Key) -> Result:
        """Make the group if need be, then name it on the pod."""
        pod = view.find(POD, key.namespace, key.name)
        if pod is None or key not in self.concerns(view, POD, pod) or _is_scaled_to_none(view, pod):
            return NOTHING
        if (until := self._awaits_owner(view, pod)) > view.now:
            return Result((), until)
        if self._is_left_out(view, pod):
            return NOTHING
        name = _group_for(pod)
        writes: list[Write] = []
        if view.find(GROUP, key.namespace, name) is None:
            writes += _group(view, pod)
        if not group_named(pod):
            writes.append(Patch(POD, key.namespace, key.name, {"metadata": {"annotations": {links.GROUP: name}}}))
        return Result(writes)


class OwnedGroupController:
    """Keeps the groups of ReplicaSets and StatefulSets as these say, and removes them with their last replica."""

    name = "owned-podgroup"
    watches = (REPLICA_SET, STATEFUL_SET)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the group of a set."""
        return [Key(key_of(document).namespace, own_group(str(meta_of(document).get("uid"))))]

    def reconcile(self, view: View, key: Key) -> Result:
        """Remove the group of a set without replicas; otherwise write what the set says anew."""
        group = view.find(GROUP, key.namespace, key.name)
        owner = None if group is None else _owner(view, group)
        if group is None or owner is None:
            return NOTHING
        if _replicas(owner) == 0:
            return Result([Delete(GROUP, key.namespace, key.name, meta_of(group)["uid"])])
        member = next(iter(view.owned(meta_of(owner)["uid"], POD)), None)
        made = None if member is None else _document(view, member)
        return NOTHING if made is None else Result(_updated(group, made))


def _group_for(pod: Document) -> str:
    owner = controller_of(pod)
    return own_group(str((owner or meta_of(pod)).get("uid", "")))


def _owner(view: View, document: Document) -> Document | None:
    """Return the object that manages another, if it is of a kind that is served."""
    reference = controller_of(document)
    if reference is None:
        return None
    try:
        found = view.find(kind_of(reference), key_of(document).namespace, str(reference.get("name", "")))
    except ClusterError:
        return None
    return found if found is not None and meta_of(found).get("uid") == reference.get("uid") else None


def _replicas(owner: Document) -> int:
    replicas = inside(owner, "spec", "replicas")
    return replicas if isinstance(replicas, int) else 1


def _is_scaled_to_none(view: View, pod: Document) -> bool:
    owner = _owner(view, pod)
    return owner is not None and owner.get("kind") in (REPLICA_SET.kind, STATEFUL_SET.kind) and _replicas(owner) == 0


# --- the group -----------------------------------------------------------------------------------------------------------


def _group(view: View, pod: Document) -> list[Write]:
    owner = _owner(view, pod)
    problems = [] if owner is None else [_min_member(owner)[1]]
    return [
        Create(_document(view, pod)),
        *(RecordEvent(owner or pod, "Invalid", text, is_warning=True) for text in problems if text),
    ]


def _document(view: View, pod: Document) -> dict[str, Any]:
    """Return the group of a pod, as it and its owner describe it."""
    owner, reference = _owner(view, pod), controller_of(pod)
    minimum = 1 if owner is None else _min_member(owner)[0]
    texts = {**({} if owner is None else annotations_of(owner)), **annotations_of(pod)}
    meta = {
        "namespace": key_of(pod).namespace, "name": _group_for(pod),
        "annotations": {name: text for name, text in sorted(texts.items()) if name.startswith(INHERITED)},
        "ownerReferences": [owner_reference({**pod, "apiVersion": "v1", "kind": "Pod"}) if reference is None else dict(reference)],
    }  # fmt: skip
    queue, priority = texts.get(QUEUE_NAME) or _queue_of_namespace(view, pod), inside(pod, "spec", "priorityClassName")
    spec = {
        "minMember": minimum, "queue": queue, "minResources": _needs(pod, minimum),
        **({"priorityClassName": priority} if priority else {}), **_topology(texts),
    }  # fmt: skip
    return {"apiVersion": GROUP.api_version, "kind": GROUP.kind, "metadata": meta, "spec": spec}


def _queue_of_namespace(view: View, pod: Document) -> str:
    namespace = view.find(NAMESPACE, "", key_of(pod).namespace)
    return ("" if namespace is None else annotations_of(namespace).get(QUEUE_NAME, "")) or "default"


def _min_member(owner: Document) -> tuple[int, str]:
    """Return how many pods an owner wants to start together, and what is wrong with its annotation."""
    text = annotations_of(owner).get(MIN_MEMBER)
    if text is None:
        return 1, ""
    if text.isascii() and text.isdecimal() and int(text) < 2**31:
        return int(text), ""
    return 1, f"metadata.annotations[{MIN_MEMBER!r}]: {text!r} is not a number of pods; 1 is used, write for example '4'"


def _needs(pod: Document, minimum: int) -> dict[str, str]:
    """Return what so many pods ask for; nothing if that cannot be read, which the quarantine controller reports."""
    try:
        request = pods.pod_request(read_as(pod["spec"], schema.ShapeSpec))
    except (SnapshotError, msgspec.ValidationError):
        return {}
    return {name: quantity_text(name, amount * minimum) for name, amount in sorted(request.items())}


def _topology(texts: dict[str, str]) -> dict[str, Any]:
    """Return the bounds of a group in the network; a mode that is not known means hard, as for Volcano."""
    mode, tier = texts.get(TOPOLOGY_MODE), texts.get(HIGHEST_TIER, "")
    if mode is None and not tier:
        return {}
    found: dict[str, Any] = {"mode": "soft" if (mode or "").lower() == "soft" else "hard"}
    return {"networkTopology": {**found, **({"highestTierAllowed": int(tier)} if tier.isascii() and tier.isdecimal() else {})}}


def _updated(group: Document, made: Document) -> list[Write]:
    """Return the patch of a group whose owner has changed; fields that others wrote stay."""
    own = {name: text for name, text in annotations_of(made).items() if annotations_of(group).get(name) != text}
    spec = {name: value for name, value in made["spec"].items() if inside(group, "spec", name) != value}
    patch = {**({"metadata": {"annotations": own}} if own else {}), **({"spec": spec} if spec else {})}
    key = key_of(group)
    return [Patch(GROUP, key.namespace, key.name, patch)] if patch else []
