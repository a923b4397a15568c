"""Whether a request will ask for the nodes of a gang: known before it is made, so that no autoscaler acts on each pod."""

from phalanx.controllers.provisioning.controller import NOT_ASKED, requests_nodes
from phalanx.controllers.provisioning.queue_class import BEST_EFFORT, CLASS
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.conditions import CONSUMES
from phalanx.model.kinds import GROUP_BY_DIALECT, POD
from phalanx.sim.store_port import StorePort
from phalanx.sim.virtual_time import Precedence, VirtualTime
from phalanx.state.gang_state import GangState
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from phalanx.testing.build import Document

GROUP = GROUP_BY_DIALECT["volcano"]


def gang(min_member: int = 4) -> list[Document]:
    return build.gang("train", tasks=4, min_member=min_member, queue="research", cpu=1)


def asking() -> Document:
    """Return a queue whose gangs ask for nodes."""
    return annotated(build.queue("research"), **{CLASS: BEST_EFFORT})


def is_asked_for(*documents: Document) -> bool:
    """Tell whether nodes for the gang are asked for, as far as whoever says why its pods wait can know."""
    time = VirtualTime(0.0)
    store, cluster = MemoryStore(lambda: time.now), ObjectCluster()
    for document in documents:
        store.load(document)
    for item in (*store.items(GROUP), *store.items(POD)):
        cluster.put(item)
    (found,) = cluster.snapshot(0.0).gangs.values()
    numbers = {"": -1, "n": 0}
    state = GangState(found, ((task, numbers[task.node]) for task in cluster.state.members(found.key).values()))
    return requests_nodes(StorePort(store, time, Precedence.CONTROLLER).view, state)


def annotated(document: Document, **texts: str) -> Document:
    meta = document["metadata"]
    return {**document, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), **texts}}}


def test_whoever_says_why_pods_wait_knows_before_the_request_is_made() -> None:
    group, *pods = gang()
    assert is_asked_for(asking(), group, *pods)
    assert not is_asked_for(build.queue("research"), group, *pods)
    assert not is_asked_for(asking(), annotated(group, **{NOT_ASKED: "too many kinds"}), *pods)
    assert not is_asked_for(asking(), group, *pods[1:], annotated(pods[0], **{CONSUMES: "of-somebody-else"}))


def test_pods_beyond_the_minimum_of_a_gang_are_not_asked_for_together() -> None:
    first = build.pod("train-0", group="train", on="n", cpu=1)
    group, _, *rest = gang(min_member=1)
    assert not is_asked_for(asking(), group, first, *rest)
