"""Groups that are left without pods: the pod grouper makes a group with its first pod and deletes it with its last one.

Owners outlive parts of what they own: replicas of a LeaderWorkerSet are scaled away, a JobSet is suspended, a Deployment replaces
its pods. A group that nobody is in would be listed for as long as the owner is there. When pods come again, so does their group.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from phalanx.controllers.controller import NOTHING, Delete, Key, Result, View
from phalanx.controllers.gang_pods import members
from phalanx.controllers.grouper.group_spec import TOP_OWNER
from phalanx.controllers.grouper.owners import pods_under
from phalanx.controllers.grouper.pod_membership import membership_of
from phalanx.controllers.objects import annotations_of, key_of, meta_of
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD, Document, Kind
from phalanx.model.moment import moment_of

PREFIX, LONGEST_UID = "pg-", 37
"""Around the name of a pod in the name of its group."""
LINKING_SECONDS = 30.0
"""So long after a group was made its pod may still have to be linked."""


@dataclass(frozen=True, slots=True)
class GroupKey(Key):
    """A group that may be empty."""

    is_new: bool = False
    """Nobody may have been in it yet."""


def groups_of_gone(view: View, pod: Document) -> Iterator[GroupKey]:
    """Yield the groups that a pod was in, if it is gone."""
    meta = meta_of(pod)
    namespace, name = str(meta.get("namespace") or "default"), str(meta.get("name", ""))
    if view.find(POD, namespace, name) is None:
        yield from (GroupKey(namespace, group) for group in sorted(_links(pod)))


def unused_groups(view: View, owner: Document, kind: Kind) -> Iterator[GroupKey]:
    """Yield the groups of an owner that no pod below it is in."""
    uid = str(meta_of(owner).get("uid", ""))
    groups = [str(meta_of(group)["name"]) for group in view.owned(uid, kind)]
    used = {name for pod in pods_under(view, uid) for name in _links(pod)} if groups else set()
    namespace = str(meta_of(owner).get("namespace") or "default")
    yield from (GroupKey(namespace, name) for name in groups if name not in used)


def perhaps_unused(view: View, group: Document) -> Iterator[GroupKey]:
    """Yield a group if none of its owner's pods is in it: its first pod may be gone before it was linked."""
    if _is_ours(group) and not _has_own_pod(view, group):
        place = key_of(group)
        yield GroupKey(place.namespace, place.name, is_new=True)


def _has_own_pod(view: View, group: Document) -> bool:
    name, namespace = str(meta_of(group)["name"]), str(meta_of(group).get("namespace") or "default")
    pod = view.find(POD, namespace, name[len(PREFIX) : -LONGEST_UID])  # most groups of a large cluster are those of one pod
    if pod is not None and name in _links(pod):
        return True
    owners = (str(owner.get("uid", "")) for owner in meta_of(group).get("ownerReferences") or ())
    return any(name in _links(each) for uid in owners for each in pods_under(view, uid))


def without_empty(view: View, kind: Kind, dialect: str, key: GroupKey) -> Result:
    """Delete a group that this controller has made and no pod is in; a new one is left for a while to the pod that it is for."""
    group = view.find(kind, key.namespace, key.name)
    if group is None or not _is_ours(group) or members(view, Key(key.namespace, key.name), (dialect,)):
        return NOTHING
    due = (moment_of(str(meta_of(group).get("creationTimestamp") or "")) or 0.0) + LINKING_SECONDS
    if key.is_new and due > view.now:
        return Result((), due)
    return Result([Delete(kind, key.namespace, key.name, str(meta_of(group).get("uid", "")))])


def _is_ours(group: Document) -> bool:
    """Tell whether the grouper has made a group, for an owner that may outlive its pods; a pod takes its own group with it."""
    owners = meta_of(group).get("ownerReferences") or ()
    return TOP_OWNER in annotations_of(group) and any(owner.get("kind") != POD.kind for owner in owners)


def _links(pod: Document) -> set[str]:
    try:
        return membership_of(pod).links
    except SnapshotError:
        return set()
