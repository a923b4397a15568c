"""What each stage of an explanation says, and which of them comes first."""

import json
from typing import Any

import pytest

from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.dialects.kai_subgroups import SUBGROUP
from phalanx.explain.gang_status import GangStatus
from phalanx.explain.tree import Explanation, Line, Stage, StageResult
from phalanx.plugins.coscheduling import LAST_FAILURE
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai
from tests.support import native_groups as native
from tests.support.explained_gangs import NOON, explained, stage, texts

NODE = build.node("n0", cpu=8)
GPU_NODE = build.node("g0", gpus=4)
KAI_TOP = kai.queue("default", parent="", quota=-1)
FIVE_MINUTES_AGO = "2026-01-01T11:55:00Z"


def owned(document: Document, kind: str, name: str, api: str = "batch/v1") -> Document:
    reference = {"apiVersion": api, "kind": kind, "name": name, "uid": name, "controller": True}
    document["metadata"]["ownerReferences"] = [reference]
    return document


def job(name: str, **spec: Any) -> Document:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


# --- the order -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failed", "first"),
    [
        ([Stage.EVICTIONS, Stage.FITS], Stage.FITS),
        ([Stage.FITS, Stage.ADMITTED], Stage.ADMITTED),
        ([Stage.FITS, Stage.BIND], Stage.BIND),
        ([Stage.BIND, Stage.ADMITTED, Stage.VALID], Stage.VALID),
        ([Stage.TURN, Stage.TOPOLOGY], Stage.TOPOLOGY),
        ([Stage.EVICTIONS, Stage.TURN], Stage.TURN),
    ],
)
def test_the_stage_that_must_be_mended_first_comes_first(failed: list[Stage], first: Stage) -> None:
    found = explanation_with(*(StageResult(name, name not in failed, (Line(name),)) for name in Stage))
    assert [result.stage for result in found.ordered] == [first, *(name for name in Stage if name is not first)]


def test_a_stage_that_alone_is_the_cause_comes_before_those_that_follow_from_it() -> None:
    fits, topology = StageResult(Stage.FITS, False, (Line("f"),)), StageResult(Stage.TOPOLOGY, False, (Line("t"),), is_cause=True)
    assert next(iter(explanation_with(fits, topology).ordered)) is topology


def test_a_stage_without_a_word_is_not_shown() -> None:
    assert list(explanation_with(StageResult(Stage.FITS, False)).ordered) == []


def explanation_with(*stages: StageResult) -> Explanation:
    found = explained(NODE, build.gang("train", cpu=1))
    return Explanation(found.gang, found.queue, found.status, found.code, found.headline, stages)


ENOUGH = "Job default/train wants no more than 2 pods; let it want more, or lower the minimum"

# --- valid ---------------------------------------------------------------------------------------------------------------


def test_missing_pods_are_counted_and_named_with_their_owner() -> None:
    group, *pods = build.gang("train", tasks=2, min_member=4, cpu=1)
    found = stage(explained(NODE, group, [owned(pod, "Job", "train") for pod in pods], job("train", parallelism=4)), Stage.VALID)
    assert found.ok is False
    assert texts(found) == [
        "2 of the 4 pods it needs are there, 2 are missing: train-2, train-3",
        "  Job default/train has made 2 of 4 pods; look at its status and events",
    ]
    assert found.lines[0].code == "NotEnoughTasks"
    assert found.lines[0].things["missing"] == 2


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        (job("train", parallelism=4, suspend=True), "Job default/train is suspended and makes no pods; resume it"),
        (job("train", parallelism=2), ENOUGH),
        (job("train", parallelism=9, completions=2), ENOUGH),
        (NODE, "Job default/train makes the pods; it is not in the input"),
    ],
)  # fmt: skip
def test_the_owner_says_why_pods_are_missing(owner: Document, text: str) -> None:
    group, *pods = build.gang("train", tasks=2, min_member=4, cpu=1)
    found = stage(explained(NODE, group, [owned(pod, "Job", "train") for pod in pods], owner), Stage.VALID)
    assert texts(found)[1] == f"  {text}"


def test_pods_of_other_owners_are_counted_too() -> None:
    tasks = [{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 3}]
    vcjob = {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"}, "spec": {"tasks": tasks},
    }  # fmt: skip
    group, *pods = build.gang("train", tasks=2, min_member=4, cpu=1)
    found = explained(NODE, owned(group, "Job", "train", "batch.volcano.sh/v1alpha1"), pods, vcjob)
    assert "  Job default/train has made 2 of 4 pods; look at its status and events" in texts(stage(found, Stage.VALID))


def test_pods_that_failed_or_leave_are_named() -> None:
    group, *pods = build.gang("train", tasks=3, cpu=1)
    pods[0]["status"] = {"phase": "Failed"}
    pods[1]["spec"]["nodeName"] = "n0"
    pods[1]["metadata"]["deletionTimestamp"] = FIVE_MINUTES_AGO
    found = stage(explained(NODE, group, pods), Stage.VALID)
    assert found.ok is False
    assert {"  1 pod failed: train-0", "  1 pod is being deleted: train-1"} <= set(texts(found))


def test_a_gate_and_another_scheduler_are_named() -> None:
    group, gated, foreign = build.gang("train", tasks=2, cpu=1)
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    foreign["spec"]["schedulerName"] = "volcanoo"
    gated["spec"]["schedulerName"] = "volcano"
    found = stage(explained(NODE, group, gated, foreign, schedulers=["volcano"]), Stage.VALID)
    assert found.ok is False
    assert texts(found)[:2] == [
        "1 pod (train-1) is not ours: schedulerName is 'volcanoo'; did you mean 'volcano'?",
        "1 pod (train-0) is held back by the scheduling gate 'example.com/wait'",
    ]
    assert [line.code for line in found.lines[:2]] == ["OtherScheduler", "Gated"]


def test_roles_are_counted_one_by_one() -> None:
    group = build.pod_group("train", min_member=3, minTaskMember={"ps": 1, "worker": 2})
    workers = [build.in_group("train", build.pod(f"w-{number}", cpu=1), role="worker") for number in range(3)]
    found = stage(explained(NODE, group, workers), Stage.VALID)
    assert found.ok is False
    assert texts(found)[0] == "role ps: 0 of the 1 pod it needs are there"
    assert found.lines[0].code == "NotEnoughPodsOfTask"


def test_subgroups_of_kai_and_strays_are_named() -> None:
    parts = [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 2}]
    group = kai.pod_group("train", min_member=3, subGroups=parts)
    pods = [kai.pod("p-0", "train", part="a", gpus=1), kai.pod("p-1", "train", part="b", gpus=1), kai.pod("p-2", "train", gpus=1)]
    found = stage(explained(GPU_NODE, KAI_TOP, kai.queue("a"), group, pods, policy=kai.policy()), Stage.VALID)
    assert found.ok is False
    assert texts(found)[0] == "sub-group b: 1 of the 2 pods it needs is there"
    assert texts(found)[-1] == f"pod default/p-2 has no label {SUBGROUP}; write one of a, b"


def test_subgroups_of_volcano_are_counted() -> None:
    policy = {"name": "ring", "subGroupSize": 1, "minSubGroups": 3, "matchLabelKeys": ["ring"]}
    group, *pods = build.gang("train", tasks=2, cpu=1)
    group["spec"]["subGroupPolicy"] = [policy]
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"]["ring"] = str(number)
    found = stage(explained(NODE, group, pods), Stage.VALID)
    assert (found.ok, texts(found)) == (False, ["sub-groups ring: 2 of the 3 it needs are there", "2 pods are there, 2 are needed"])


def test_pods_in_another_namespace_or_with_a_misspelt_group_are_found() -> None:
    group = build.pod_group("train", min_member=2)
    there = build.in_group("train", build.pod("dev/train-0", cpu=1))
    misspelt = build.in_group("trainn", build.pod("train-1", cpu=1))
    found = stage(explained(NODE, group, there, misspelt), Stage.VALID)
    assert found.ok is False
    assert texts(found) == [
        "no pods yet; 2 are needed",
        "  1 pod in namespace dev names it; a gang has all its pods in its own namespace",
        "  1 pod names the group 'trainn', which does not exist; 'train' may be meant",
    ]


def test_a_pod_that_names_two_groups_is_in_neither_and_named() -> None:
    group, *pods = build.gang("train", tasks=2, cpu=1)
    pods[0]["spec"]["schedulingGroup"] = {"podGroupName": "other"}
    found = stage(explained(NODE, group, pods, native.group("other", min_count=1)), Stage.VALID)
    named = "default/train (volcano) and default/other (native)"
    assert texts(found) == [
        "1 of the 2 pods it needs is there, 1 is missing: train-0",
        f"  pod default/train-0: it belongs to two groups, {named}; remove the mark of one of them",
    ]


def test_a_pod_of_the_missing_name_that_is_in_another_gang_is_found_there() -> None:
    group, *pods = build.gang("train", tasks=2, cpu=1)
    build.in_group("other", pods[1])
    found = stage(explained(NODE, build.pod_group("other"), group, pods), Stage.VALID)
    assert texts(found)[1] == "  1 pod is in gang default/other and not in this one: train-1"


def test_a_group_that_nobody_describes_is_explained_with_the_one_that_may_be_meant() -> None:
    documents = [NODE, native.group("train", min_count=1), *native.pods("trainn", 2)]
    found = explained(*documents, gang="default/trainn")
    assert (found.status, found.code) == ("Waits", "GroupNotFound")
    assert texts(stage(found, Stage.VALID)) == [
        "2 pods wait for PodGroup default/trainn of scheduling.k8s.io, which does not exist; create it",
        "  there is a group 'train'; it may be meant",
    ]


def test_a_gang_that_is_not_admitted_lacks_no_pods() -> None:
    group = build.pod_group("train", min_member=2, minResources={"cpu": 90})
    found = explained(NODE, group, policy=build.policy())
    assert (stage(found, Stage.VALID).ok, stage(found, Stage.ADMITTED).ok) == (None, False)
    assert texts(stage(found, Stage.VALID)) == ["no pods yet: its owner makes them once it is admitted"]
    assert next(iter(found.ordered)).stage is Stage.ADMITTED


def test_a_gang_that_starts_is_valid() -> None:
    found = explained(NODE, build.gang("train", tasks=2, cpu=1))
    assert [(result.stage, result.ok) for result in found.stages if result.ok is False] == []
    assert texts(stage(found, Stage.VALID)) == ["2 pods are there, 2 are needed"]
    assert texts(stage(found, Stage.BIND)) == ["2 pods are placed on n0 (2)"]


# --- admitted ------------------------------------------------------------------------------------------------------------


def test_a_queue_that_does_not_exist_is_named_with_the_one_that_may_be_meant() -> None:
    found = explained(NODE, build.queue("research"), build.gang("train", queue="researchh", cpu=1))
    assert texts(stage(found, Stage.ADMITTED))[0] == "queue 'researchh' does not exist; did you mean 'research'?"
    assert next(iter(found.ordered)).stage is Stage.ADMITTED


def test_a_queue_without_a_near_name_is_to_be_created() -> None:
    found = stage(explained(NODE, build.gang("train", queue="zzz", cpu=1)), Stage.ADMITTED)
    assert texts(found) == [
        "queue 'zzz' does not exist; create it, or write another one in spec.queue", "  the queues are default, root",
    ]  # fmt: skip


def test_a_closed_queue_says_so() -> None:
    queue = {**build.queue("research"), "status": {"state": "Closed"}}
    found = stage(explained(NODE, queue, build.gang("train", queue="research", cpu=1)), Stage.ADMITTED)
    assert (found.ok, texts(found)[0]) == (False, "queue 'research' is Closed and takes no new work")


def test_a_quota_stands_against_what_is_wanted() -> None:
    queue = build.queue("research", capability={"cpu": 3})
    found = stage(explained(NODE, queue, build.gang("train", tasks=2, queue="research", cpu=2)), Stage.ADMITTED)
    assert found.ok is False
    assert texts(found)[0] == "queue 'research' then has 2 of the 3 cpu it may use, 2 more wanted"
    assert {key: found.lines[0].things[key] for key in ("limit", "taken", "wanted")} == {"limit": 3.0, "taken": 2.0, "wanted": 2.0}
    assert texts(found)[1].startswith("queue 'research' has 0 cpu (may use 3")


TEAM = [build.queue("team", capability={"cpu": 3}), build.queue("child", parent="team", capability={"cpu": 8})]


def test_the_queue_above_that_hands_down_its_limit_is_named() -> None:
    found = stage(explained(NODE, TEAM, build.gang("train", tasks=2, queue="child", cpu=2)), Stage.ADMITTED)
    assert found.ok is False
    assert texts(found)[:2] == [
        "queue 'child' then has 2 of the 3 cpu it may use, 2 more wanted",
        "  it is queue 'team' that sets this limit: 'child' below 'team'",
    ]
    assert [text.partition(" has ")[0] for text in texts(found)[2:]] == ["queue 'child'", "queue 'team'"]


def test_the_queue_above_that_others_have_filled_is_named() -> None:
    others = [build.queue("other", parent="team"), build.pod_group("old", queue="other", phase="Running")]
    running = build.pod("old-0", group="old", on="n0", cpu=2)
    found = stage(explained(NODE, TEAM, others, running, build.gang("train", queue="child", cpu=2)), Stage.ADMITTED)
    assert texts(found)[:2] == [
        "queue 'team' has 2 of the 3 cpu it may use, 2 more wanted",
        "  it is queue 'team' that sets this limit: 'child' below 'team'",
    ]


def test_overcommitment_says_what_it_leaves() -> None:
    group, *pods = build.gang("train", tasks=2, cpu=5)
    group["spec"]["minResources"] = {"cpu": 10}
    found = stage(explained(NODE, group, pods, policy=build.policy([["gang"], ["overcommit", "predicates"]])), Stage.ADMITTED)
    assert (found.ok, found.lines[0].code) == (False, "ClusterOverused")
    assert texts(found)[1] == (
        "  1.2 times the cluster's 8 cpu less 0 in use is 9.6; admitted gangs that wait have 0 of it, and 10 more are wanted"
    )


def test_a_resource_quota_is_named() -> None:
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"cpu": "4"}}, "status": {"hard": {"cpu": "4"}, "used": {"cpu": "3"}},
    }  # fmt: skip
    group, *pods = build.gang("train", tasks=2, cpu=1)
    group["spec"]["minResources"] = {"cpu": 2}
    found = explained(NODE, quota, group, pods, policy=build.policy([["gang"], ["resourcequota", "predicates"]]))
    admitted = stage(found, Stage.ADMITTED)
    assert (admitted.ok, admitted.lines[0].code) == (False, "NamespaceQuotaExceeded")
    assert admitted.lines[0].text.startswith("resource quota team has 3 of 4 cpu used; 2 more do not fit")
    assert (admitted.lines[0].things["hard"], admitted.lines[0].things["wanted"]) == (4.0, 2.0)


def test_a_limit_of_kai_and_a_queue_with_others_below_it() -> None:
    over = explained(GPU_NODE, KAI_TOP, kai.queue("a", limit=1), kai.gang("train", tasks=2, gpus=1), policy=kai.policy())
    assert texts(stage(over, Stage.ADMITTED))[0] == "over limit: queue 'a' has 0 of its limit of 1 GPUs, 2 more wanted"
    queues = [KAI_TOP, kai.queue("a"), kai.queue("below", parent="a")]
    inner = explained(GPU_NODE, queues, kai.gang("train", gpus=1), policy=kai.policy())
    assert texts(stage(inner, Stage.ADMITTED)) == [
        "queue 'a' has queues below it and takes no jobs; use one of them, such as 'below'"
    ]


def test_a_queue_of_kai_below_one_of_another_kind_says_so() -> None:
    found = explained(GPU_NODE, kai.queue("a"), kai.gang("train", gpus=1), policy=kai.policy())
    text = "queue 'a' names the parent 'default', which is no Queue of scheduling.run.ai; create it"
    assert (found.headline, texts(stage(found, Stage.ADMITTED))) == (text, [text])


def test_a_limit_that_evictions_make_room_below_is_none() -> None:
    queues = [kai.queue("default", parent="", quota=-1, limit=4), kai.queue("a", quota=2), kai.queue("b", quota=0)]
    running = kai.gang("old", tasks=4, queue="b", min_member=1, gpus=1, on="g0")
    found = explained(build.node("g0", gpus=8), queues, running, kai.gang("train", tasks=2, gpus=1), policy=kai.policy())
    admitted = stage(found, Stage.ADMITTED)
    assert (found.status, admitted.ok) == (GangStatus.PIPELINED, True)
    assert not any("over limit" in text for text in texts(admitted))


def test_a_full_cluster_is_no_matter_of_the_queue() -> None:
    found = explained(NODE, build.gang("train", tasks=9, cpu=1))
    assert stage(found, Stage.ADMITTED).ok is True


# --- topology ------------------------------------------------------------------------------------------------------------


def racks(*cpus: int) -> list[Document]:
    nodes = [build.node(f"r{rack}", cpu=cpu, labels={"rack": f"r{rack}"}) for rack, cpu in enumerate(cpus)]
    return [*nodes, *(build.hypernode(f"rack{rack}", tier=1, members=[f"r{rack}"]) for rack in range(len(cpus)))]


def within_a_rack(**spec: Any) -> list[Document]:
    group, *pods = build.gang("train", tasks=4, cpu=1)
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1, **spec}
    return [group, *pods]


def test_domains_are_listed_with_how_far_each_got_the_best_first() -> None:
    found = explained(racks(2, 3), within_a_rack())
    assert texts(stage(found, Stage.TOPOLOGY)) == [
        "no HyperNode of tier 1 or narrower has room for all of it; the best is HyperNode rack1 with 3 of 4 tasks",
        "  HyperNode rack1: 3 of 4 tasks", "  HyperNode rack0: 2 of 4 tasks",
    ]  # fmt: skip
    assert next(iter(found.ordered)).stage is Stage.TOPOLOGY


def test_a_domain_in_which_tasks_were_tried_says_what_stopped_the_next_one() -> None:
    taint = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    outside = [build.node("r1-1", cpu=8, spec=taint), build.hypernode("both", tier=1, members=["r0", "r1-1"])]
    found = stage(explained(racks(3)[0], outside, within_a_rack()), Stage.TOPOLOGY)
    assert texts(found)[1] == "  HyperNode both: 3 of 4 tasks"
    assert "Insufficient cpu" in texts(found)[2]


def test_more_than_five_domains_are_counted() -> None:
    found = texts(stage(explained(racks(*[1] * 8), within_a_rack()), Stage.TOPOLOGY))
    assert (len(found), found[-1]) == (7, "  and 3 more domains with no more room")


def test_too_little_room_in_all_is_no_matter_of_the_topology() -> None:
    found = stage(explained(racks(1, 2), within_a_rack()), Stage.TOPOLOGY)
    assert (found.ok, found.is_cause) == (False, False)


def test_a_queue_that_is_full_comes_before_domains_that_would_do() -> None:
    group, *pods = within_a_rack()
    group["spec"]["queue"] = "small"
    found = explained(racks(8, 8), build.queue("small", capability={"cpu": 3}), group, pods)
    assert next(iter(found.ordered)).stage is Stage.ADMITTED


def test_a_tier_that_no_hypernode_has_is_the_cause() -> None:
    found = explained(racks(8), within_a_rack(highestTierAllowed=None, highestTierName="row"))
    assert (stage(found, Stage.TOPOLOGY).ok, stage(found, Stage.TOPOLOGY).is_cause) == (False, True)
    assert stage(found, Stage.TOPOLOGY).lines[0].code == "TierNotFound"


def test_the_values_of_a_label_are_domains_too() -> None:
    group = native.group("train", min_count=4)
    group["spec"]["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
    pods = native.pods("train", 4, cpu=1)
    found = texts(stage(explained(racks(2, 3)[:2], group, pods), Stage.TOPOLOGY))
    assert found[0] == "no group of nodes with one value of 'rack' has room for all of it; the best is rack=r1 with 3 of 4 tasks"
    assert {"  rack=r1: 3 of 4 tasks", "  rack=r0: 2 of 4 tasks"} <= set(found)


def test_domains_of_a_kai_topology_are_listed() -> None:
    nodes = [build.node(f"n{rack}", labels={"zone": "z", "rack": f"r{rack}"}, gpus=gpus) for rack, gpus in enumerate((1, 2))]
    wants: dict[str, Any] = {"topologyConstraint": {"topology": "net", "requiredTopologyLevel": "rack"}}
    objects = [
        KAI_TOP,
        kai.queue("a", quota=9),
        kai.topology("net", "zone", "rack"),
        nodes,
        kai.gang("train", tasks=3, gpus=1, **wants),
    ]
    found = stage(explained(*objects, policy=kai.policy()), Stage.TOPOLOGY)
    assert (found.ok, found.is_cause) == (False, True)
    assert texts(found)[0].endswith("the best is rack=r1 in zone=z of topology net with 2 of 3 tasks")


def test_what_fits_once_victims_are_gone_is_not_how_far_it_got() -> None:
    nodes = [build.node(f"n{rack}", labels={"rack": f"r{rack}"}, gpus=3) for rack in range(2)]
    wants: dict[str, Any] = {"topologyConstraint": {"topology": "net", "requiredTopologyLevel": "rack"}}
    queues = [KAI_TOP, kai.queue("a", quota=6), kai.queue("b", quota=0), kai.topology("net", "rack"), kai.priority_class("build")]
    spared = [kai.gang(f"kept{rack}", queue="b", on=f"n{rack}", gpus=1, priorityClassName="build") for rack in range(2)]
    victims = [kai.gang(f"old{rack}", queue="b", on=f"n{rack}", gpus=1) for rack in range(2)]
    found = explained(nodes, queues, *spared, *victims, kai.gang("train", tasks=3, gpus=1, **wants), policy=kai.policy())
    assert texts(stage(found, Stage.TOPOLOGY))[1:] == [
        "  rack=r0 of topology net: 1 of 3 tasks",
        "  rack=r1 of topology net: 1 of 3 tasks",
    ]


def test_a_topology_that_does_not_exist_comes_with_those_that_do() -> None:
    wants: dict[str, Any] = {"topologyConstraint": {"topology": "nett", "requiredTopologyLevel": "rack"}}
    objects = [GPU_NODE, KAI_TOP, kai.queue("a", quota=9), kai.topology("net", "rack"), kai.gang("train", gpus=1, **wants)]
    found = stage(explained(*objects, policy=kai.policy()), Stage.TOPOLOGY)
    assert (found.ok, found.is_cause) == (False, True)
    assert texts(found) == ["Requested topology nett does not exist", "  the topologies are net"]


def test_a_subgroup_that_no_domain_takes_is_named() -> None:
    constraint = {"mode": "hard", "highestTierAllowed": 1}
    policy = {"name": "ring", "subGroupSize": 2, "minSubGroups": 2, "matchLabelKeys": ["ring"], "networkTopology": constraint}
    group, *pods = build.gang("train", tasks=4, cpu=2)
    group["spec"]["subGroupPolicy"] = [policy]
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"]["ring"] = str(number // 2)
    assert texts(stage(explained(racks(2, 2), group, pods), Stage.TOPOLOGY)) == [
        "no HyperNode of tier 1 or narrower has room for all of sub-group ring; the best is HyperNode rack0 with 1 of 2 tasks",
        "  HyperNode rack0, sub-group ring: 1 of 2 tasks", "  HyperNode rack1, sub-group ring: 1 of 2 tasks",
    ]  # fmt: skip


def test_a_soft_constraint_is_never_the_cause() -> None:
    found = stage(explained(racks(1, 2), within_a_rack(mode="soft")), Stage.TOPOLOGY)
    assert (found.ok, found.is_cause, texts(found)[1:]) == (False, False, ["  the whole cluster: 3 of 4 tasks"])


def test_a_constraint_without_effect_says_so() -> None:
    policy = build.policy([["gang"], ["predicates"]], "allocate")
    found = stage(explained(racks(8), within_a_rack(), policy=policy), Stage.TOPOLOGY)
    assert (found.ok, found.lines[0].code) == (True, "NoEffect")


def test_a_gang_that_found_a_domain_says_which() -> None:
    found = stage(explained(racks(2, 4), within_a_rack()), Stage.TOPOLOGY)
    assert (found.ok, texts(found)) == (True, ["it is in HyperNode rack1"])


def test_a_gang_without_constraint_says_nothing() -> None:
    assert stage(explained(NODE, build.gang("train", cpu=90)), Stage.TOPOLOGY) == StageResult(Stage.TOPOLOGY, None)


# --- bind ----------------------------------------------------------------------------------------------------------------


def test_a_refused_bind_says_where_how_often_why_and_when_it_is_tried_again() -> None:
    group, *pods = build.gang("train", tasks=2, cpu=1)
    failure = {"node": "n0", "attempts": 3, "latest": "2026-01-01T11:59:58Z", "message": "admission webhook denied it"}
    pods[0]["metadata"]["annotations"][FAILED_BINDS] = json.dumps([failure])
    found = explained(NODE, group, pods)
    assert texts(stage(found, Stage.BIND)) == [
        "bind to n0 failed 3 times, tried again in 2 s (2026-01-01T12:00:02Z)",
        "node n0 refused pod train-0 3 times, last 2s ago (2026-01-01T11:59:58Z): admission webhook denied it",
    ]
    assert next(iter(found.ordered)).stage is Stage.BIND


def test_a_failed_request_brings_the_reason_of_the_binder() -> None:
    group, *pods = kai.gang("train", tasks=2, gpus=1)
    request = kai.bind_request("train-0", "g0", phase="Failed", failedAttempts=1, reason="no GPU answered")
    policy = kai.policy(plugins={"bindbackoff": {"enabled": True}})
    found = texts(stage(explained(GPU_NODE, KAI_TOP, kai.queue("a"), group, pods, request, policy=policy), Stage.BIND))
    assert any(text.endswith(": no GPU answered") for text in found)
    assert "BindRequest default/train-0 to node g0 comes to nothing: it failed for good" in found


def test_a_gang_that_pauses_is_tried_again_at_a_time() -> None:
    group, *pods = build.gang("train", tasks=1, cpu=1)
    group["metadata"]["annotations"] = {LAST_FAILURE: "2026-01-01T11:59:50Z"}
    plugin = {"name": "coscheduling", "arguments": {"podGroupBackoffSeconds": 30}}
    found = stage(explained(NODE, group, pods, policy=build.policy([["gang", plugin], ["predicates"]], "allocate")), Stage.BIND)
    assert (found.ok, texts(found)[0]) == (False, "it failed and pauses, tried again in 20 s (2026-01-01T12:00:20Z)")


# --- history -------------------------------------------------------------------------------------------------------------


def test_history_says_since_when_it_waits_and_what_changed_last() -> None:
    group, *pods = build.gang("train", tasks=1, cpu=90)
    for document in (group, *pods):
        document["metadata"]["creationTimestamp"] = "2026-01-01T11:00:00Z"
    condition = {
        "type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "too small",
        "lastTransitionTime": FIVE_MINUTES_AGO,
    }  # fmt: skip
    group["status"]["conditions"] = [condition]
    group["metadata"]["annotations"] = {LAST_FAILURE: "2026-01-01T11:58:00Z"}
    found = stage(explained(NODE, group, pods), Stage.HISTORY)
    assert (found.ok, texts(found)) == (None, [
        "it has waited for 60m, since 2026-01-01T11:00:00Z",
        "it last failed 2m ago (2026-01-01T11:58:00Z)",
        "Unschedulable=True since 5m ago (2026-01-01T11:55:00Z): NotEnoughResources: too small",
    ])  # fmt: skip


def test_history_says_once_that_it_runs_longer_than_it_may() -> None:
    group, pod = build.gang("train", cpu=1)
    pod["spec"]["nodeName"], pod["status"] = "node-0", {"phase": "Running", "startTime": FIVE_MINUTES_AGO}
    group["metadata"]["annotations"] = {"phalanx.dev/max-duration": "2m"}
    condition = {"type": "Overdue", "status": "True", "reason": "LongerThanMaximum", "lastTransitionTime": FIVE_MINUTES_AGO}
    group["status"] = {"phase": "Running", "conditions": [condition]}
    assert texts(stage(explained(NODE, group, pod), Stage.HISTORY)) == [
        "it has run for 5m, longer than its maximum of 2m (phalanx.dev/max-duration of the group)",
    ]


def test_pods_that_came_later_than_their_group_count() -> None:
    group, pod = build.gang("train", cpu=90)
    group["metadata"]["creationTimestamp"], pod["metadata"]["creationTimestamp"] = "2026-01-01T11:00:00Z", FIVE_MINUTES_AGO
    assert texts(stage(explained(NODE, group, pod), Stage.HISTORY)) == [
        "it has waited for 5m, since 2026-01-01T11:55:00Z", "it was created 60m ago (2026-01-01T11:00:00Z)",
    ]  # fmt: skip


def test_without_times_there_is_no_history() -> None:
    assert stage(explained(NODE, build.gang("train", cpu=90), now=NOON), Stage.HISTORY).lines == ()


# --- gangs that no session looks at --------------------------------------------------------------------------------------


def test_a_gang_whose_pods_name_several_schedulers_is_not_valid_and_was_not_admitted() -> None:
    pods = native.pods("train", 2, cpu=1)
    pods[0]["spec"]["schedulerName"], pods[1]["spec"]["schedulerName"] = "phalanx", "volcano"
    found = explained(NODE, native.group("train", min_count=2), pods)
    assert (stage(found, Stage.VALID).ok, stage(found, Stage.ADMITTED).ok) == (False, None)
    assert (stage(found, Stage.VALID).lines[0].code, texts(stage(found, Stage.VALID))[0]) == ("SeveralSchedulers", found.headline)


def test_a_part_that_is_held_back_does_not_make_a_gang_invalid() -> None:
    group, *pods = build.gang("train", tasks=3, min_member=2, cpu=1)
    pods[2]["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    found = stage(explained(NODE, group, pods), Stage.VALID)
    assert (found.ok, texts(found)[0]) == (True, "1 pod (train-2) is held back by the scheduling gate 'example.com/wait'")
