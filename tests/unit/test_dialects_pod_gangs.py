"""Gangs that pods alone make: YuniKorn's applications and Kueue's plain pod groups, whichever pod becomes known first."""

import json
from itertools import permutations
from typing import Any

import pytest

from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.group_references import KUEUE_GROUP, SPARK_APP, YUNIKORN_APP
from phalanx.dialects.kueue import FAST_ADMISSION, QUEUE, TOTAL_COUNT
from phalanx.dialects.yunikorn import DEGRADED, GANG_DEGRADED, POLICY, TASK_GROUPS, ReservationPolicy, reservation
from phalanx.dialects.yunikorn import QUEUE as YUNIKORN_QUEUE
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.task import GangKey
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import pod_made_gangs as made
from tests.support import sim_worlds as worlds


def gang_of(cluster: Cluster, name: str) -> Gang:
    found = cluster.objects.state.gang(GangKey(f"default/{name}"))
    assert found is not None
    return found


def members(cluster: Cluster, name: str) -> list[str]:
    return sorted(task.name for task in cluster.objects.state.members(GangKey(f"default/{name}")).values())


def submit_what_can_be_read(cluster: Cluster, pods: list[Document]) -> list[str]:
    """Enter pods; return what is wrong with those that are set aside."""
    problems = []
    for pod in pods:
        try:
            cluster.submit(pod)
        except SnapshotError as problem:
            problems.append(str(problem))
    return problems


# --- YuniKorn ------------------------------------------------------------------------------------------------------------


def test_an_application_is_a_gang_with_a_minimum_for_each_task_group() -> None:
    cluster = build.cluster(nodes=2, cpu=4).submit(made.application("spark", {"driver": 1, "executor": 3}, cpu=2))
    gang = gang_of(cluster, "spark")
    assert (gang.min_member, gang.role_minima, gang.queue, gang.dialect) == (4, {"driver": 1, "executor": 3}, "default", "yunikorn")
    cycle = cluster.run_cycle()
    assert len(cycle.binds) == 4
    assert cycle.phase("spark") == "Running"


def test_an_application_that_does_not_fit_holds_nothing_and_says_why() -> None:
    cycle = build.cluster(nodes=2, cpu=3).submit(made.application("spark", {"driver": 1, "executor": 3}, cpu=2)).run_cycle()
    assert cycle.binds == []
    assert cycle.phase("spark") == "Accepted"
    assert str(cycle.condition("spark", "Unschedulable")).startswith("2 of the 4 pods that start together find room: ")
    placed = cycle.answer["tasks"]["default/spark-driver-0"]
    assert placed["message"] == (
        "there is room on node-0; application spark starts as a whole, and 2 of the 4 pods that start together find room"
    )


def test_pods_of_one_task_group_do_not_make_up_for_another() -> None:
    pods = made.application("spark", {"driver": 1, "executor": 2}, cpu=1)
    pods += [made.application_pod(f"more-{number}", "spark", "executor", cpu=1) for number in range(3)]
    pods[0]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "nowhere"}
    assert build.cluster(nodes=1, cpu=8).submit(pods).run_cycle().binds == []


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_originator_counts_in_whatever_order_pods_become_known(order: tuple[int, ...]) -> None:
    pods = made.application("spark", {"driver": 1, "executor": 2}, cpu=1)
    cluster = build.cluster().submit(pods[number] for number in order)
    assert gang_of(cluster, "spark").role_minima == {"driver": 1, "executor": 2}
    assert members(cluster, "spark") == ["spark-driver-0", "spark-executor-0", "spark-executor-1"]


def test_pods_that_name_a_task_group_wait_for_the_originator() -> None:
    cluster = build.cluster().submit(made.application_pod("a", "spark", "executor", cpu=1))
    assert cluster.run_cycle().binds == []
    assert cluster.objects.state.gang(GangKey("default/spark")) is None


def test_pods_of_an_application_without_task_groups_start_one_by_one() -> None:
    pods = [made.application_pod(f"web-{number}", "web", cpu=3) for number in range(3)]
    cycle = build.cluster(nodes=2, cpu=4).submit(pods).run_cycle()
    assert [pod for pod, _ in cycle.binds] == ["web-0", "web-1"]


def test_an_application_goes_with_its_originator() -> None:
    pods = made.application("spark", {"driver": 1, "executor": 1}, cpu=1)
    cluster = build.cluster().submit(pods).remove("Pod", "spark-driver-0")
    assert cluster.objects.state.gang(GangKey("default/spark")) is None


@pytest.mark.parametrize(
    ("label", "queue"), [("root.research", "research"), ("root.a.b", "a.b"), ("research", "research"), ("root.default", "default")]
)
def test_the_root_is_no_part_of_the_name_of_a_queue(label: str, queue: str) -> None:
    pod = made.application_pod("a", "web")
    pod["metadata"]["labels"][YUNIKORN_QUEUE] = label
    assert gang_of(build.cluster().submit(pod), "web").queue == queue


@pytest.mark.parametrize(("scheduler", "is_read"), [("yunikorn", True), ("volcano", False)])
def test_the_label_that_spark_puts_on_all_its_pods_counts_under_yunikorn_alone(scheduler: str, is_read: bool) -> None:
    pod = build.pod("a", spec={"schedulerName": scheduler})
    pod["metadata"]["labels"] = {SPARK_APP: "spark"}
    cluster = build.cluster().submit(pod)
    assert (cluster.objects.state.gang(GangKey("default/spark")) is not None) is is_read


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nonsense", "not JSON"),
        ('{"name": "a"}', "Expected `array`, got `object`"),
        ('[{"minMember": 1}]', "[0].name: missing"),
        ('[{"name": "a", "minMember": 0}]', "[0].minMember: 0 is too small; write 1 or more"),
        ('[{"name": "a", "minMember": 1}, {"name": "a", "minMember": 1}]', "[1].name: 'a' is given twice"),
        ('[{"name": "a", "minMember": 1, "minResource": {"cpu": "x"}}]', "[0].minResource.cpu: quantity 'x': not a number"),
    ],
)
def test_task_groups_that_cannot_be_read_set_the_originator_aside_alone(text: str, problem: str) -> None:
    pods = made.application("spark", {"driver": 1, "executor": 1}, cpu=1)
    pods[0]["metadata"]["annotations"][TASK_GROUPS] = text
    cluster = build.cluster()
    (found,) = submit_what_can_be_read(cluster, pods)
    assert found.startswith("Pod default/spark-driver-0: metadata.annotations['yunikorn.apache.org/task-groups']")
    assert problem in found
    assert members(cluster, "spark") == ["spark-executor-0"]
    assert cluster.run_cycle().binds == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ReservationPolicy(900.0, is_hard=False)),
        ("placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard", ReservationPolicy(60.0, is_hard=True)),
        ("gangSchedulingStyle=Strict placeholderTimeoutInSeconds=0", ReservationPolicy(900.0, is_hard=False)),
        ("placeholderTimeoutInSeconds=soon", ReservationPolicy(900.0, is_hard=False)),
    ],
)
def test_what_a_policy_leaves_open_or_says_unreadably_is_as_in_yunikorn(text: str, expected: ReservationPolicy) -> None:
    assert reservation({POLICY: text}) == expected


def test_an_application_that_gave_up_being_a_gang_says_so_loudly() -> None:
    pods = made.application("spark", {"driver": 1, "executor": 3}, policy="placeholderTimeoutInSeconds=60", cpu=3)
    pods[0]["metadata"]["annotations"][DEGRADED] = "2026-01-01T00:01:00Z"
    cycle = build.cluster(nodes=2, cpu=4).submit(pods).run_cycle()
    assert len(cycle.binds) == 2
    assert str(cycle.condition("spark", GANG_DEGRADED)).startswith("there was no room for the whole application within 60 s; ")
    waiting = [task["message"] for task in cycle.answer["tasks"].values() if task["status"] == "Pending"]
    assert len(waiting) == 2
    assert all("its pods now start one by one" in message for message in waiting)


# --- Kueue ---------------------------------------------------------------------------------------------------------------


def test_a_pod_group_starts_as_a_whole() -> None:
    pods = made.pod_group("train", tasks=3, cpu=4)
    cluster = build.cluster(nodes=2, cpu=4).submit(pods)
    assert cluster.run_cycle().binds == []
    assert cluster.run_cycle().phase("train") == "Pending"
    cycle = cluster.submit(build.node("another", cpu=4)).run_cycle()
    assert len(cycle.binds) == 3
    assert cycle.phase("train") == "Running"


def test_a_pod_group_waits_for_all_of_its_pods() -> None:
    cycle = build.cluster().submit(made.pod_group("train", tasks=3, cpu=1)[:2]).run_cycle()
    assert cycle.binds == []
    assert cycle.condition("train", "Unschedulable") == "2 of the 3 pods that start together are there"


def test_a_group_may_be_named_in_an_annotation() -> None:
    pods = made.pod_group("train", tasks=2, cpu=1)
    for pod in pods:
        pod["metadata"]["annotations"][KUEUE_GROUP] = pod["metadata"]["labels"].pop(KUEUE_GROUP)
    assert gang_of(build.cluster().submit(pods), "train").min_member == 2


def test_gated_pods_are_left_to_kueue() -> None:
    cycle = build.cluster().submit(made.pod_group("train", tasks=2, is_gated=True, cpu=1)).run_cycle()
    assert cycle.binds == []
    assert "held back by the scheduling gate 'kueue.x-k8s.io/admission'" in cycle.why("train")


def test_pods_beyond_the_total_are_members_that_the_gang_can_do_without() -> None:
    pods = made.pod_group("train", tasks=3, cpu=4)
    for pod in pods:
        pod["metadata"]["annotations"][TOTAL_COUNT] = "2"
    cycle = build.cluster(nodes=2, cpu=4).submit(pods).run_cycle()
    assert len(cycle.binds) == 2
    assert cycle.phase("train") == "Running"


def test_with_fast_admission_pods_start_as_they_come() -> None:
    pods = made.pod_group("train", tasks=3, cpu=1)
    for pod in pods:
        pod["metadata"]["annotations"][FAST_ADMISSION] = "true"
    assert len(build.cluster().submit(pods[:1]).run_cycle().binds) == 1


def test_the_queue_is_the_one_of_the_label_as_long_as_there_is_one_of_that_name() -> None:
    pods = made.pod_group("train", tasks=1)
    pods[0]["metadata"]["labels"][QUEUE] = "research"
    cluster = build.cluster()
    assert gang_of(cluster.submit(pods), "train").queue == "default"
    assert gang_of(cluster.submit(build.queue("research")), "train").queue == "research"
    cluster.remove("Queue", "research")
    assert gang_of(cluster, "train").queue == "default"


def test_a_group_starts_where_nobody_has_a_queue_of_the_name_of_its_local_queue() -> None:
    pods = made.pod_group("train", tasks=2, cpu=1)
    for pod in pods:
        pod["metadata"]["labels"][QUEUE] = "user-queue"
    assert len(build.cluster().submit(pods).run_cycle().binds) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "missing; write on every pod of the group how many they are, such as '4'"),
        ("0", "'0' is too small; write 1 or more"),
        ("two", "'two' is not a whole number; write one, such as '4'"),
        ("3", "'3', but the oldest pod of group train says '2'; write one number on all of its pods"),
    ],
)
def test_a_pod_with_a_wrong_count_is_set_aside_alone(text: str | None, problem: str) -> None:
    pods = [*made.pod_group("train", tasks=2, cpu=1), *made.pod_group("other", tasks=1, cpu=1)]
    pods[2]["metadata"]["labels"][KUEUE_GROUP] = "train"
    annotations = pods[2]["metadata"]["annotations"]
    annotations |= {TOTAL_COUNT: text} if text else {}
    if text is None:
        del annotations[TOTAL_COUNT]
    cluster = build.cluster()
    where = "metadata.annotations['kueue.x-k8s.io/pod-group-total-count']"
    pods[2]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    assert submit_what_can_be_read(cluster, pods) == [f"Pod default/other-0: {where}: {problem}"]
    assert [pod for pod, _ in cluster.run_cycle().binds] == ["train-0", "train-1"]


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_oldest_pod_says_how_many_they_are_in_whatever_order_they_become_known(order: tuple[int, ...]) -> None:
    pods = made.pod_group("train", tasks=4)
    for pod, count, minute in zip(pods, ("3", "2", "2", "3"), (2, 1, 3, 4), strict=True):
        pod["metadata"] |= {"creationTimestamp": f"2026-01-01T00:0{minute}:00Z", "annotations": {TOTAL_COUNT: count}}
    cluster = build.cluster()
    submit_what_can_be_read(cluster, [pods[number] for number in order])
    assert gang_of(cluster, "train").min_member == 2
    assert members(cluster, "train") == ["train-1", "train-2"]
    cluster.objects.remove(pods[1])
    assert gang_of(cluster, "train").min_member == 3
    assert members(cluster, "train") == ["train-0", "train-3"]


def test_a_pod_that_changes_its_group_leaves_the_old_one() -> None:
    (pod,) = made.pod_group("train", tasks=1)
    cluster = build.cluster().submit(pod)
    moved: dict[str, Any] = json.loads(json.dumps(pod))
    moved["metadata"]["labels"] = {KUEUE_GROUP: "another"}
    cluster.submit(moved)
    assert cluster.objects.state.gang(GangKey("default/train")) is None
    assert members(cluster, "another") == ["train-0"]


def test_pods_that_wait_for_a_group_of_the_same_name_in_another_dialect_are_no_members() -> None:
    waiting = build.in_group("train", build.pod("other"))
    cluster = ObjectCluster()
    for pod in (waiting, *made.pod_group("train", tasks=2)):
        cluster.put(pod)
    assert sorted(cluster.snapshot(0).members_of(GangKey("default/train"))) == ["default/train-0", "default/train-1"]


@pytest.mark.parametrize(
    "gang", [made.application("train", {"driver": 1, "worker": 1}, cpu=1), made.pod_group("train", tasks=2, cpu=1)]
)
def test_a_settled_gang_is_in_no_session(gang: list[Document]) -> None:
    world = worlds.world()
    worlds.submit(world, gang)
    worlds.run(world, 20)
    assert set(worlds.phases(world.store).values()) == {"Running"}
    assert world.cluster.snapshot(world.now).active == ()


def test_a_group_object_of_another_dialect_comes_first() -> None:
    pod = build.in_group("train", made.application_pod("a", "spark"))
    cluster = build.cluster().submit(build.pod_group("train"), pod)
    assert members(cluster, "train") == ["a"]
    assert pod["metadata"]["labels"] == {YUNIKORN_APP: "spark"}
    assert cluster.objects.state.gang(GangKey("default/spark")) is None


def _in_one_rack(labels: Document) -> int:
    """Return how many pods start of two that must share a rack, where each rack has room for one."""
    racks = [build.node(f"node-{number}", labels={"rack": f"r{number}"}, cpu=2) for number in range(2)]
    pods = made.pod_group("train", tasks=2, cpu=2)
    for pod in pods:
        pod["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] = "rack"
        pod["metadata"]["labels"] |= labels
    return len(build.cluster(nodes=0).submit(racks, pods).run_cycle().binds)


def test_kueues_topology_is_kept_unless_kueue_itself_sees_to_it() -> None:
    assert _in_one_rack({}) == 0
    assert _in_one_rack({"kueue.x-k8s.io/managed": "true"}) == 2
