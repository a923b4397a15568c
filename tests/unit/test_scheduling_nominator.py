"""Nodes that sessions nominate for pods: sessions go by them at once, and what the server refused is written again."""

from phalanx.config.builtin import CATALOGUE
from phalanx.controllers.controller import Patch
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import ClusterError
from phalanx.model.kinds import POD, Document, kind_of
from phalanx.model.task import TaskKey
from phalanx.model.watch_event import WatchEvent
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.nominator import Nominator
from phalanx.session.cycle import run_cycle
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support.still_port import Outside

POLICY = build.policy([["gang"], ["predicates"]], "enqueue, allocate")
NOW = 1_767_225_600.0


class Scene:
    """A gang of two on a node with room for one, and another node from which somebody leaves."""

    def __init__(self) -> None:
        self.mirror = Mirror(lambda: NOW)
        self.outside = Outside(self.mirror, NOW)
        self.cache = SchedulerCache(ObjectCluster(), report=print)
        self.mirror.listen(self._hear)
        self.nominator = Nominator(self.outside, self.cache)
        leaves = build.pod("leaves", on="n1", cpu=1)
        leaves["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        group, *self.pods = build.gang("train", tasks=2, cpu=1)
        group["status"]["phase"] = "Inqueue"
        nodes = (build.node(f"n{number}", cpu=1) for number in range(2))
        for document in (build.queue("default"), *nodes, leaves, group, *self.pods):
            self.put(document)

    def _hear(self, event: WatchEvent) -> None:
        self.cache.notice(event)

    def put(self, document: Document) -> None:
        self.mirror.put(kind_of(document), {**document, "metadata": {"uid": document["metadata"]["name"], **document["metadata"]}})

    def session(self, seconds: float = 0.0) -> dict[str, str | None]:
        """Hold a session; return which node is named on which pod by what is sent."""
        self.outside.sent.clear()
        self.outside.now = NOW + seconds
        snapshot = self.cache.snapshot(NOW + seconds)
        self.nominator.write(snapshot, run_cycle(snapshot, POLICY, CATALOGUE))
        writes = [write for write, _ in self.outside.sent if isinstance(write, Patch)]
        return {write.name: write.patch["status"]["nominatedNodeName"] for write in writes}

    def answer(self, problem: ClusterError | None = None) -> None:
        while self.outside.sent:
            write = self.outside.sent[0][0]
            assert isinstance(write, Patch)
            pod = self.mirror.find(POD, "default", write.name)
            if problem is None and pod is not None:
                self.put({**pod, "status": {"phase": "Pending", **write.patch["status"]}})
            self.outside.answer(problem)

    def nominated(self) -> list[str]:
        tasks = (self.cache.cluster.state.task(TaskKey(f"default/train-{number}")) for number in range(2))
        return [task.nominated_node for task in tasks if task is not None]


def test_places_that_are_free_already_are_nominated_too_while_the_rest_of_the_gang_waits_for_others_to_leave() -> None:
    assert Scene().session() == {"train-0": "n0", "train-1": "n1"}


def test_the_next_session_sees_what_was_nominated_before_the_server_has_answered() -> None:
    scene = Scene()
    scene.session()
    assert scene.nominated() == ["n0", "n1"]
    assert scene.session() == {}


def test_what_the_server_has_taken_stays_and_what_it_refused_is_forgotten() -> None:
    scene = Scene()
    scene.session()
    scene.answer()
    assert scene.nominated() == ["n0", "n1"]
    other = Scene()
    other.session()
    other.answer(ClusterError("pods/status is forbidden"))
    assert other.nominated() == ["", ""]


def test_a_nomination_that_the_server_refused_is_written_again_after_a_pause_that_doubles() -> None:
    scene, moments = Scene(), list[int]()
    for second in range(20):
        if scene.session(second):
            moments.append(second)
            scene.answer(ClusterError("pods/status is forbidden"))
    assert moments == [0, 1, 3, 7, 15]


def test_a_pod_that_was_made_anew_has_no_nomination_of_the_one_before() -> None:
    scene = Scene()
    scene.session()
    pod = scene.pods[0]
    scene.put({**pod, "metadata": {**pod["metadata"], "uid": "another"}})
    assert scene.nominated() == ["", "n1"]
