"""The status of groups: written when the cause because of which a gang waits changes, now and then when only numbers do."""

from phalanx.config.builtin import CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import Document
from phalanx.scheduling.status_writer import LONGEST_PAUSE, SHORTEST_PAUSE, StatusWriter
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
        self.cluster, self.writer = ObjectCluster(), StatusWriter(Mirror(lambda: NOW), raised)
        group, *pods = build.gang("train", tasks=2, cpu=1)
        group["status"]["phase"] = "Inqueue"
        self.put(build.queue("default"), build.node("n0", cpu=1), group, *pods)

    def put(self, *documents: Document) -> None:
        for document in documents:
            self.cluster.put(document)

    def writes(self, seconds: float = 0.0) -> list[str]:
        """Hold a session so many seconds after the start; return the messages that are written."""
        snapshot = self.cluster.snapshot(NOW + seconds)
        found = list(self.writer.writes(snapshot, run_cycle(snapshot, POLICY, CATALOGUE)))
        return [str(write) for write in found if "train" in str(write) and "conditions" in str(write)]


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
