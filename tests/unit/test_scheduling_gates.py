"""Plans behind gates: each is written once for a version of its pod, and again after pauses that grow."""

from phalanx.config.builtin import CATALOGUE
from phalanx.controllers.controller import Patch
from phalanx.errors import ClusterError, Conflict, Forbidden
from phalanx.model.kinds import NODE, POD, Document
from phalanx.model.watch_event import ADDED, MODIFIED, WatchEvent
from phalanx.scheduling.gates import GateLoop, GatePlanner
from phalanx.session.cycle import Profile
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support import gated_gangs as gates
from tests.support.still_port import Outside

NOW, GAP = 1_767_225_600.0, 0.1


class Scene:
    """A node with room for two pods, and gangs of one pod behind our gate."""

    def __init__(self, *pods: str) -> None:
        self.mirror, self.complaints = Mirror(lambda: NOW), list[str]()
        self.outside = Outside(self.mirror, NOW)
        self.mirror.put(NODE, {**(node := build.node("n0", gpus=2)), "metadata": {**node["metadata"], "resourceVersion": "1"}})
        planner = GatePlanner(Profile(gates.PLANNING, CATALOGUE), self.mirror.everything)
        self.loop = GateLoop(self.outside, planner, gap=GAP, report=self.complaints.append)
        self.loop.start()
        for name in pods:
            self.show(gates.pod(name, name, 1, gpus=1), version=1)

    def show(self, pod: Document, version: int) -> None:
        """Let the watch bring a version of a pod."""
        shown = {**pod, "metadata": {**pod["metadata"], "resourceVersion": f"{version}"}}
        self.mirror.put(POD, shown)
        self.loop.notice(WatchEvent(version, ADDED if version == 1 else MODIFIED, POD, shown))

    def written(self) -> list[str]:
        """Return the pods on which plans are being written, with the version each was made for."""
        writes = [write for write, _ in self.outside.sent]
        return [f"{write.name} {write.patch['metadata']['resourceVersion']}" for write in writes if isinstance(write, Patch)]

    def answer(self, problem: ClusterError | None) -> None:
        self.outside.answer(problem)


def test_a_plan_is_written_once_while_nothing_is_known_of_the_first_try() -> None:
    scene = Scene("a")
    scene.outside.wait()
    assert scene.written() == ["a 1"]
    scene.show(gates.pod("b", "b", 1, gpus=1), version=1)
    scene.outside.wait()
    assert scene.written() == ["a 1", "b 1"]


def test_once_it_is_answered_it_rests_until_a_watch_shows_what_became_of_it() -> None:
    for problem in (None, Conflict("the object has been modified")):
        scene = Scene("a")
        scene.outside.wait()
        scene.answer(problem)
        scene.show(gates.pod("b", "b", 1, gpus=1), version=1)
        scene.outside.wait()
        assert scene.written() == ["b 1"]
        scene.show(gates.pod("a", "a", 1, gpus=1), version=2)
        scene.outside.wait()
        assert scene.written() == ["b 1", "a 2"]
        assert not scene.complaints


def test_one_that_no_watch_shows_is_written_again_after_pauses_that_grow() -> None:
    """As when etcd is restored: the pod is the same as before it was written."""
    scene = Scene("a")
    scene.outside.wait()
    pauses = []
    for _ in range(3):
        scene.answer(None)
        pauses.append(scene.outside.wait())
        assert scene.written() == ["a 1"]
    assert pauses == [1.0, 2.0, 4.0]


def test_refused_ones_rest_whatever_changes_and_others_do_not_wait_for_them() -> None:
    scene = Scene("a")
    scene.outside.wait()
    pauses = []
    for version in range(2, 6):
        refusal = Forbidden("pods is forbidden")
        refusal.retry_after = 20.0 if version == 2 else 0.0
        scene.answer(refusal)
        scene.show(gates.pod("a", "a", 1, gpus=1), version=version)
        before = scene.outside.now
        scene.outside.wait()
        assert scene.written() == []
        scene.outside.wait()
        assert scene.written() == [f"a {version}"]
        pauses.append(scene.outside.now - before)
    assert pauses == [20.0, 2.0, 4.0, 8.0]
    scene.show(gates.pod("b", "b", 1, gpus=1), version=1)
    scene.outside.wait()
    assert scene.written() == ["a 5", "b 1"]
    assert len(scene.complaints) == 4


def test_who_does_not_lead_any_more_neither_complains_nor_tries_again() -> None:
    scene = Scene("a")
    scene.outside.wait()
    scene.loop.stop()
    scene.answer(Forbidden("not sent"))
    assert not scene.complaints
    assert not scene.outside.timers
    scene.loop.start()
    scene.show(gates.pod("a", "a", 1, gpus=1), version=2)
    scene.outside.wait()
    assert scene.written() == ["a 2"]
