"""Kubernetes objects to nouns and back: requests, statuses, groups, queues, nodes, conditions and messages word for word."""

import itertools
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from phalanx.dialects.cluster import ObjectCluster, describe, known_kinds
from phalanx.dialects.field_values import integer, seconds
from phalanx.dialects.nodes import slot_name
from phalanx.dialects.volcano_status import pod_condition
from phalanx.errors import SnapshotError
from phalanx.model.resources import Resources
from phalanx.model.storage import AttachRules
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.snapshot import Snapshot
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

MI = 1 << 20


def read(document: Document) -> Task:
    """Return the task of a pod, as a cluster reads it."""
    cluster = ObjectCluster()
    cluster.put(build.in_group("g", document))
    (task,) = cluster.snapshot(0.0).members_of(build_key("g")).values()
    return task


def build_key(name: str) -> Any:
    return f"default/{name}"


def container(cpu: str | int | None = None, memory: str | int | None = None, **more: Any) -> Document:
    requests = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount is not None}
    return {"name": "c", "resources": {"requests": requests}, **more}


def sidecar(cpu: int) -> Document:
    return container(cpu, restartPolicy="Always")


def request(spec: Document) -> Resources:
    return read(build.pod("p", spec=spec)).shape.request


# --- pods --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "cpu_milli"),
    [
        pytest.param({"containers": [container(1), container("500m")]}, 1500, id="containers add up"),
        pytest.param({"containers": [container(1)], "initContainers": [container(3), container(2)]}, 3000, id="largest init peak"),
        pytest.param({"containers": [container(2)], "initContainers": [container(1)]}, 2000, id="init below the containers"),
        pytest.param({"containers": [container(1)], "initContainers": [sidecar(1)]}, 2000, id="a sidecar runs beside"),
        pytest.param({"containers": [container(1)], "initContainers": [sidecar(1), container(3)]}, 4000, id="init after a sidecar"),
        pytest.param({"containers": [container(1)], "initContainers": [container(3), sidecar(1)]}, 3000, id="init first"),
        pytest.param({"containers": [container(1)], "overhead": {"cpu": "250m"}}, 1250, id="overhead is added"),
        pytest.param({"containers": [container(3)], "resources": {"requests": {"cpu": 2}}}, 2000, id="pod level replaces"),
        pytest.param(
            {"containers": [container(3)], "resources": {"requests": {"cpu": 2}}, "overhead": {"cpu": 1}}, 3000,
            id="overhead on top of pod level",
        ),
    ],
)  # fmt: skip
def test_a_pod_asks_for_what_it_needs_at_its_peak(spec: Document, cpu_milli: int) -> None:
    assert request(spec)["cpu"] == cpu_milli


def test_pod_level_requests_replace_only_cpu_memory_and_huge_pages() -> None:
    level = {"requests": {"memory": "1Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": 9}}
    found = request({"containers": [container(1, "2Gi")], "resources": level})
    assert found == {"cpu": 1000, "memory": 1 << 30, "hugepages-2Mi": 4 * MI * 1000, "pods": 1}


def test_every_pod_asks_for_a_place() -> None:
    assert request({"containers": []}) == {"pods": 1}
    assert read(build.pod("p")).is_best_effort


@pytest.mark.parametrize(
    ("spec", "scoring", "booked"),
    [
        ({"containers": [container(1, "1Gi")]}, (1000, 1 << 30), (1000, 1 << 30)),
        ({"containers": [container(), container()]}, (200, 400 * MI), (200, 400 * MI)),
        ({"containers": [container(0, 0)]}, (0, 0), (0, 0)),
        ({"containers": [container(1)]}, (1000, 200 * MI), (1000, 200 * MI)),
        ({"containers": [container()], "resources": {"requests": {"cpu": 2}}}, (100, 200 * MI), (2000, 200 * MI)),
    ],
)  # fmt: skip
def test_containers_without_a_request_count_a_little_in_scores(
    spec: Document, scoring: tuple[int, int], booked: tuple[int, int]
) -> None:
    shape = read(build.pod("p", spec=spec)).shape
    assert shape.scoring_request == scoring
    assert shape.booked_request == booked


@pytest.mark.parametrize(
    ("phase", "on", "is_leaving", "status"),
    [
        ("Pending", "", False, Status.PENDING), ("Pending", "n", False, Status.BOUND), ("Running", "n", False, Status.RUNNING),
        ("Running", "n", True, Status.RELEASING), ("Pending", "n", True, Status.RELEASING), ("Pending", "", True, Status.RELEASING),
        ("Succeeded", "n", False, Status.SUCCEEDED), ("Succeeded", "n", True, Status.SUCCEEDED),
        ("Failed", "n", False, Status.FAILED),
        ("Unknown", "n", False, Status.UNKNOWN), (None, "", False, Status.PENDING),
    ],
)  # fmt: skip
def test_the_status_follows_from_phase_node_and_deletion(phase: str | None, on: str, is_leaving: bool, status: Status) -> None:
    pod = build.pod("p", on=on)
    pod["status"] = {"phase": phase}
    if is_leaving:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert read(pod).status is status


def annotated(annotations: Document, labels: Document | None = None, **spec: Any) -> Task:
    pod = build.pod("p", spec=spec)
    pod["metadata"]["annotations"], pod["metadata"]["labels"] = annotations, labels or {}
    return read(pod)


def test_role_priority_and_preemption_come_from_annotations_first() -> None:
    assert annotated({"volcano.sh/task-spec": "a"}, {"volcano.sh/task-spec": "b"}).role == "a"
    assert annotated({}, {"volcano.sh/task-spec": "b"}).role == "b"
    assert annotated({}).priority == 1
    assert annotated({}, priority=7).priority == 7
    assert annotated({"volcano.sh/task-priority": "9"}, priority=7).priority == 9
    assert annotated({}).is_preemptable
    assert not annotated({"volcano.sh/preemptable": "false"}).is_preemptable
    assert not annotated({}, {"volcano.sh/preemptable": "False"}).is_preemptable
    assert not annotated({}, preemptionPolicy="Never").may_preempt
    assert annotated({}, schedulingGates=[{"name": "x"}]).is_gated


def test_equal_pods_share_one_shape_and_different_ones_do_not() -> None:
    cluster = ObjectCluster()
    documents = build.gang("train", tasks=3, cpu=1)
    documents[3]["spec"]["nodeSelector"] = {"odd": "one"}
    for document in documents:
        cluster.put(document)
    tasks = list(cluster.snapshot(0.0).members_of(build_key("train")).values())
    assert tasks[0].shape is tasks[1].shape
    assert tasks[0].shape is not tasks[2].shape


def test_host_ports_of_containers_and_sidecars_count_and_those_of_init_containers_do_not() -> None:
    port = [{"hostPort": 80, "protocol": "UDP", "hostIP": "10.0.0.1"}, {"containerPort": 81}]
    spec = {
        "containers": [container(ports=port)],
        "initContainers": [container(ports=[{"hostPort": 90}]), container(ports=[{"hostPort": 100}], restartPolicy="Always")],
    }
    found = {(each.port, each.protocol) for each in read(build.pod("p", spec=spec)).shape.host_ports}
    assert found == {(80, "UDP"), (100, "TCP")}


def test_affinity_spread_and_tolerations_are_read() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, "namespaces": ["other"]}
    spread = {
        "topologyKey": "zone",
        "maxSkew": 2,
        "labelSelector": {},
        "matchLabelKeys": ["rev", "none"],
        "nodeTaintsPolicy": "Honor",
    }
    pod = build.pod("p", spec={
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}]},
        },
        "topologySpreadConstraints": [spread], "tolerations": [{"key": "x"}],
    })  # fmt: skip
    pod["metadata"]["labels"] = {"rev": "1"}
    shape = read(pod).shape
    assert shape.affinity.required[0].namespaces == {"other"}
    assert shape.anti_affinity.preferred[0].weight == 5
    constraint = shape.spread[0]
    assert (constraint.max_skew, constraint.hard, constraint.honor_taints, constraint.honor_node_affinity) == (2, True, True, True)
    assert constraint.selector is not None
    assert [part.key for part in constraint.selector.requirements] == ["rev"]
    assert shape.tolerations[0].operator == "Equal"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spec": {"containers": [container("many")]}}, r"Pod default/p: spec\.containers\[0\]\.resources\.requests\.cpu: "),
        ({"spec": {"containers": 5}}, r"Pod default/p: .*containers.*: expected `array"),
        ({"spec": {"nodeName": 5}}, r"Pod default/p: spec\.nodeName: expected `str"),
        ({"spec": None}, r"Pod default/p: spec: expected `object`, got `null`"),
        ({"metadata": {"name": "p", "namespace": "default", "creationTimestamp": "soon"}}, "'soon' is not a time"),
        (
            {"metadata": {"name": "p", "namespace": "default", "annotations": {"volcano.sh/task-priority": "x"}}},
            r"metadata\.annotations\['volcano\.sh/task-priority'\]: 'x' is not a whole number",
        ),
    ],
)  # fmt: skip
def test_a_broken_pod_is_named_with_the_field(change: Document, message: str) -> None:
    with pytest.raises(SnapshotError, match=message):
        ObjectCluster().put({**build.pod("p"), **change})


def test_a_broken_object_changes_nothing() -> None:
    cluster = ObjectCluster()
    cluster.put(build.node("n", cpu=4))
    with pytest.raises(SnapshotError):
        cluster.put({**build.node("n"), "status": {"allocatable": {"cpu": "x"}}})
    assert cluster.snapshot(0.0).nodes.allocatable[0].tolist() == [4000]


# --- groups, queues, nodes ---------------------------------------------------------------------------------------------


def snapshot_of(*documents: Document) -> Snapshot:
    cluster = ObjectCluster()
    for document in documents:
        assert cluster.put(document)
    return cluster.snapshot(0.0)


def test_a_group_is_read_with_its_minima_topology_and_sub_groups() -> None:
    policy = {"name": "ring", "subGroupSize": 4, "minSubGroups": 2, "matchLabelKeys": ["ring"], "networkTopology": {"mode": "soft"}}
    topology = {"mode": "hard", "highestTierAllowed": 2}
    group = build.pod_group("g", min_member=3, minTaskMember={"a": 1}, minResources={"cpu": 2}, networkTopology=topology,
                            subGroupPolicy=[policy], priorityClassName="high", phase="Inqueue")  # fmt: skip
    group["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
    gang = snapshot_of(group).gangs[build_key("g")]
    assert (gang.min_member, gang.role_minima, gang.min_resources, gang.phase) == (3, {"a": 1}, {"cpu": 2000}, "Inqueue")
    assert gang.topology is not None
    assert (gang.topology.is_hard, gang.topology.highest_tier) == (True, 2)
    (subgroup,) = gang.subgroups
    assert (subgroup.min_member, subgroup.min_subgroups, subgroup.match_keys) == (4, 2, ("ring",))
    assert subgroup.topology is not None
    assert not subgroup.topology.is_hard
    assert gang.is_preemptable


def test_a_bare_group_has_the_usual_values() -> None:
    gang = snapshot_of({"apiVersion": build.VOLCANO, "kind": "PodGroup", "metadata": {"name": "g"}}).gangs[build_key("g")]
    assert (gang.queue, gang.min_member, gang.phase, gang.min_resources, gang.is_preemptable) == (
        "default",
        0,
        "Pending",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"minMember": -1}, "PodGroup default/g: spec.minMember: -1 is negative; write 0 or more"),
        ({"networkTopology": {"mode": "firm"}}, "spec.networkTopology.mode: 'firm' is unknown; write 'hard' or 'soft'"),
        ({"minMember": "many"}, "PodGroup default/g: spec.minMember: expected `int | null`, got `str`"),
        ({"minMember": 2**40}, "PodGroup default/g: spec.minMember: expected `int` <= 2147483647"),
    ],
)
def test_a_broken_group_says_what_to_write(spec: Document, message: str) -> None:
    with pytest.raises(SnapshotError) as raised:
        snapshot_of(build.pod_group("g", **spec))
    assert message in str(raised.value)


def test_a_queue_is_read_and_counts_as_open_until_somebody_says_otherwise() -> None:
    document = build.queue(
        "q", weight=3, capability={"cpu": 1}, guarantee={"resource": {"cpu": 1}}, reclaimable=False, parent="top"
    )
    queue = snapshot_of(document).queues["q"]
    assert (queue.weight, queue.capability, queue.guarantee, queue.parent) == (3, {"cpu": 1000}, {"cpu": 1000}, "top")
    assert not queue.is_reclaimable
    bare = snapshot_of({"apiVersion": build.VOLCANO, "kind": "Queue", "metadata": {"name": "q"}}).queues["q"]
    assert (bare.weight, bare.capability, bare.is_open, bare.is_reclaimable) == (1, None, True, True)


def test_oversubscription_adds_to_what_tasks_may_use_but_not_to_what_the_node_reports() -> None:
    document = build.node("n", labels={"volcano.sh/oversubscription": "true"}, cpu=4)
    document["metadata"]["annotations"] = {"volcano.sh/oversubscription-cpu": "1500", "volcano.sh/oversubscription-memory": "x"}
    table = snapshot_of(document).nodes
    assert table.allocatable[0].tolist() == [5500]
    assert table.reported[0].tolist() == [4000]


def test_volume_limits_become_slots_whichever_comes_first() -> None:
    limits = {
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"},
        "spec": {"drivers": [{"name": "csi/x", "allocatable": {"count": 3}}]},
    }  # fmt: skip
    for documents in ([build.node("n"), limits], [limits, build.node("n")]):
        snapshot = snapshot_of(*documents)
        row = snapshot.space.row_by_name[slot_name("csi/x")]
        assert snapshot.nodes.allocatable[row].tolist() == [3000]


def volume_objects() -> list[Document]:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "default", "name": "data"},
             "spec": {"storageClassName": "fast"}}  # fmt: skip
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "csi.x"}
    pod = build.pod("p", group="g", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]})
    return [claim, kind, pod]


def test_claims_and_volumes_that_are_lost_or_going_away_are_known_as_such() -> None:
    claim = volume_objects()[0]
    volume: Document = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}}
    for document in (claim, volume):
        document["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
    known = snapshot_of(claim, volume).surroundings
    assert known.volume_claims["default/data"].is_deleting
    assert known.volumes["disk"].is_deleting
    assert snapshot_of({**claim, "status": {"phase": "Lost"}}).surroundings.volume_claims["default/data"].is_lost
    plain = snapshot_of(*volume_objects()).surroundings.volume_claims["default/data"]
    assert not plain.is_deleting
    assert not plain.is_lost


def csi_node(*drivers: str) -> Document:
    named = [{"name": driver, "nodeID": "n0"} for driver in drivers]
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n0"}, "spec": {"drivers": named}}


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_pod_with_a_volume_takes_a_slot_whatever_comes_first(order: tuple[int, ...]) -> None:
    documents = [*volume_objects(), csi_node("csi.x")]
    snapshot = snapshot_of(*(documents[place] for place in order))
    (task,) = snapshot.members_of(build_key("g")).values()
    assert task.shape.request[slot_name("csi.x")] == 1000


def slots_of(cluster: ObjectCluster) -> Mapping[str, int]:
    (task,) = cluster.snapshot(0.0).members_of(build_key("g")).values()
    return {name: amount for name, amount in task.shape.request.items() if name.startswith(slot_name(""))}


def test_volumes_of_a_driver_that_no_node_names_take_no_slots_as_long_as_that_is_so() -> None:
    cluster = ObjectCluster()
    for document in (*volume_objects(), csi_node("other")):
        cluster.put(document)
    assert not slots_of(cluster)
    cluster.put(csi_node("other", "csi.x"))
    assert slots_of(cluster) == {slot_name("csi.x"): 1000}
    cluster.remove(csi_node())
    assert not slots_of(cluster)


def test_whoever_decides_says_whether_volumes_of_unknown_drivers_count() -> None:
    cluster = ObjectCluster()
    for document in volume_objects():
        cluster.put(document)
    cluster.attach = AttachRules(counts_unknown=True)
    assert slots_of(cluster) == {slot_name("csi.x"): 1000}
    cluster.attach = AttachRules(frozenset({"csi.x"}), counts_unknown=True)
    assert not slots_of(cluster)


def test_a_pod_follows_its_claim_from_volume_to_volume() -> None:
    cluster = ObjectCluster()
    for document in (*volume_objects(), csi_node("csi.x", "csi.y")):
        cluster.put(document)
    claim = volume_objects()[0]
    cluster.put({**claim, "spec": {**claim["spec"], "volumeName": "disk"}})
    assert slots_of(cluster) == {slot_name("csi.x"): 1000}
    source = {"driver": "csi.y", "volumeHandle": "1"}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {"csi": source}}
    cluster.put(volume)
    assert slots_of(cluster) == {slot_name("csi.y"): 1000}
    cluster.remove(claim)
    assert not slots_of(cluster)
    cluster.remove(build.pod("p"))
    cluster.put(claim)
    cluster.put(volume)


def test_volumes_that_nobody_makes_on_demand_take_no_slots() -> None:
    claim, kind, pod = volume_objects()
    snapshot = snapshot_of(claim, {**kind, "provisioner": "kubernetes.io/no-provisioner"}, pod)
    (task,) = snapshot.members_of(build_key("g")).values()
    assert not any(name.startswith(slot_name("")) for name in task.shape.request)


def test_ignored_provisioners_take_no_slots() -> None:
    cluster = ObjectCluster(attach=AttachRules(frozenset({"csi.x"})))
    for document in (*volume_objects(), csi_node("csi.x")):
        cluster.put(document)
    assert not slots_of(cluster)


def test_objects_that_are_not_ours_are_let_through() -> None:
    cluster = ObjectCluster()
    assert not cluster.put({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}})
    assert not cluster.remove({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}})
    assert "PodGroup" in known_kinds()


def test_an_object_without_a_name_is_refused() -> None:
    with pytest.raises(SnapshotError, match="Node without a name"):
        ObjectCluster().put({"apiVersion": "v1", "kind": "Node", "metadata": {}})
    assert describe({"kind": "Pod", "metadata": {"namespace": "a", "name": "b"}}) == "Pod a/b"


def test_removing_takes_everything_away_again() -> None:
    documents = [
        build.node("n"),
        *build.gang("train", tasks=1, cpu=1),
        build.queue("q"),
        build.hypernode("s", tier=1, members=["n"]),
    ]
    cluster = ObjectCluster()
    for document in documents:
        cluster.put(document)
    for document in documents:
        assert cluster.remove(document)
    snapshot = cluster.snapshot(0.0)
    assert (len(snapshot.nodes), snapshot.gangs, snapshot.members, snapshot.hypernodes.is_empty) == (0, {}, {}, True)
    assert list(snapshot.queues) == ["default", "root"]


def test_a_gang_has_the_priority_of_its_class_or_of_the_default_class() -> None:
    def kind(name: str, value: int, *, is_default: bool = False) -> Document:
        return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
                "globalDefault": is_default}  # fmt: skip

    cluster = ObjectCluster()
    cluster.put(build.pod_group("high", priorityClassName="high"))
    cluster.put(build.pod_group("plain"))

    def priorities() -> list[int]:
        gangs = cluster.snapshot(0.0).gangs
        return [gangs[build_key(name)].priority for name in ("high", "plain")]

    assert priorities() == [0, 0]
    cluster.put(kind("usual", 5, is_default=True))
    assert priorities() == [5, 5]
    cluster.put(kind("high", 9))
    assert priorities() == [9, 5]
    cluster.put(kind("usual", 5))
    assert priorities() == [9, 0]
    cluster.put(kind("usual", 7, is_default=True))
    assert priorities() == [9, 7]
    cluster.remove(kind("usual", 7))
    assert priorities() == [9, 0]


def test_times_and_whole_numbers_are_read_or_refused_with_the_place() -> None:
    assert seconds("1970-01-01T00:01:00Z") == 60.0
    assert seconds("1970-01-01T01:00:00+01:00") == 0.0
    assert seconds(None) == 0.0
    with pytest.raises(SnapshotError, match=r"^now: 'x' is not a time; write for example '2026-01-01T12:00:00Z'"):
        seconds("x", where="now")
    assert integer("5", where="x") == 5
    with pytest.raises(SnapshotError, match=r"^x: 'y' is not a whole number"):
        integer("y", where="x")


# --- what is written back ----------------------------------------------------------------------------------------------

POLICY = build.policy([["priority", "gang"], ["predicates", "nodeorder"]])


def test_a_gang_that_is_ready_is_called_so_and_runs_one_cycle_later() -> None:
    cluster = Cluster(POLICY).submit(build.node("n"), build.gang("train", tasks=2, cpu=1))
    first = cluster.run_cycle()
    assert first.phase("train") == "Inqueue"
    assert first.answer["groups"]["default/train"]["conditions"] == [
        {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled", "message": ""}
    ]
    assert cluster.carry_out(first).run_cycle().phase("train") == "Running"


def test_a_gang_that_waits_says_how_many_tasks_and_why_word_for_word() -> None:
    cluster = Cluster(POLICY).submit(build.node("n0", cpu=2), build.node("n1", cpu=1), build.gang("train", tasks=4, cpu=1))
    assert cluster.run_cycle().condition("train", "Unschedulable") == (
        "1/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending:"
        " 1 Unschedulable, 3 Schedulable. Origin reason is train-3: 0/2 nodes are unavailable: 2 Insufficient cpu."
    )


def test_pods_are_told_whether_they_nearly_had_a_place() -> None:
    cluster = Cluster(POLICY).submit(build.node("n", cpu=1), build.gang("train", tasks=2, cpu=1))
    state = cluster.run_cycle().decisions.outcomes[0].state
    found = [pod_condition(task, ["n"]) for task in state.tasks]
    assert (found[0].reason, found[0].message) == (
        "Schedulable", "Pod default/train-0 can possibly be assigned to n, once minAvailable is satisfied",
    )  # fmt: skip
    assert (found[1].reason, found[1].message) == ("Unschedulable", "0/1 nodes are unavailable: 1 Insufficient cpu.")


def test_pods_with_a_promise_are_told_what_they_wait_for() -> None:
    old = build.pod("old", on="n", cpu=8)
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = Cluster(POLICY).submit(build.node("n"), old, build.gang("train", tasks=1, cpu=1))
    (task,) = cluster.run_cycle().decisions.outcomes[0].state.tasks
    condition = pod_condition(task, ["n"])
    assert (condition.reason, condition.nominated_node) == ("Unschedulable", "n")
    assert condition.message == (
        "Pod default/train-0 can possibly be assigned to n, once resource is released and minAvailable is satisfied"
    )


def in_phase(phase: str, *statuses: str, min_member: int = 2) -> str:
    pods = [build.pod(f"g-{number}", group="g", on="n", cpu=1) for number in range(len(statuses))]
    for pod, status in zip(pods, statuses, strict=True):
        if status == "Pending":
            del pod["spec"]["nodeName"]
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = 99
        pod["status"] = {"phase": status}
    group = build.pod_group("g", min_member=min_member, phase=phase)
    return Cluster(POLICY).submit(build.node("n"), group, pods).run_cycle().phase("g")


@pytest.mark.parametrize(
    ("phase", "statuses", "expected"),
    [
        ("Inqueue", ("Running", "Running"), "Running"), ("Running", ("Succeeded", "Succeeded"), "Completed"),
        ("Running", ("Succeeded", "Failed"), "Completed"), ("Running", ("Running", "Succeeded"), "Running"),
        ("Inqueue", ("Pending", "Pending"), "Inqueue"), ("Running", ("Running", "Pending"), "Unknown"),
        ("Running", ("Pending", "Pending"), "Pending"),
    ],
)  # fmt: skip
def test_the_phase_follows_from_the_members(phase: str, statuses: tuple[str, ...], expected: str) -> None:
    assert in_phase(phase, *statuses) == expected


def test_a_group_that_needs_nobody_is_complete_before_anything_ran() -> None:
    assert in_phase("Inqueue", min_member=0) == "Completed"


def test_conditions_of_other_types_are_kept() -> None:
    group = build.pod_group("train", phase="Inqueue")
    old = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "before"}
    group["status"]["conditions"] = [old]
    cycle = Cluster(POLICY).submit(build.node("n"), group, build.pod("train-0", group="train", cpu=1)).run_cycle()
    assert [entry["type"] for entry in cycle.answer["groups"]["default/train"]["conditions"]] == ["Unschedulable", "Scheduled"]


# --- the state of a cluster ----------------------------------------------------------------------------------------------


def test_a_gang_that_is_complete_and_written_is_not_looked_at_again() -> None:
    cluster = Cluster(POLICY).submit(build.node("n"), build.gang("train", tasks=1, cpu=1))
    cluster.carry_out(cluster.run_cycle())
    cluster.carry_out(cluster.run_cycle())
    assert cluster.objects.snapshot(0.0).active == ()
    cycle = cluster.run_cycle()
    assert cycle.answer["groups"]["default/train"]["phase"] == "Running"
    assert cycle.answer["tasks"]["default/train-0"]["status"] == "Running"


def test_the_sums_of_a_queue_follow_its_gangs() -> None:
    group = build.pod_group("train", min_member=1, minResources={"cpu": 3}, phase="Inqueue")
    pods = [build.pod("train-0", group="train", on="n", cpu=1), build.pod("train-1", group="train", cpu=4)]
    gated = build.pod("train-2", group="train", cpu=1, spec={"schedulingGates": [{"name": "x"}]})
    totals = snapshot_of(build.node("n"), group, *pods, gated).totals["default"]
    assert totals.gangs == 1
    assert totals.allocated == {"cpu": 1000, "pods": 1}
    assert totals.requested == {"cpu": 6000, "pods": 3}
    assert totals.inqueue == {"cpu": 1000}
    assert totals.elastic == {"pods": 1}


def test_a_task_on_a_node_that_comes_later_finds_its_books() -> None:
    snapshot = snapshot_of(build.pod("p", on="n", cpu=1), build.node("n"))
    assert snapshot.used[0].tolist() == [1000]
    assert snapshot.pods.tolist() == [1]
    assert snapshot.on_node["n"][TaskKey("default/p")].name == "p"


def test_a_pod_that_names_two_groups_and_cannot_be_read_does_no_harm_to_the_groups() -> None:
    pod = build.pod("train-0", group="train", cpu="plenty")
    pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "train"
    cluster = ObjectCluster()
    with pytest.raises(SnapshotError, match="plenty"):
        cluster.put(pod)
    assert cluster.put(build.pod_group("train"))


THREADS = """
import sys, threading
import msgspec
from phalanx.dialects import cluster, schema

sys.setswitchinterval(1e-6)
pod = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"containers": [{"name": "main"}]}}
begin = threading.Barrier(8)


def read():
    begin.wait()
    msgspec.convert(pod, schema.Pod)


threads = [threading.Thread(target=read) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_threads_may_read_the_first_pod_together() -> None:
    for _ in range(3):  # without a look at the structs before, two of three processes end with a segmentation fault
        assert subprocess.run([sys.executable, "-c", THREADS], check=False).returncode == 0
