"""The cluster as sessions see it: guesses about pods, and how soon a change matters."""

from typing import Any

import pytest

from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import BIND_REQUEST, POD, Document, Kind, kind_of
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.model.watch_event import ADDED, DELETED, MODIFIED, WatchEvent
from phalanx.scheduling.cache import SchedulerCache, Urgency
from phalanx.testing import build
from tests.support import kai_objects as kai

NEVER, LATER, SOON = Urgency.NEVER, Urgency.LATER, Urgency.SOON
KEY = TaskKey("default/a")


class Scene:
    """A cache with a node and the pod default/a, whose states are told one after the other."""

    def __init__(self, **pod: Any) -> None:
        self.complaints: list[str] = []
        self.cache = SchedulerCache(ObjectCluster(), report=self.complaints.append)
        self.known: dict[tuple[Kind, str], Document] = {}
        self.tell(build.node("n0"))
        self.pod = build.pod("a", cpu=1, **pod)
        self.tell(self.pod)

    def tell(self, document: Document) -> Urgency:
        kind = kind_of(document)
        place = (kind, document["metadata"]["name"])
        before = self.known.get(place)
        self.known[place] = document
        return self.cache.notice(WatchEvent(1, ADDED if before is None else MODIFIED, kind, document, before))

    def tell_pod(self, *, uid: str = "a", node: str = "", phase: str = "Pending", **meta: Any) -> Urgency:
        spec = {**self.pod["spec"], **({"nodeName": node} if node else {})}
        labels = {**self.pod["metadata"], "uid": uid, **meta}
        return self.tell({**self.pod, "metadata": labels, "spec": spec, "status": {"phase": phase}})

    def end(self) -> Urgency:
        pod = self.known.pop((POD, "a"))
        return self.cache.notice(WatchEvent(1, DELETED, POD, pod, pod))

    @property
    def task(self) -> Task:
        found = self.cache.cluster.state.task(KEY)
        assert found is not None
        return found

    @property
    def stands(self) -> tuple[Status, str]:
        return self.task.status, self.task.node

    def assume(self, status: Status, node: str = "n0") -> None:
        self.cache.assume(self.task, status, node)


# --- assumed pods --------------------------------------------------------------------------------------------------------


def test_a_pod_that_was_sent_to_a_node_takes_room_there_at_once() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    assert scene.stands == (Status.BINDING, "n0")
    assert list(scene.cache.snapshot(0.0).on_node["n0"]) == [KEY]


REQUEST = kai.bind_request("a", "n0")


def test_a_pod_for_which_a_bind_is_asked_takes_room_before_the_server_has_the_request() -> None:
    scene = Scene()
    scene.cache.assume_request(REQUEST)
    assert scene.stands == (Status.BINDING, "n0")
    scene.tell(REQUEST)
    assert scene.cache.confirm_request(REQUEST, REQUEST)
    assert scene.stands == (Status.BINDING, "n0")


def test_a_request_that_the_server_refuses_leaves_the_pod_where_it_was() -> None:
    scene = Scene()
    scene.cache.assume_request(REQUEST)
    assert not scene.cache.confirm_request(REQUEST, None)
    assert scene.stands == (Status.PENDING, "")


def test_another_request_of_that_name_counts_instead_of_the_one_that_was_asked_for() -> None:
    scene = Scene()
    failed = kai.bind_request("a", "n0", phase="Failed", failedAttempts=1)
    scene.tell(failed)
    scene.cache.assume_request(REQUEST)
    assert not scene.cache.confirm_request(REQUEST, failed)
    assert scene.stands == (Status.PENDING, "")


def test_a_request_stays_assumed_when_the_one_that_had_its_name_before_goes() -> None:
    """The same session deletes the old one; as long as the new one is on its way, nobody else may have the room."""
    scene = Scene()
    failed = kai.bind_request("a", "n0", phase="Failed", failedAttempts=1)
    failed["metadata"]["uid"] = "old"
    scene.tell(failed)
    scene.cache.assume_request(REQUEST)
    scene.cache.notice(WatchEvent(2, DELETED, BIND_REQUEST, failed, failed))
    assert scene.stands == (Status.BINDING, "n0")
    made = {**REQUEST, "metadata": {**REQUEST["metadata"], "uid": "new"}}
    scene.tell(made)
    scene.cache.notice(WatchEvent(3, DELETED, BIND_REQUEST, made, made))
    assert scene.stands == (Status.PENDING, "")


def test_a_guess_survives_what_does_not_know_of_it_yet() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    assert scene.tell_pod(labels={"x": "y"}) is NEVER
    assert scene.stands == (Status.BINDING, "n0")


def test_a_guess_survives_that_somebody_says_of_a_pod_without_a_node_that_it_runs() -> None:
    """A kubelet that writes by name alone does so, when a pod was made anew: the room must not be given away twice."""
    scene = Scene()
    scene.assume(Status.BINDING)
    scene.tell_pod(phase="Running")
    assert scene.stands == (Status.BINDING, "n0")


def test_a_pod_without_a_node_waits_whatever_its_phase_says() -> None:
    scene = Scene()
    scene.tell_pod(phase="Running")
    assert scene.stands == (Status.PENDING, "")


def test_a_guess_survives_that_the_pod_is_read_again_because_of_its_volumes() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    scene = Scene(spec={"volumes": volumes})
    scene.assume(Status.BINDING)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}, "spec": {}}
    scene.tell(claim)
    assert scene.stands == (Status.BINDING, "n0")


def test_a_guess_falls_when_the_cluster_tells_the_same() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    assert scene.tell_pod(node="n0") is NEVER
    assert scene.stands == (Status.BOUND, "n0")
    scene.tell_pod()  # nothing is left that would hide what the cluster says
    assert scene.stands == (Status.PENDING, "")


def test_a_bind_that_comes_with_other_news_is_read_as_a_whole() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    assert scene.tell_pod(node="n0", labels={"x": "y"}) is NEVER
    assert scene.stands == (Status.BOUND, "n0")
    assert scene.tell_pod(node="n0", phase="Running") is SOON  # the label is gone again


def test_an_owner_that_comes_with_a_bind_is_seen() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    assert scene.tell_pod(node="n0", ownerReferences=[owner]) is NEVER
    assert (scene.stands, scene.task.has_controller) == ((Status.BOUND, "n0"), True)


def test_a_guess_falls_when_the_cluster_tells_otherwise() -> None:
    scene = Scene()
    scene.tell(build.node("n1"))
    scene.assume(Status.BINDING)
    assert scene.tell_pod(node="n1") is SOON
    assert scene.stands == (Status.BOUND, "n1")


def test_a_guess_is_about_one_pod_and_not_about_the_next_of_its_name() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    assert scene.tell_pod(uid="another") is SOON
    assert scene.stands == (Status.PENDING, "")


def test_a_guess_falls_when_the_pod_ends_or_goes() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    assert scene.tell_pod(phase="Failed") is SOON
    assert scene.task.status is Status.FAILED
    other = Scene()
    other.assume(Status.BINDING)
    assert other.end() is SOON
    assert other.cache.cluster.state.task(KEY) is None
    other.tell(other.pod)
    assert other.stands == (Status.PENDING, "")


def test_a_guess_falls_when_what_was_asked_for_failed() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    scene.cache.forget(scene.task, scene.pod)
    assert scene.stands == (Status.PENDING, "")


def test_a_failure_of_an_earlier_pod_leaves_the_guess_about_the_next_alone() -> None:
    scene = Scene()
    first = scene.task
    scene.tell_pod(uid="another")
    scene.assume(Status.BINDING)
    scene.cache.forget(first, scene.pod)
    assert scene.stands == (Status.BINDING, "n0")


def test_a_failure_after_the_pod_is_gone_brings_nothing_back() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    task = scene.task
    scene.end()
    scene.cache.forget(task, None)
    assert scene.cache.cluster.state.task(KEY) is None


def test_a_pod_that_was_told_to_go_is_leaving_until_it_leaves() -> None:
    scene = Scene(on="n0")
    scene.assume(Status.RELEASING)
    assert scene.tell_pod(node="n0", phase="Running", labels={"x": "y"}) is NEVER
    assert scene.stands == (Status.RELEASING, "n0")
    assert scene.tell_pod(node="n0", phase="Running", deletionTimestamp="2026-01-01T00:00:00Z") is NEVER
    assert scene.stands == (Status.RELEASING, "n0")


def test_a_pod_that_was_bound_and_is_taken_back_is_leaving_also_when_the_bind_is_told() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    scene.assume(Status.RELEASING)
    assert scene.tell_pod(node="n0") is NEVER
    assert scene.stands == (Status.RELEASING, "n0")


def test_nothing_is_expected_of_a_pod_that_is_known_to_be_elsewhere() -> None:
    scene = Scene(on="n0")
    scene.cache.assume(scene.task, Status.BINDING, "n0")
    assert scene.stands == (Status.RUNNING, "n0")


def test_all_guesses_fall_together() -> None:
    scene = Scene()
    scene.assume(Status.BINDING)
    scene.cache.forget_all(lambda key: scene.pod if key == KEY else None)
    assert scene.stands == (Status.PENDING, "")


# --- objects that cannot be understood -----------------------------------------------------------------------------------


def test_a_broken_object_is_told_of_once_until_it_is_mended() -> None:
    scene = Scene()
    broken = build.pod("b", cpu="many")
    for labels in ({}, {"x": "y"}):
        scene.tell({**broken, "metadata": {**broken["metadata"], "labels": labels}})
    assert [text.partition(":")[0] for text in scene.complaints] == ["Pod default/b"]
    scene.tell(build.pod("b", cpu=1))
    assert scene.cache.cluster.state.task(TaskKey("default/b")) is not None
    scene.tell(broken)
    assert len(scene.complaints) == 2


# --- how soon ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "urgency"),
    [
        ({"node": "n0"}, SOON),
        ({"node": "n0", "phase": "Running"}, SOON),
        ({"phase": "Failed"}, SOON),
        ({"labels": {"x": "y"}}, SOON),
        ({"annotations": {"x": "y"}}, SOON),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, SOON),
        ({"resourceVersion": "7"}, NEVER),
        ({"annotations": {"phalanx.dev/last-checkpoint": "2026-01-05T09:40:00Z"}}, NEVER),
    ],
)
def test_a_pod_matters_when_it_waits_otherwise_ends_or_goes(change: dict[str, Any], urgency: Urgency) -> None:
    assert Scene().tell_pod(**change) is urgency


def test_a_pod_that_starts_on_its_node_matters_later() -> None:
    scene = Scene()
    scene.tell_pod(node="n0")
    assert scene.tell_pod(node="n0", phase="Running") is LATER


def test_a_gate_that_opens_matters() -> None:
    scene = Scene(spec={"schedulingGates": [{"name": "x"}]})
    assert scene.tell({**scene.pod, "spec": {**scene.pod["spec"], "schedulingGates": []}}) is SOON


def test_pods_that_come_and_go_matter() -> None:
    scene = Scene()
    assert scene.end() is SOON
    assert scene.tell(scene.pod) is SOON


def node(**status: Any) -> Document:
    document = build.node("n0")
    return {**document, "status": {**document["status"], **status}}


READY, NOT_READY = ([{"type": "Ready", "status": word, "lastHeartbeatTime": "now"}] for word in ("True", "False"))
SAVED = {**build.pod_group("g")["metadata"], "annotations": {"phalanx.dev/last-checkpoint": "2026-01-05T09:40:00Z"}}
BUDGET = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"}, "spec": {}}


@pytest.mark.parametrize(
    ("before", "after", "urgency"),
    [
        (node(), node(images=[{"sizeBytes": 1}]), NEVER),
        (node(conditions=READY), node(conditions=[{**READY[0], "lastHeartbeatTime": "later"}]), NEVER),
        (node(conditions=READY), node(conditions=NOT_READY), SOON),
        (node(), node(allocatable={"cpu": 1}), SOON),
        (build.node("n0"), build.node("n0", labels={"x": "y"}), SOON),
        (build.node("n0"), build.node("n0", spec={"unschedulable": True}), SOON),
        (build.pod_group("g"), {**build.pod_group("g"), "status": {"phase": "Pending", "running": 3}}, NEVER),
        (build.pod_group("g"), build.pod_group("g", phase="Inqueue"), SOON),
        (build.pod_group("g"), build.pod_group("g", min_member=2), SOON),
        (build.pod_group("g"), {**build.pod_group("g"), "metadata": SAVED}, NEVER),
        (build.queue("q"), {**build.queue("q"), "status": {"state": "Open", "running": 3}}, NEVER),
        (build.queue("q"), {**build.queue("q"), "status": {"state": "Closed"}}, SOON),
        (build.queue("q"), build.queue("q", weight=2), SOON),
        ({**BUDGET, "status": {"disruptionsAllowed": 0}}, {**BUDGET, "status": {"disruptionsAllowed": 1}}, SOON),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {}},
         {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"x": "y"}}, NEVER),
    ],
)  # fmt: skip
def test_other_objects_matter_when_a_part_that_counts_changes(before: Document, after: Document, urgency: Urgency) -> None:
    cache = SchedulerCache(ObjectCluster(), report=lambda text: None)
    kind = kind_of(before)
    cache.notice(WatchEvent(1, ADDED, kind, before))
    assert cache.notice(WatchEvent(2, MODIFIED, kind, after, before)) is urgency


def test_objects_that_come_and_go_matter() -> None:
    cache = SchedulerCache(ObjectCluster(), report=lambda text: None)
    group = build.pod_group("g")
    assert cache.notice(WatchEvent(1, ADDED, kind_of(group), group)) is SOON
    assert cache.notice(WatchEvent(2, DELETED, kind_of(group), group, group)) is SOON
