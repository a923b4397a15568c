"""Nodes that gangs are nominated to are kept from autoscalers, and only as long as they are."""

from typing import Any

from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import NODE, POD
from phalanx.model.task import GangKey
from phalanx.model.watch_event import ADDED, WatchEvent
from phalanx.scheduling.annotator import Annotator
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.kept_nodes import KEPT_BY, KEPT_FOR, OF_AUTOSCALERS, KeptNodes
from phalanx.session.decision import Decisions
from phalanx.session.reservation import ReservedStart
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.sim.world import World
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support import sim_worlds as worlds
from tests.support.still_port import Outside

PREEMPTING = build.policy((("priority", "gang"), ("predicates", "proportion")), "allocate, gangpreempt")
SCALE_DOWN, DISRUPT = OF_AUTOSCALERS
OURS = {SCALE_DOWN: "true", DISRUPT: "true", KEPT_FOR: "default/high", KEPT_BY: f"{SCALE_DOWN}, {DISRUPT}"}


def preempting(**annotations: str) -> tuple[World, list[dict[str, str]]]:
    """Return a node on which a gang is preempted at second 10, and the annotations that the node will have one after the other."""
    world, seen = worlds.world(nodes=1, gpus=1, policy=PREEMPTING), list[dict[str, str]]()
    world.loop.keeps_nodes = True
    _annotate(world, annotations)
    world.load([{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}])
    worlds.submit(world, build.gang("low", tasks=1, gpus=1))
    urgent, hurried = build.gang("high", tasks=1, gpus=1)
    urgent["spec"]["priorityClassName"] = hurried["spec"]["priorityClassName"] = "high"
    worlds.submit(world, [urgent, hurried], at=10)
    world.store.listen(lambda event: _note(event, seen))
    return world, seen


def _annotate(world: World, annotations: dict[str, str]) -> None:
    (node,) = world.store.items(NODE)
    world.store.patch(NODE, "", node["metadata"]["name"], {"metadata": {"annotations": annotations}})


def _note(event: WatchEvent, seen: list[dict[str, str]]) -> None:
    found = dict(event.object["metadata"].get("annotations") or {}) if event.kind is NODE else None
    if found is not None and (not seen or seen[-1] != found):
        seen.append(found)


def annotations_of(world: World) -> dict[str, str]:
    (node,) = world.store.items(NODE)
    return dict(node["metadata"].get("annotations") or {})


def test_a_node_is_kept_while_victims_leave_it_and_no_longer() -> None:
    world, seen = preempting()
    worlds.run(world, 300)
    assert worlds.phases(world.store)["high-0"] == "Running"
    assert seen == [OURS, {}]


def test_nothing_is_written_where_nobody_asked_for_it() -> None:
    world, seen = preempting()
    world.loop.keeps_nodes = False
    worlds.run(world, 300)
    assert worlds.phases(world.store)["high-0"] == "Running"
    assert seen == []


def test_annotations_of_others_are_left_alone() -> None:
    world, seen = preempting(**{SCALE_DOWN: "true", "team": "ml"})
    worlds.run(world, 300)
    others = {SCALE_DOWN: "true", "team": "ml"}
    assert seen == [{**others, DISRUPT: "true", KEPT_FOR: "default/high", KEPT_BY: DISRUPT}, others]


def test_a_node_that_others_keep_already_gets_nothing() -> None:
    world, seen = preempting(**{SCALE_DOWN: "false", DISRUPT: "true"})
    worlds.run(world, 300)
    assert worlds.phases(world.store)["high-0"] == "Running"
    assert seen == []


def test_what_somebody_changed_meanwhile_is_his() -> None:
    world, seen = preempting()
    worlds.run(world, 10)
    assert seen == [OURS]
    _annotate(world, {SCALE_DOWN: "false"})
    worlds.run(world, 300)
    assert annotations_of(world) == {SCALE_DOWN: "false"}


def test_a_node_that_is_kept_for_a_gang_that_is_gone_is_given_back() -> None:
    world, seen = preempting()
    worlds.run(world, 10)
    assert seen == [OURS]
    world.store.delete(POD, "default", "high-0")
    worlds.run(world, 300)
    assert annotations_of(world) == {}


def test_whoever_leads_next_gives_back_what_another_one_kept() -> None:
    world, _ = preempting(**OURS)
    world.loop.start()
    worlds.run(world, 5)
    assert annotations_of(world) == {}


class Scene:
    """Two nodes, and what is to be written on them."""

    def __init__(self) -> None:
        self.mirror, self.cluster = Mirror(lambda: 0.0), ObjectCluster()
        self.outside = Outside(self.mirror, 0.0)
        self.cache = SchedulerCache(self.cluster, report=lambda text: None)
        for number, name in enumerate(("n0", "n1")):
            node = build.node(name)
            node["metadata"] |= {"uid": name, "resourceVersion": str(number + 1)}
            self.mirror.put(NODE, node)
            self.cache.notice(WatchEvent(number, ADDED, NODE, node))
        self.kept = KeptNodes(self.outside, self.cache, Annotator(self.outside, self.cache))

    def writes(self, *reserved: str) -> dict[str, Any]:
        """Let a session reserve nodes for the gang default/large; return what is written on which node."""
        decisions = Decisions()
        if reserved:
            decisions.reservations.append(ReservedStart(GangKey("default/large"), 0, 0.0, reserved))
        self.kept.update([ShardDecisions("", self.cache.snapshot(0.0), decisions)])
        written = {}
        while self.outside.sent:
            write: Any = self.outside.answer(None)
            written[write.name] = write.patch["metadata"]["annotations"]
            self._arrived(write.name, written[write.name])
        return written

    def _arrived(self, name: str, texts: dict[str, str | None]) -> None:
        node = self.mirror.find(NODE, "", name)
        assert node is not None
        annotations = {**node["metadata"].get("annotations", {}), **texts}
        kept = {key: text for key, text in annotations.items() if text is not None}
        version = str(int(node["metadata"]["resourceVersion"]) + 10)
        self.mirror.put(NODE, {**node, "metadata": {**node["metadata"], "annotations": kept, "resourceVersion": version}})


def test_nodes_that_are_reserved_for_a_gang_are_kept_and_given_back() -> None:
    scene = Scene()
    ours = {**OURS, KEPT_FOR: "default/large"}
    assert scene.writes("n0", "n1") == {"n0": ours, "n1": ours}
    assert scene.writes("n0", "n1") == {}
    assert scene.writes("n1") == {"n0": dict.fromkeys(ours)}
    assert scene.writes() == {"n1": dict.fromkeys(ours)}
    assert scene.writes() == {}


def test_a_node_that_is_gone_is_not_asked_for() -> None:
    scene = Scene()
    assert scene.writes("n9") == {}
