"""The condition PodScheduled of pods that wait: what is written, and when it is not worth it."""

from dataclasses import replace
from typing import Any

from phalanx.config.builtin import CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import Busy, ClusterError, SnapshotError
from phalanx.model.kinds import POD, Document
from phalanx.model.watch_event import MODIFIED, WatchEvent
from phalanx.scheduling.pod_conditions import BETWEEN_CAUSES_SECONDS, BETWEEN_COUNTS_SECONDS, PodConditions
from phalanx.session.cycle import run_cycle
from phalanx.state.gang_state import GangState
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support import same_gang as speech

POLICY = build.policy([["gang"], ["predicates"]], "allocate")
NOW = 1_767_225_600.0


def raised(problem: Exception) -> None:
    raise problem


class Scene:
    """A gang of three on nodes that have no room for it, and what its pods are told."""

    def __init__(self, *, tasks: int = 3, **pod: Any) -> None:
        self.now = NOW
        self.cluster, self.mirror = ObjectCluster(), Mirror(lambda: self.now)
        self.conditions = PodConditions(self.mirror, raised)
        self._versions = 0
        self.put(build.queue("default"), build.node("n0", cpu=1))
        group, *pods = build.gang("train", tasks=tasks, cpu=1)
        for document in pods:
            document["spec"].update(pod)
        self.put(group, *pods)

    def put(self, *documents: Document) -> None:
        for document in documents:
            self.cluster.put(document)
            self._versions += 1
            if document["kind"] == "Pod":
                self.mirror.put(POD, {**document, "metadata": {**document["metadata"], "resourceVersion": str(self._versions)}})

    def writes(self, seconds: float = 0.0) -> list[tuple[str, dict[str, str]]]:
        """Hold a session so many seconds after the start; return the pods that are written to, and what."""
        snapshot = self.cluster.snapshot(NOW + seconds)
        found = list(self.conditions.writes(snapshot, run_cycle(snapshot, POLICY, CATALOGUE)))
        assert all(write.is_status for _, write in found)
        return [(write.name, write.patch["status"]["conditions"][0]) for _, write in found]

    def names(self, seconds: float = 0.0) -> list[str]:
        return [name for name, _ in self.writes(seconds)]

    def told(self, name: str, **condition: str) -> None:
        """Let a pod bear a condition already."""
        document = self.mirror.find(POD, "default", name)
        assert document is not None
        self.put({**document, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", **condition}]}})


def test_pods_that_wait_are_told_once_why() -> None:
    scene = Scene()
    writes = dict(scene.writes())
    assert sorted(writes) == ["train-0", "train-1", "train-2"]
    assert "2/3 tasks in gang unschedulable" in writes["train-2"]["message"]  # it was not tried: it says why its gang waits
    condition = writes["train-1"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert "Insufficient cpu" in condition["message"]
    assert scene.writes(seconds=5.0) == []


def test_a_message_that_only_counts_anew_waits_a_while() -> None:
    scene = Scene()
    scene.writes()
    scene.put(build.node("n1", cpu=0))
    assert scene.writes(seconds=BETWEEN_COUNTS_SECONDS - 1) == []
    assert scene.names(seconds=BETWEEN_COUNTS_SECONDS)


def test_another_cause_with_the_same_reason_is_told_after_a_short_while() -> None:
    scene = Scene()
    scene.writes()
    scene.put(build.node("n0", cpu=1, spec={"unschedulable": True}))
    scene.told("train-1", status="False", reason="Unschedulable", message="0/1 nodes are unavailable: 1 Insufficient cpu.")
    assert "train-1" not in scene.names(seconds=BETWEEN_CAUSES_SECONDS - 1)
    scene.put(build.node("n0", cpu=1, spec={"taints": [{"key": "team", "effect": "NoSchedule"}]}))
    written = dict(scene.writes(seconds=2 * BETWEEN_CAUSES_SECONDS))
    assert "node(s) had untolerated taint(s)" in written["train-0"]["message"]


def test_another_reason_is_told_at_once() -> None:
    scene = Scene()
    before = {name: condition["reason"] for name, condition in scene.writes()}
    assert before == dict.fromkeys(("train-0", "train-1", "train-2"), "Unschedulable")
    scene.put(build.pod_group("train", min_member=4))  # it lacks a pod now, which no node would bring
    changed = {name: condition["reason"] for name, condition in scene.writes(seconds=1.0)}
    assert changed == dict.fromkeys(before, "Undetermined")


def test_pods_of_a_gang_for_which_nodes_are_asked_are_never_seen_one_by_one() -> None:
    scene = Scene()
    scene.conditions = PodConditions(scene.mirror, raised, lambda state: state.gang.name == "train")
    scene.put(*build.gang("other", tasks=1, cpu=9))
    assert {name: condition["reason"] for name, condition in scene.writes()} == {
        **dict.fromkeys(("train-0", "train-1", "train-2"), "NodesRequested"), "other-0": "Unschedulable",
    }  # fmt: skip


def test_a_gang_that_cannot_be_asked_about_keeps_nobody_from_being_told() -> None:
    def requests_nodes(state: GangState) -> bool:
        raise SnapshotError(f"gang {state.gang.key} cannot be read")

    scene, problems = Scene(), list[Exception]()
    scene.conditions = PodConditions(scene.mirror, problems.append, requests_nodes)
    assert {condition["reason"] for _, condition in scene.writes()} == {"Unschedulable"}
    assert list(map(str, problems)) == ["gang default/train cannot be read"]


def test_a_gang_that_a_session_leaves_out_says_what_it_said() -> None:
    scene = Scene()
    scene.writes()
    scene.put(build.pod_group("other"), build.pod("other-0", group="other", cpu=9))
    snapshot = scene.cluster.snapshot(NOW + 1)
    partial = replace(snapshot, active=tuple(key for key in snapshot.active if key != "default/train"))
    written = [write.name for _, write in scene.conditions.writes(partial, run_cycle(partial, POLICY, CATALOGUE))]
    assert written == ["other-0"]
    assert scene.writes(seconds=2.0) == []


def test_what_a_pod_bears_already_is_not_written_again() -> None:
    scene = Scene()
    (name, condition), *_ = scene.writes()
    scene.told(name, **{key: value for key, value in condition.items() if key != "type"})
    after_a_restart = PodConditions(scene.mirror, raised)
    snapshot = scene.cluster.snapshot(NOW)
    writes = after_a_restart.writes(snapshot, run_cycle(snapshot, POLICY, CATALOGUE))
    assert name not in [write.name for _, write in writes]


def uid_of(scene: Scene, name: str) -> str:
    pod = scene.mirror.find(POD, "default", name)
    assert pod is not None
    return str(pod["metadata"]["uid"])


def test_what_the_server_refused_is_told_again_after_a_pause_that_doubles() -> None:
    scene, moments = Scene(tasks=2), list[float]()
    uid, problem = uid_of(scene, "train-1"), ClusterError("pods/status is forbidden")
    for tenth in range(100):
        scene.now = NOW + tenth / 10
        if "train-1" in scene.names(seconds=tenth / 10):
            moments.append(tenth / 10)
            assert scene.conditions.answered(uid, problem)
        else:
            assert scene.conditions.due == NOW + moments[-1] + 2.0 ** (len(moments) - 1)
    assert moments == [0.0, 1.0, 3.0, 7.0]
    assert scene.conditions.answered(uid, None) is False


def test_a_pause_goes_on_though_a_bind_was_tried_meanwhile() -> None:
    scene = Scene(tasks=2)
    assert "train-1" in scene.names()
    assert scene.conditions.answered(uid_of(scene, "train-1"), ClusterError("pods/status is forbidden"))
    scene.put(build.node("n1", cpu=1))
    scene.names(seconds=0.2)  # all of them are bound in this session, and come back
    scene.cluster.remove(build.node("n1"))
    assert "train-1" not in scene.names(seconds=0.9)
    assert "train-1" in scene.names(seconds=1.0)


def test_what_the_server_was_too_busy_for_is_told_again_when_it_asked_for_that() -> None:
    scene = Scene(tasks=2)
    problem = Busy("too many requests")
    problem.retry_after = 5.0
    assert "train-1" in scene.names()
    assert scene.conditions.answered(uid_of(scene, "train-1"), problem)
    assert "train-1" not in scene.names(seconds=4.9)
    assert scene.conditions.due == NOW + 5.0
    assert "train-1" in scene.names(seconds=5.0)


def test_a_clock_that_was_set_back_holds_no_message_back() -> None:
    scene = Scene(tasks=2)
    uid = uid_of(scene, "train-1")
    assert scene.names(seconds=600.0)
    scene.put(build.node("n0", cpu=0))
    assert "train-1" in scene.names(seconds=10.0)
    scene.now = NOW + 600.0
    assert scene.conditions.answered(uid, ClusterError("no"))
    assert "train-1" in scene.names(seconds=11.0)


def test_what_somebody_overwrote_is_told_again() -> None:
    scene = Scene(tasks=2)
    told = dict(scene.writes())["train-1"]
    scene.told("train-1", **{key: value for key, value in told.items() if key != "type"})
    before = scene.mirror.find(POD, "default", "train-1")
    assert before is not None
    after = {**before, "status": {"phase": "Pending"}}
    assert not scene.conditions.noticed(WatchEvent(8, MODIFIED, POD, before, {**before, "status": {}}))
    assert scene.conditions.noticed(WatchEvent(9, MODIFIED, POD, after, before))
    scene.put(after)
    assert scene.names() == ["train-1"]


def test_since_when_it_waits_stays_while_only_the_reason_changes() -> None:
    scene = Scene()
    scene.told("train-0", status="False", reason="SchedulingGated", lastTransitionTime="2025-12-31T00:00:00Z")
    scene.told("train-1", status="True", lastTransitionTime="2025-12-31T00:00:00Z")
    writes = dict(scene.writes())
    assert writes["train-0"]["lastTransitionTime"] == "2025-12-31T00:00:00Z"
    assert writes["train-1"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_pods_that_are_bound_or_held_back_by_a_gate_are_left_alone() -> None:
    assert Scene(tasks=1).writes() == []
    assert Scene(schedulingGates=[{"name": "later"}]).writes() == []


def test_pods_that_nobody_knows_any_more_are_left_alone() -> None:
    scene = Scene()
    document = scene.mirror.find(POD, "default", "train-0")
    assert document is not None
    scene.mirror.remove(POD, document)
    assert sorted(scene.names()) == ["train-1", "train-2"]


def test_pods_of_a_gang_that_is_set_aside_are_left_to_those_who_say_what_to_mend() -> None:
    scene = Scene(tasks=0)
    first, *others = speech.gang("yunikorn", "train", tasks=3, cpu=1)
    scene.put(first, *others[:-1])
    assert scene.writes() == []
    scene.put(others[-1])
    assert sorted(scene.names()) == ["train-0", "train-1", "train-2"]


def test_pods_of_a_job_of_kai_that_says_so_are_not_marked() -> None:
    written = dict[bool, int]()
    for marks in (True, False):
        group, *pods = kai.gang("train", tasks=5, gpus=1)
        group["spec"]["markUnschedulable"] = marks
        cluster, mirror = kai.cluster(gpus=4).submit(kai.queue("a"), group, *pods), Mirror(lambda: NOW)
        for pod in pods:
            mirror.put(POD, {**pod, "metadata": {**pod["metadata"], "resourceVersion": "1"}})
        snapshot = cluster.objects.snapshot(NOW)
        written[marks] = len(list(PodConditions(mirror, raised).writes(snapshot, cluster.run_cycle(now=NOW).decisions)))
    assert written == {True: 5, False: 0}
