"""Whether a gang has all it needs, by the one rule that sessions follow too."""

from collections.abc import Collection
from contextlib import suppress

from phalanx.controllers.binder.pending import ALONE, Ask
from phalanx.controllers.controller import Key, View
from phalanx.controllers.objects import group_named
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.model.kinds import GROUP_KINDS, POD, Document
from phalanx.state.gang_state import GangState
from phalanx.state.staleness import lacks


def is_whole_with(view: View, circle: Key, asks: Collection[Ask]) -> bool:
    """Tell whether a gang has all it needs once these requests are worked off; a pod without a group needs nobody."""
    if circle.name.startswith(ALONE):
        return True
    node_by_pod = {ask.pod_key: ask.node for ask in asks if not ask.is_bound}
    cluster = _cluster(view, circle, node_by_pod)
    return not any(lacks(gang) for gang in _gangs(cluster))


def _cluster(view: View, circle: Key, node_by_pod: dict[Key, str]) -> ObjectCluster:
    """Return the group and its pods, those of the table where they are to go."""
    cluster = ObjectCluster()
    groups = [view.find(kind, circle.namespace, circle.name) for kind in GROUP_KINDS]
    pods = [_placed(pod, node_by_pod) for pod in view.within(POD, circle.namespace) if group_named(pod) == circle.name]
    for document in (*(group for group in groups if group is not None), *pods):
        with suppress(SnapshotError):  # whoever enters objects says what is wrong with this one
            cluster.put(document)
    return cluster


def _placed(pod: Document, node_by_pod: dict[Key, str]) -> Document:
    meta = pod["metadata"]
    node = node_by_pod.get(Key(meta["namespace"], meta["name"]))
    return pod if node is None else {**pod, "spec": {**pod["spec"], "nodeName": node}}


def _gangs(cluster: ObjectCluster) -> list[GangState]:
    snapshot = cluster.snapshot(0.0)
    return [GangState(gang, ((task, -1) for task in snapshot.members_of(key).values())) for key, gang in snapshot.gangs.items()]
