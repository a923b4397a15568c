"""The status of groups: written when the cause because of which a gang waits changes, now and then when only numbers do."""

from phalanx.config.builtin import CATALOGUE
from phalanx.controllers.controller import Patch
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import ClusterError, Forbidden
from phalanx.model.kinds import Document
from phalanx.model.watch_event import MODIFIED, WatchEvent
from phalanx.scheduling.status_writer import LONGEST_PAUSE, MOST_GONE, SHORTEST_PAUSE, TAKES_PART, StatusWriter
from phalanx.session.cycle import run_cycle
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build

POLICY = build.policy([["gang"], ["predicates"]], "enqueue, allocate")
NOW = 1_767_225_600.0


def raised(problem: Exception) -> None:
    raise problem


class Scene:
    """A gang of two on a node that has room for one, and what is written on its group."""

    def __init__(self) -> None:
        self.now = NOW
        self.cluster, self.writer = ObjectCluster(), StatusWriter(Mirror(lambda: self.now), raised)
        group, *pods = build.gang("train", tasks=2, cpu=1)
        group["status"]["phase"] = "Inqueue"
        self.put(build.queue("default"), build.node("n0", cpu=1), group, *pods)

    def put(self, *documents: Document) -> None:
        for document in documents:
            self.cluster.put(document)

    def writes(self, seconds: float = 0.0) -> list[str]:
        """Hold a session so many seconds after the start; return the messages that are written."""
        return [str(write) for write in self.patches(seconds)]

    def patches(self, seconds: float = 0.0) -> list[Patch]:
        """Hold a session so many seconds after the start; return what is written on the group."""
        self.now = NOW + seconds
        snapshot = self.cluster.snapshot(self.now)
        found = list(self.writer.writes(snapshot, run_cycle(snapshot, POLICY, CATALOGUE)))
        return [write for write in found if isinstance(write, Patch) and "train" in str(write) and "conditions" in str(write)]


def test_numbers_that_change_all_the_time_are_written_more_and_more_rarely() -> None:
    scene, written = Scene(), []
    for number in range(100):
        scene.put(build.node(f"small-{number}", cpu=0))
        written += [number] * len(scene.writes(seconds=number))
    assert written == [0, 1, 3, 7, 15, 31, 63]


def test_numbers_are_brought_up_to_date_when_nothing_else_happens() -> None:
    scene = Scene()
    scene.writes()
    scene.put(build.node("small", cpu=0))
    assert (scene.writes(SHORTEST_PAUSE / 2), scene.writer.due) == ([], NOW + SHORTEST_PAUSE)
    assert "2 nodes" in scene.writes(SHORTEST_PAUSE)[0]
    assert (scene.writes(LONGEST_PAUSE), scene.writer.due) == ([], None)


def test_another_cause_is_written_at_once() -> None:
    scene = Scene()
    scene.writes()
    scene.put(build.node("n0", cpu=1, spec={"unschedulable": True}))
    assert len(scene.writes(seconds=1.0)) == 1


def test_a_status_that_the_server_refused_is_written_again_after_a_pause_that_doubles() -> None:
    scene, moments = Scene(), list[int]()
    for second in range(20):
        for write in scene.patches(second):
            moments.append(second)
            assert scene.writer.answered(write, ClusterError("podgroups/status is forbidden"))
    assert moments == [0, 1, 3, 7, 15]
    assert scene.writer.due == NOW + 31


def test_a_status_that_came_through_is_not_written_again() -> None:
    scene = Scene()
    (write,) = scene.patches()
    assert not scene.writer.answered(write, None)
    assert scene.patches(1.0) == []


def test_a_status_that_somebody_overwrote_is_written_again() -> None:
    scene = Scene()
    (write,) = scene.patches()
    group = build.pod_group("train", min_member=2)
    ours, theirs = {**group, "status": write.patch["status"]}, {**group, "status": {"phase": "Pending"}}
    assert not scene.writer.noticed(WatchEvent(1, MODIFIED, write.kind, ours, theirs))
    assert scene.patches(1.0) == []
    assert scene.writer.noticed(WatchEvent(2, MODIFIED, write.kind, theirs, ours))
    assert len(scene.patches(2.0)) == 1


def test_gangs_whose_writes_are_all_refused_are_forgotten_when_they_are_gone() -> None:
    scene = Scene()
    for number in range(4 * MOST_GONE):
        gang = build.gang(f"train-{number}", tasks=1, cpu=4)
        scene.put(*gang)
        for write in scene.patches(seconds=number):
            scene.writer.answered(write, Forbidden("no rights"))
        for document in gang:
            scene.cluster.remove(document)
    scene.writes(seconds=5 * MOST_GONE)
    writer = scene.writer
    assert max(len(writer._places), len(writer._refusals), len(writer._written)) <= 2 * MOST_GONE


def test_pods_that_said_their_gang_is_quarantined_are_forgotten_when_they_are_gone() -> None:
    scene = Scene()
    scene.writer._said = {f"default/gone-{number}": (str(number), TAKES_PART) for number in range(2 * MOST_GONE)}
    scene.writes()
    assert scene.writer._said == {}
