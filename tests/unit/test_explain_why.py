"""Why a gang waits: one sentence for each of the things that can be in its way."""

from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.explain.node_causes import node_text, search_of
from phalanx.explain.reason_text import general_obstacle, most_frequent, request_text
from phalanx.explain.untried import untried_error
from phalanx.state.verdict import FitError, Verdict
from phalanx.testing import build
from tests.support import kai_objects as kai

WITHOUT_QUEUES = build.policy(tiers=(("priority", "gang"), ("predicates", "nodeorder")))
TOPOLOGY = build.policy(tiers=(("priority", "gang"), ("predicates", "nodeorder", "network-topology-aware")))


def why(*objects: Any, policy: Any = WITHOUT_QUEUES, nodes: int = 3, **offers: Any) -> str:
    """Submit objects, the gang among them called "train", and return why it waits."""
    return build.cluster(nodes=nodes, policy=policy, **offers).submit(*objects).run_cycle().why("train")


def with_queues(*objects: Any, nodes: int = 1, **offers: Any) -> str:
    return why(*objects, policy=build.policy(), nodes=nodes, **offers)


def leaving(pod: dict[str, Any]) -> dict[str, Any]:
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


def in_phase(pod: dict[str, Any], phase: str) -> dict[str, Any]:
    return {**pod, "status": {"phase": phase}}


GATES = {"schedulingGates": [{"name": "quota"}]}


def test_a_gang_that_starts_whole_has_no_reason_to_wait() -> None:
    assert why(build.gang("train", tasks=3, cpu=1)) == ""


@pytest.mark.parametrize("policy", [WITHOUT_QUEUES, build.policy(), kai.policy()])
def test_a_task_that_is_larger_than_every_node_is_told_so(policy: Any) -> None:
    found = why(build.gang("train", tasks=1, gpus=4), build.gang("small", tasks=1, gpus=1), policy=policy, nodes=2, gpus=2)
    assert "4 nvidia.com/gpu" in found
    assert "(no node is that large: the largest has 2 nvidia.com/gpu)" in found


def test_a_task_that_only_finds_no_room_now_is_not_called_too_large() -> None:
    assert "that large" not in why(build.pod("old", on="node-0", gpus=1), build.gang("train", tasks=1, gpus=2), nodes=1, gpus=2)


def test_a_gang_that_has_ended_has_no_reason_to_wait() -> None:
    group = build.pod_group("train", min_member=2, phase="Running")
    pods = [in_phase(build.pod(f"train-{number}", group="train", on="node-0", cpu=1), "Succeeded") for number in range(2)]
    assert why(group, *pods) == ""


def test_missing_nodes_are_counted_by_what_they_lack() -> None:
    assert why(build.gang("train", tasks=4, gpus=1, cpu=2), gpus=1) == (
        "3 of 4 tasks fit; 1 more place for 1 nvidia.com/gpu, 2 cpu needed"
        " (3 nodes: 3 lack nvidia.com/gpu (3 of 3 are free, 4 needed))"
    )


def test_different_obstacles_are_named_apart() -> None:
    tainted = build.node("b", gpus=8, spec={"taints": [{"key": "team", "effect": "NoSchedule"}]})
    assert why(build.node("a"), tainted, build.gang("train", tasks=2, gpus=1), nodes=0) == (
        "0 of 2 tasks fit; 2 more places for 1 nvidia.com/gpu needed"
        " (2 nodes: 1 has the untolerated taint team:NoSchedule, 1 lacks nvidia.com/gpu (not offered))"
    )


def test_a_cluster_without_nodes_says_so() -> None:
    assert "there are no nodes" in why(build.gang("train", tasks=2, cpu=1), nodes=0)
    assert with_queues(build.gang("train", tasks=2, cpu=1), nodes=0) == "there are no nodes"


SMALL = build.queue("small", capability={"cpu": "3"})


@pytest.mark.parametrize(("tasks", "minimum", "said"), [(4, 4, True), (4, 3, False), (3, 3, False)])
def test_a_queue_that_may_not_have_a_gang_is_named_where_there_are_no_nodes(tasks: int, minimum: int, said: bool) -> None:
    found = with_queues(SMALL, build.gang("train", tasks=tasks, min_member=minimum, queue="small", cpu=1), nodes=0)
    reason = "; queue 'small' may use 3 cpu more, 4 wanted: more nodes would not help"
    assert found == f"there are no nodes{reason if said else ''}"


def test_a_queue_that_may_not_have_a_gang_is_named_where_nodes_are_full() -> None:
    old = build.pod("old", on="node-0", cpu=8)
    found = with_queues(SMALL, old, build.gang("train", tasks=4, queue="small", cpu=1), cpu=8)
    assert found.endswith("queue 'small' may use 3 cpu more, 4 wanted: more nodes would not help")


def test_a_queue_that_has_all_it_may_use_is_named_where_no_node_is_large_enough() -> None:
    old = [build.pod_group("old", queue="small"), build.pod("old-0", group="old", on="node-0", cpu=3)]
    found = with_queues(SMALL, *old, build.gang("train", tasks=1, queue="small", cpu=1), cpu=3)
    assert found.endswith("queue 'small' may use no more cpu, 1 wanted: more nodes would not help")


def test_a_full_cluster_is_not_blamed_on_the_queue() -> None:
    assert with_queues(build.gang("train", tasks=4, gpus=1), gpus=3) == (
        "3 of 4 tasks fit; 1 more place for 1 nvidia.com/gpu needed (3 of 3 nvidia.com/gpu are free, 4 needed)"
    )


def test_a_full_cluster_is_looked_at_once_however_many_tasks_the_queue_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def counted_error(shape: Any, resource: str, table: Any) -> FitError:
        looks.append(resource)
        return untried_error(shape, resource, table)

    monkeypatch.setattr("phalanx.explain.missing_places.untried_error", counted_error)
    text = with_queues(build.gang("train", tasks=40, gpus=1), gpus=3)
    assert text.endswith("(3 of 3 nvidia.com/gpu are free, 40 needed)")
    assert looks == ["nvidia.com/gpu"]


def test_a_resource_that_no_node_offers_is_named() -> None:
    assert with_queues(build.gang("train", tasks=1, gpus=1)) == (
        "0 of 1 tasks fit; 1 more place for 1 nvidia.com/gpu needed (no node offers nvidia.com/gpu)"
    )


def test_a_full_queue_is_named_with_what_it_has_and_may_have() -> None:
    queue = build.queue("research", capability={"nvidia.com/gpu": 2})
    assert with_queues(queue, build.gang("train", tasks=3, queue="research", gpus=1), gpus=8) == (
        "2 of 3 tasks fit; queue 'research' then has 2 of the 2 nvidia.com/gpu it deserves, 1 more wanted"
    )


def test_a_gang_that_is_not_admitted_says_which_limit_it_would_break() -> None:
    queue = build.queue("research", capability={"cpu": 2})
    group = build.pod_group("train", queue="research", minResources={"cpu": "4"})
    assert with_queues(queue, group, build.pod("train-0", group="train", cpu=4)) == (
        "not admitted: queue 'research' has 0 of the 2 cpu it may use, 4 more wanted"
    )


def test_a_gang_that_is_too_big_for_the_cluster_is_not_admitted() -> None:
    group = build.pod_group("train", minResources={"cpu": "20"})
    assert with_queues(group, build.pod("train-0", group="train", cpu=20)) == (
        "not admitted: with what is admitted already it asks for more than 1.2 times the cluster's cpu"
    )


def test_a_gang_that_nobody_admits_says_so() -> None:
    policy = build.policy(actions="backfill")
    assert why(build.gang("train", tasks=1, cpu=1), policy=policy) == "not admitted: no action of this session admits it"


def test_a_gang_that_nobody_tries_says_so() -> None:
    policy = build.policy(actions="enqueue, backfill")
    assert why(build.gang("train", tasks=1, cpu=1), policy=policy) == "not tried in this session"


def test_a_missing_queue_is_named() -> None:
    assert why(build.gang("train", tasks=1, queue="researchers", cpu=1)) == "queue 'researchers' does not exist"


def test_a_closed_queue_is_named() -> None:
    queue = {**build.queue("research"), "status": {"state": "Closed"}}
    gang = build.gang("train", tasks=1, queue="research", cpu=1)
    assert with_queues(queue, gang).endswith("queue 'research' is Closed and takes no new work")


def test_a_gang_behind_others_in_an_overused_queue_says_so() -> None:
    running = [build.pod(f"old-{number}", group="old", on="node-0", cpu=4) for number in range(2)]
    old = [build.queue("a"), build.pod_group("old", min_member=1, queue="a", phase="Running"), *running]
    other = [build.queue("b"), *build.gang("other", tasks=8, queue="b", cpu=1)]
    assert with_queues(old, other, build.gang("train", tasks=1, queue="a", cpu=1), pods=4) == (
        "queue 'a' has all it deserves, and this gang comes after the others in it"
    )


def test_a_gang_without_pods_says_how_many_it_needs() -> None:
    assert why(build.pod_group("train", min_member=3)) == "no pods yet; 3 are needed"


def test_a_gang_whose_pods_are_created_once_it_is_admitted_says_why_it_is_not() -> None:
    group = build.pod_group("train", min_member=2, minResources={"cpu": "80"})
    assert why(group, policy=policy_of_profile("volcano")) == (
        "not admitted: with what is admitted already it asks for more than 1.2 times the cluster's cpu"
    )


def test_a_gang_without_pods_in_a_queue_that_does_not_exist_says_so() -> None:
    assert why(build.pod_group("train", min_member=2, queue="nowhere")) == "queue 'nowhere' does not exist"


def test_too_few_pods_are_counted_and_the_lost_ones_named() -> None:
    gang = build.gang("train", tasks=4, min_member=4, cpu=1)
    lost = [
        in_phase(build.pod("train-2", group="train", cpu=1), "Failed"),
        leaving(build.pod("train-3", group="train", on="node-0", cpu=1)),
    ]
    assert why(build.gang("train", tasks=2, min_member=3, cpu=1)) == "only 2 of the 3 pods it needs are there"
    assert why(gang, lost) == "only 2 of the 4 pods it needs are there (1 failed, 1 leaving)"


def test_too_few_pods_of_a_role_name_the_role() -> None:
    group = build.pod_group("train", min_member=3, minTaskMember={"ps": 1, "worker": 2})
    pods = [
        build.in_group("train", build.pod(f"train-{number}", cpu=1), role=role)
        for number, role in enumerate(("ps", "ps", "worker"))
    ]
    assert why(group, *pods) == "too few pods (worker: 1 of 2)"


def test_a_role_without_room_is_named() -> None:
    group = build.pod_group("train", min_member=3, minTaskMember={"ps": 1, "worker": 2})
    workers = [build.in_group("train", build.pod(f"train-worker-{number}", cpu=1), role="worker") for number in range(2)]
    server = build.in_group("train", build.pod("train-ps-0", cpu=100), role="ps")
    assert "tasks fit (ps: 0 of 1); 1 more place for 100 cpu needed (no node is that large: the largest has 8 cpu)" in why(
        group, server, *workers
    )


def test_gated_pods_are_counted() -> None:
    gated = build.pod("train-2", group="train", cpu=1, spec=GATES)
    assert (
        why(build.gang("train", tasks=3, cpu=1), gated)
        == "2 of 3 tasks fit; 1 of 3 tasks is held back by the scheduling gate 'quota'"
    )


def test_a_gang_of_gated_pods_only_says_so() -> None:
    pods = [build.pod(f"train-{number}", group="train", cpu=1, spec=GATES) for number in range(2)]
    assert why(build.pod_group("train", min_member=2), *pods) == "2 of 2 tasks are held back by the scheduling gate 'quota'"


def test_promised_room_is_said_to_be_in_use_still() -> None:
    old = leaving(build.pod("old", on="node-0", gpus=1))
    assert why(old, build.gang("train", tasks=2, gpus=1), nodes=1, gpus=2) == (
        "1 of 2 tasks placed; 1 of 2 tasks is pipelined onto room that leaving pods still hold"
    )


def test_a_gang_with_its_minimum_says_what_its_other_tasks_wait_for() -> None:
    assert why(build.gang("train", tasks=5, min_member=3, gpus=1), gpus=1) == (
        "starts with its minimum of 3; 2 more tasks wait: no place for 1 nvidia.com/gpu"
        " (3 nodes: 3 lack nvidia.com/gpu (0 of 3 are free, 1 needed))"
    )


def test_a_gang_that_ran_before_runs_with_what_it_has() -> None:
    group = build.pod_group("train", min_member=1, phase="Running")
    running = [build.pod(f"train-{number}", group="train", on="node-0", gpus=1) for number in range(2)]
    assert why(group, *running, build.pod("train-2", group="train", gpus=1), nodes=1, gpus=2) == (
        "runs with 2 of 3 tasks, its minimum is 1; 1 more task waits:"
        " no place for 1 nvidia.com/gpu (1 node: 1 lacks nvidia.com/gpu (0 of 2 are free, 1 needed))"
    )


def test_a_network_constraint_is_part_of_the_reason() -> None:
    fabric = [build.hypernode("leaf-0", tier=1, members=["node-0"]), build.hypernode("leaf-1", tier=1, members=["node-1"])]
    constraint = {"mode": "hard", "highestTierAllowed": 1}
    gang = build.gang("train", tasks=2, gpus=1)
    gang[0]["spec"]["networkTopology"] = constraint
    assert why(fabric, gang, policy=TOPOLOGY, nodes=2, gpus=1) == (
        "no HyperNode of tier 1 or narrower has room for all 2 tasks, each 1 nvidia.com/gpu"
    )


def test_tasks_that_fit_a_network_domain_one_by_one_only_name_the_domain() -> None:
    fabric = [build.hypernode("leaf", tier=1, members=["node-0", "node-1"])]
    gang = build.gang("train", tasks=2, cpu=6)
    gang[0]["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    others = [build.pod("other", on="node-0", cpu=4)]
    assert why(fabric, gang, others, policy=TOPOLOGY, nodes=2) == (
        "1 of 2 tasks fit in one HyperNode of tier 1 or narrower;"
        " 1 more place for 6 cpu needed (in HyperNode leaf: 2 nodes: 2 lack cpu (12 of 16 are free, in parts for 1 task))"
    )


def test_an_evicted_gang_says_how_much_of_it_has_to_go() -> None:
    policy = build.policy(tiers=(("priority", "conformance"), ("predicates", "nodeorder")), actions="allocate, preempt")
    classes = [{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}]
    old = [build.pod_group("train", min_member=1, phase="Running"), build.pod("train-0", group="train", on="node-0", cpu=8)]
    urgent = build.gang("urgent", tasks=1, cpu=8)
    urgent[0]["spec"]["priorityClassName"] = "high"
    urgent[1]["spec"]["priority"] = 100
    assert why(classes, old, urgent, policy=policy, nodes=1) == "1 of 1 task is evicted"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"nodeSelector": {"gpu": "h100"}}, "3 do not match the nodeSelector gpu=h100 (no node has the label gpu)"),
        (
            {"containers": [{"ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": 1}}}]},
            "3 have host port 80 taken (by tasks placed in this session; one fits per node)",
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {}}]},
            "3 have no label zone, which its spread needs",
        ),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}, "volume claim 'data' does not exist"),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "h100"}]}, "device claim 'default/h100' does not exist"),
    ],
)
def test_what_filters_say_is_put_into_plain_words(spec: dict[str, Any], reason: str) -> None:
    pods = [build.pod(f"train-{number}", group="train", spec=spec, cpu=1) for number in range(4)]
    assert reason in why(build.pod_group("train", min_member=4), *pods)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"node(s) were unschedulable": 1}, "1 node: 1 is cordoned"),
        ({"node(s) were unschedulable": 2}, "2 nodes: 2 are cordoned"),
        ({"Insufficient pods": 2}, "2 nodes: 2 run as many pods as they may"),
        (
            {"Insufficient attachable-volumes-csi-a": 1, "node(s) exceed max volume count": 1},
            "2 nodes: 2 can attach no more volumes",
        ),
        (
            {"node(s) didn't match PersistentVolume's node affinity, node(s) did not have enough free storage": 1},
            "1 node: 1 cannot reach its volume and has too little storage for its claim",
        ),
        ({"node(s) are haunted": 2, "Insufficient cpu": 1}, "3 nodes: 2 node(s) are haunted, 1 lacks cpu"),
    ],
)
def test_reasons_of_nodes_follow_their_number_and_unknown_ones_stay(counts: dict[str, int], sentence: str) -> None:
    cluster = build.cluster(nodes=3).submit(build.gang("train", cpu=1))
    outcome, snapshot = cluster.run_cycle().decisions.outcomes[0], cluster.objects.snapshot(0.0)
    error = FitError(sum(counts.values()), counts)
    assert node_text(search_of(outcome, outcome.state.tasks[0], error, snapshot)) == sentence


@pytest.mark.parametrize(
    ("reason", "names", "sentence"),
    [
        ("VolumeClaimNotFound", {"claim": "data"}, "volume claim 'data' does not exist"),
        ("VolumeClaimDeleted", {"claim": "data"}, "volume claim 'data' is being deleted"),
        ("VolumeNotFound", {"claim": "data", "volume": "pv-1"}, "volume claim 'data' has lost its volume 'pv-1'"),
        ("VolumeNotFound", {"volume": "pv-1"}, "volume 'pv-1' of a claim does not exist"),
        ("UnboundVolumeClaim", {}, "volume claim 'data' is not bound to a volume yet"),
        ("UnboundVolumeClaim", {"storage_class": ""}, "volume claim 'data' has neither volume nor storage class"),
        ("StorageClassNotFound", {"storage_class": "fast"}, "storage class 'fast' of a volume claim does not exist"),
        ("ClaimNotFound", {"claim": "default/h100"}, "device claim 'default/h100' does not exist"),
        ("ClaimNotFound", {"template": "gpu"}, "device claim 'gpu' is not made yet"),
        ("ClaimDeleted", {"claim": "h100"}, "device claim 'h100' is being deleted"),
        ("ClaimInUse", {}, "a device claim is used by as many pods as it may be"),
        ("DeviceClassNotFound", {"device_class": "gpu.example.com"}, "device class 'gpu.example.com' does not exist"),
        ("NodeAffinityConflict", {}, "its node affinity names nodes that exclude each other"),
        ("FullMoon", {}, "the moon is full"),
    ],
)
def test_reasons_that_hold_for_every_node_need_no_number(reason: str, names: dict[str, str], sentence: str) -> None:
    verdict = Verdict.refuse("predicates", reason, "plugin Moon pre-predicates failed", **names, cause="the moon is full")
    assert general_obstacle(FitError.same_everywhere(2, verdict), ("data",)) == sentence


def test_what_nodes_refuse_is_no_reason_for_every_node() -> None:
    assert general_obstacle(FitError(2, {"Insufficient cpu": 2}), ("data",)) == ""


def test_a_request_names_what_is_scarce_first_and_amounts_as_people_do() -> None:
    request = {"cpu": 4000, "memory": 8 << 30, "pods": 1, "nvidia.com/gpu": 1000, "ephemeral-storage": (10 << 30) * 1000}
    assert request_text(request) == "10Gi ephemeral-storage, 1 nvidia.com/gpu, 4 cpu, 8Gi memory"
    assert request_text({"pods": 1, "attachable-volumes-csi-a": 1000}) == "a pod without requests"


def test_a_gang_of_which_a_part_starts_says_that_nothing_holds_it_together() -> None:
    loose = build.policy((("priority", "predicates", "nodeorder"),), "allocate")
    cluster = build.cluster(nodes=2, policy=loose, cpu=1).submit(build.gang("train", tasks=3, cpu=1))
    assert len(cluster.run_cycle().binds) == 2
    assert cluster.why("train") == (
        "2 of 3 tasks are placed without the rest, since no plugin of the configuration holds gangs together; "
        "2 of 3 tasks fit; 1 more place for 1 cpu needed (2 nodes: 2 lack cpu (0 of 2 are free, 1 needed))"
    )


def test_a_gang_that_starts_whole_or_waits_as_a_whole_says_nothing_of_that() -> None:
    loose = build.policy((("priority", "predicates", "nodeorder"),), "allocate")
    cluster = build.cluster(nodes=2, policy=loose, cpu=1).submit(build.gang("train", tasks=2, cpu=1), build.gang("huge", cpu=9))
    cluster.run_cycle()
    assert cluster.why("train") == ""
    assert cluster.why("huge").startswith("0 of 1 tasks fit")


def test_members_that_ask_for_the_same_are_counted_together_although_they_may_be_in_different_places() -> None:
    cluster = build.cluster(nodes=2, cpu=64).submit(build.pod_group("ray", min_member=3), build.pod("head", group="ray", cpu=1))
    for number in range(2):
        selector = {"nodeSelector": {"rack": str(number)}}
        cluster.submit(build.pod(f"worker-{number}", group="ray", gpus=8, spec=selector))
    assert cluster.run_cycle().why("ray").startswith("1 of 3 tasks fit; 2 more places for 8 nvidia.com/gpu needed (")


def _master_and_worker() -> list[dict[str, Any]]:
    pods = {"master": build.pod("train-master", gpus=2, cpu=8), "worker": build.pod("train-worker", gpus=4, cpu=2)}
    return [build.in_group("train", pod, role=role) for role, pod in pods.items()]


def _growing(policy: Any, *, turned: bool) -> str:
    runs, pods = build.pod("train-0", group="train", on="node-0", gpus=1), _master_and_worker()
    for second, pod in enumerate(reversed(pods) if turned else pods):
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{second}Z"
    return why(build.pod_group("train", min_member=1, phase="Running"), runs, *pods, policy=policy, nodes=1, gpus=1)


@pytest.mark.parametrize("policy", [WITHOUT_QUEUES, build.policy()])
def test_kinds_of_tasks_are_named_in_the_order_of_what_they_ask_for(policy: Any) -> None:
    found = _growing(policy, turned=False)
    assert found == _growing(policy, turned=True)
    assert found.startswith("runs with its minimum of 1; 2 more tasks wait: no place for 4 nvidia.com/gpu, 2 cpu")


def test_equally_many_tasks_are_named_in_the_order_of_their_requests() -> None:
    assert most_frequent({"10 cpu": 1, "2 cpu": 1, "1 cpu": 3}) == [("1 cpu", 3), ("2 cpu", 1), ("10 cpu", 1)]


@pytest.mark.parametrize("made", [build.gang, kai.gang])
def test_a_full_cluster_is_the_reason_in_every_dialect(made: Any) -> None:
    found = with_queues(made("train", tasks=3, min_member=3, queue="default", gpus=4), gpus=8)
    assert found.startswith("2 of 3 tasks fit; ")
    assert "(8 of 8 nvidia.com/gpu are free, 12 needed)" in found, found
    assert "queue" not in found


def test_room_that_other_sub_groups_take_is_not_said_to_be_too_little() -> None:
    tier = {"mode": "hard", "highestTierAllowed": 1}
    part = {"name": "stage", "subGroupSize": 2, "matchLabelKeys": ["stage"], "networkTopology": tier}
    group = build.pod_group("train", min_member=6, networkTopology={"mode": "hard", "highestTierAllowed": 2}, subGroupPolicy=[part])
    pods = [build.pod(f"train-{number}", group="train", gpus=4) for number in range(6)]
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"] = {"stage": str(number // 2)}
    leaves = [build.hypernode(f"leaf-{number}", tier=1, members=[f"node-{number}"]) for number in range(4)]
    spines = [
        build.hypernode(f"spine-{number}", tier=2, of="HyperNode", members=[f"leaf-{2 * number}", f"leaf-{2 * number + 1}"])
        for number in range(2)
    ]
    found = why(group, *pods, *leaves, *spines, policy=policy_of_profile("phalanx"), nodes=4, gpus=8)
    assert found.startswith("4 of 6 tasks fit in one HyperNode of tier 2 or narrower; 2 more places for 4 nvidia.com/gpu needed")
    assert "(8 of 8 are free but for tasks of its own gang)" in found, found
