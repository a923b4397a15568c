"""Evictions that the server refuses: tried again after a pause, with all others for the same gang."""

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.controllers.controller import Evict
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import Busy
from phalanx.model.kinds import Document, kind_of
from phalanx.model.moment import moment_text
from phalanx.model.watch_event import ADDED, WatchEvent
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.eviction import Evictor
from phalanx.session.cycle import run_cycle
from phalanx.session.decision import Decisions
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support.still_port import Outside

NOW = 1_767_225_600.0
HIGH: Document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}


class Scene:
    """A gang of two on two full nodes, whose victims are two gangs of one."""

    def __init__(self) -> None:
        self.mirror = Mirror(lambda: self.outside.now)
        self.outside = Outside(self.mirror, NOW)
        self.cache = SchedulerCache(ObjectCluster(), report=lambda text: None)
        self.evictor = Evictor(self.outside, self.cache, wake=lambda: None)
        group, *pods = build.gang("urgent", tasks=2, cpu=4)
        group["spec"]["priorityClassName"] = "high"
        documents = [build.queue("default"), HIGH, build.node("n0", cpu=4), build.node("n1", cpu=4), group, *pods]
        for number in range(2):
            victim, *running = build.gang(f"low-{number}", tasks=1, cpu=4)
            for pod in running:
                pod["spec"]["nodeName"] = f"n{number}"
                pod["status"] = {"phase": "Running", "startTime": moment_text(int(NOW) - 60)}
            documents += [{**victim, "status": {"phase": "Running"}}, *running]
        for number, document in enumerate(documents):
            self.mirror.put(kind_of(document), {**document, "metadata": {**document["metadata"], "resourceVersion": str(number)}})
            self.cache.notice(WatchEvent(number, ADDED, kind_of(document), document))

    def session(self) -> Decisions:
        """Hold a session and send what it evicts."""
        decisions = run_cycle(self.cache.snapshot(self.outside.now), policy_of_profile("phalanx"), CATALOGUE)
        assert len(decisions.evictions) == 2
        self.evictor.hold_back([decisions])
        for eviction in decisions.evictions.values():
            self.evictor.start(eviction)
        return decisions

    def sent(self) -> list[str]:
        """Return the pods that are to go."""
        return sorted(write.name for write, _ in self.outside.sent if isinstance(write, Evict))


def test_while_one_victim_may_not_go_nobody_else_goes_for_the_same_gang() -> None:
    scene, refusal = Scene(), Busy("Cannot evict pod as it would violate the pod's disruption budget.")
    scene.session()
    assert scene.sent() == ["low-0-0", "low-1-0"]
    scene.outside.answer(refusal)
    scene.outside.answer(refusal)
    decisions = scene.session()
    assert scene.sent() == []
    assert {outcome.state.gang.key for outcome in decisions.outcomes} == set(), "nothing is said that does not come about"
    assert scene.evictor.due == NOW + 1.0


def test_it_is_tried_again_after_a_pause_that_doubles() -> None:
    scene, moments = Scene(), list[float]()
    for tenth in range(200):
        scene.outside.now = NOW + tenth / 10
        scene.session()
        if scene.sent():
            moments.append(tenth / 10)
        while scene.outside.sent:
            scene.outside.answer(Busy("no"))
    assert moments == [0.0, 1.0, 3.0, 7.0, 15.0]


def test_an_eviction_that_went_through_is_forgotten() -> None:
    scene = Scene()
    scene.session()
    scene.outside.answer(None)
    scene.outside.answer(None)
    assert len(scene.evictor._refusals) == 0
    assert scene.evictor.due is None
