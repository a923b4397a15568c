"""What each action does, on clusters of a few nodes: who is admitted, who is placed where and in which order, who waits."""

from collections.abc import Iterable
from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.errors import ConfigError
from phalanx.session.cycle import run_cycle
from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

PLAIN = build.policy([["priority", "gang"], ["predicates", "nodeorder"]], "enqueue, allocate, backfill")
PACKED = build.policy([["priority", "gang"], ["predicates", "binpack"]], "enqueue, allocate, backfill")


def cluster(*parts: Document | Iterable[Document], policy: Policy = PLAIN) -> Cluster:
    return Cluster(policy).submit(*parts)


def priority_class(name: str, value: int) -> Document:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def gang_of(name: str, pods: Iterable[Document], *, min_member: int, **spec: Any) -> list[Document]:
    return [build.pod_group(name, min_member=min_member, **spec), *(build.in_group(name, pod) for pod in pods)]


def leaving(pod: Document) -> Document:
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


def events(cluster: Cluster, *words: str, level: int = 4) -> list[str]:
    """Return the trace of a cycle, as far as its texts hold one of these words."""
    decisions = run_cycle(cluster.objects.snapshot(0.0), cluster.policy, CATALOGUE, trace_level=level)
    return [event.text for event in decisions.trace if any(word in event.text for word in words)]


# --- enqueue -----------------------------------------------------------------------------------------------------------


def test_gangs_are_admitted_by_priority_then_age_then_name() -> None:
    gangs = [build.pod_group("b"), build.pod_group("a"), build.pod_group("old"), build.pod_group("high", priorityClassName="high")]
    for gang, second in zip(gangs, (1, 1, 0, 2), strict=True):
        gang["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{second}Z"
    found = events(cluster(build.node("n"), priority_class("high", 9), gangs), "is admitted")
    assert found == [f"gang default/{name} is admitted" for name in ("high", "old", "a", "b")]


def test_a_gang_that_is_refused_does_not_hold_up_the_next_one() -> None:
    policy = build.policy([["gang", "overcommit"]], "enqueue")
    big = build.pod_group("a-big", minResources={"cpu": 100})
    cycle = cluster(build.node("n", cpu=8), big, build.pod_group("b-small", minResources={"cpu": 4}), policy=policy).run_cycle()
    assert cycle.phase("a-big") == "Pending"
    assert cycle.phase("b-small") == "Inqueue"


def test_a_gang_without_minimum_resources_is_admitted_unasked() -> None:
    policy = build.policy([["gang", "overcommit"]], "enqueue")
    cycle = cluster(policy=policy).submit(build.pod_group("free")).run_cycle()
    assert cycle.phase("free") == "Inqueue"


def test_queues_take_turns_at_being_admitted() -> None:
    gangs = [build.pod_group(f"{queue}{number}", queue=queue) for queue in ("x", "y") for number in range(2)]
    found = events(cluster(build.queue("x"), build.queue("y"), gangs), "is admitted")
    assert found == [f"gang default/{name} is admitted" for name in ("x0", "x1", "y0", "y1")]


def test_without_the_enqueue_action_allocate_admits() -> None:
    policy = build.policy([["gang"], ["predicates"]], "allocate")
    cycle = cluster(build.node("n"), build.gang("train", tasks=1, cpu=1), policy=policy).run_cycle()
    assert cycle.binds == [("train-0", "n")]


def test_with_the_enqueue_action_allocate_leaves_pending_gangs_alone() -> None:
    policy = build.policy([["gang"], ["predicates"]], "allocate, enqueue")
    cycle = cluster(build.node("n"), build.gang("train", tasks=1, cpu=1), policy=policy).run_cycle()
    assert cycle.binds == []
    assert cycle.phase("train") == "Inqueue"


@pytest.mark.parametrize("action", ["enqueue", "allocate", "backfill"])
def test_an_action_refuses_settings_it_does_not_have(action: str) -> None:
    with pytest.raises(ConfigError, match="unknown setting"):
        CATALOGUE.actions[action]({"no such thing": 1})


# --- allocate ----------------------------------------------------------------------------------------------------------


def test_a_gang_gets_all_it_needs_or_nothing() -> None:
    three = build.cluster(nodes=3, policy=PLAIN, gpus=1).submit(build.gang("train", tasks=4, gpus=1))
    assert three.run_cycle().binds == []
    four = build.cluster(nodes=4, policy=PLAIN, gpus=1).submit(build.gang("train", tasks=4, gpus=1))
    assert four.run_cycle().binds == [(f"train-{number}", f"node-{number}") for number in range(4)]


def test_a_gang_that_waits_leaves_its_room_to_the_next_one() -> None:
    cycle = cluster(build.node("n", cpu=2), build.gang("a", tasks=3, cpu=1), build.gang("b", tasks=2, cpu=1)).run_cycle()
    assert cycle.binds == [("b-0", "n"), ("b-1", "n")]
    assert cycle.status("a-0") == "Pending"


def test_tasks_beyond_the_minimum_are_placed_one_by_one_in_turn_with_other_gangs() -> None:
    policy = build.policy([["gang", "drf"], ["predicates"]], "allocate")
    found = events(
        cluster(
            build.node("n", cpu=8), build.gang("a", tasks=4, min_member=2, cpu=1), build.gang("b", tasks=4, min_member=2, cpu=1),
            policy=policy,
        ),
        "allocated task",
    )  # fmt: skip
    order = [text.split()[2].removeprefix("default/") for text in found]
    assert order == ["a-0", "a-1", "b-0", "b-1", "a-2", "b-2", "a-3", "b-3"]


def test_a_gang_with_its_minimum_starts_although_the_rest_does_not_fit() -> None:
    cycle = cluster(build.node("n", cpu=3), build.gang("train", tasks=5, min_member=2, cpu=1)).run_cycle()
    assert [name for name, _ in cycle.binds] == ["train-0", "train-1", "train-2"]
    assert cycle.why("train")


def test_a_nominated_node_is_taken_before_better_ones() -> None:
    nodes = [build.node("n0", cpu=8), build.node("n1", cpu=2)]
    pods = build.gang("train", tasks=1, cpu=1)
    assert cluster(nodes, pods).run_cycle().binds == [("train-0", "n0")]
    pods[1]["status"]["nominatedNodeName"] = "n1"
    assert cluster(nodes, pods).run_cycle().binds == [("train-0", "n1")]


def test_a_nominated_node_without_room_is_ignored() -> None:
    pods = build.gang("train", tasks=1, cpu=4)
    for nominated in ("n1", "gone"):
        pods[1]["status"]["nominatedNodeName"] = nominated
        assert cluster(build.node("n0"), build.node("n1", cpu=2), pods).run_cycle().binds == [("train-0", "n0")]


def test_a_gang_is_pipelined_onto_the_room_of_pods_that_leave() -> None:
    old = leaving(build.pod("old", on="n", cpu=4))
    cycle = cluster(build.node("n", cpu=4), old, build.gang("train", tasks=2, cpu=2)).run_cycle()
    assert cycle.binds == []
    assert cycle.pipelined == [("train-0", "n"), ("train-1", "n")]


def test_room_for_pipelined_tasks_is_not_given_to_the_next_gang() -> None:
    old = leaving(build.pod("old", on="n", cpu=4))
    cycle = cluster(build.node("n", cpu=5), old, build.gang("a", tasks=2, cpu=2), build.gang("b", tasks=1, cpu=1)).run_cycle()
    assert cycle.pipelined == [("a-0", "n"), ("a-1", "n")]
    assert cycle.binds == [("b-0", "n")]
    again = cluster(build.node("n", cpu=4), old, build.gang("a", tasks=2, cpu=2), build.gang("b", tasks=1, cpu=1)).run_cycle()
    assert again.pipelined == [("a-0", "n"), ("a-1", "n")]


def test_part_of_a_gang_may_have_room_now_and_the_rest_be_pipelined() -> None:
    old = leaving(build.pod("old", on="n0", cpu=8))
    cycle = cluster(build.node("n0"), build.node("n1", cpu=2), old, build.gang("train", tasks=2, cpu=2)).run_cycle()
    assert cycle.binds == []
    assert cycle.pipelined == [("train-1", "n0")]
    assert cycle.status("train-0") == "Allocated"


def two_roles(**spec: Any) -> list[Document]:
    pods = [build.in_group("g", build.pod(f"g-{number}", spec=_needs("gpu" if number < 2 else "any")), role="ab"[number // 2])
            for number in range(4)]  # fmt: skip
    return [build.pod_group("g", **spec), *pods]


def _needs(kind: str) -> Document:
    selector = {"kind": "gpu"} if kind == "gpu" else {}
    return {"nodeSelector": selector, "containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]}


def test_a_role_that_failed_once_is_skipped_and_says_so() -> None:
    cycle = cluster(build.node("n"), two_roles(min_member=2)).run_cycle()
    assert [name for name, _ in cycle.binds] == ["g-2", "g-3"]
    found = events(cluster(build.node("n"), two_roles(min_member=2)), "already predicated failed", level=5)
    assert found == ["Task g-1 with role spec a has already predicated failed, skip"]


def test_a_gang_stops_at_a_role_whose_minimum_cannot_be_met() -> None:
    cycle = cluster(build.node("n"), two_roles(min_member=3, minTaskMember={"a": 1, "b": 1})).run_cycle()
    assert cycle.binds == []
    assert cycle.status("g-2") == "Pending"


def mixed_role() -> list[Document]:
    """A role whose first task may go to one node only, and whose second may go anywhere."""
    first = build.pod("w-0", spec={"nodeSelector": {"zone": "east"}, "containers": [{"resources": {"requests": {"cpu": 4}}}]})
    second = build.pod("w-1", cpu=4)
    pods = [build.in_group("g", pod, role="worker") for pod in (first, second)]
    return [build.pod_group("g", min_member=2), *pods]


def test_a_node_that_refused_a_task_of_a_role_is_not_asked_for_the_next_one() -> None:
    nodes = [build.node("n0", labels={"zone": "east"}, cpu=4), build.node("n1", labels={"zone": "west"}, cpu=4)]
    assert cluster(nodes, mixed_role()).run_cycle().binds == []


def test_the_node_that_took_a_task_of_a_role_did_not_refuse_it() -> None:
    first, second = build.pod("g-w-0", gpus=1, cpu=1), build.pod("g-w-1", cpu=1)
    pods = [build.in_group("g", pod, role="worker") for pod in (first, second)]
    cycle = cluster(build.node("n", gpus=1), build.pod_group("g", min_member=2), pods).run_cycle()
    assert cycle.binds == [("g-w-0", "n"), ("g-w-1", "n")]


def test_tasks_that_differ_are_asked_everywhere_without_roles() -> None:
    nodes = [build.node("n0", labels={"zone": "east"}, cpu=4), build.node("n1", labels={"zone": "west"}, cpu=4)]
    documents = mixed_role()
    for document in documents[1:]:
        document["metadata"]["annotations"].pop("volcano.sh/task-spec")
    assert cluster(nodes, documents).run_cycle().binds == [("w-0", "n0"), ("w-1", "n1")]


def test_a_queue_that_has_all_it_deserves_is_passed_over() -> None:
    policy = build.policy([["gang"], ["predicates", "proportion"]], "allocate")
    gangs = [build.gang(name, tasks=4, min_member=1, queue=queue, cpu=1) for name, queue in (("x", "a"), ("y", "b"))]
    found = cluster(build.node("n", cpu=4, pods=4), build.queue("a"), build.queue("b"), *gangs, policy=policy)
    cycle = found.run_cycle()
    assert sorted(name for name, _ in cycle.binds) == ["x-0", "x-1", "y-0", "y-1"]
    assert events(found, "overused") == [
        f"queue {name} is overused, ignore it (proportion: queue {name} has all it deserves (2 of 2 cpu))" for name in "ab"
    ]


def test_gated_tasks_wait() -> None:
    documents = build.gang("train", tasks=2, min_member=1, cpu=1)
    documents[1]["spec"]["schedulingGates"] = [{"name": "wait"}]
    cycle = cluster(build.node("n"), documents).run_cycle()
    assert cycle.binds == [("train-1", "n")]
    assert cycle.status("train-0") == "Gated"


def shard(*nodes: str) -> Document:
    return {
        "apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard", "metadata": {"name": "mine"},
        "spec": {"nodesDesired": list(nodes)},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "binds"),
    [("hard", []), ("soft", [("train-0", "n0"), ("train-1", "n1")]), ("none", [("train-0", "n1"), ("train-1", "n0")])],
)
def test_shards_bind_or_lead(mode: str, binds: list[tuple[str, str]]) -> None:
    flags = {"shardingMode": mode, "shardName": "mine"}
    policy = build.policy([["gang"], ["predicates", "nodeorder"]], "allocate", flags=flags)
    nodes = [build.node("n0", cpu=4), build.node("n1", cpu=5)]
    assert cluster(nodes, shard("n0"), build.gang("train", tasks=2, cpu=3), policy=policy).run_cycle().binds == binds


def test_a_node_outside_a_hard_shard_says_so() -> None:
    policy = build.policy([["gang"], ["predicates"]], "allocate", flags={"shardingMode": "hard", "shardName": "mine"})
    found = cluster(build.node("n0"), shard(), build.gang("train", tasks=1, cpu=1), policy=policy)
    reason = "task default/train-0: 0/1 nodes are unavailable: 1 node(s) are not in the shard of this scheduler."
    nothing = f"gang default/train gets nothing: 0 of 1 tasks have a node; {reason}"
    assert events(found, "nodes are unavailable") == [reason, nothing]


def test_best_effort_members_count_as_ready_and_are_left_to_backfill() -> None:
    documents = [*build.gang("train", tasks=1, cpu=1), build.pod("train-free", group="train")]
    documents[0]["spec"]["minMember"] = 2
    only_allocate = build.policy([["gang"], ["predicates"]], "allocate")
    assert cluster(build.node("n"), documents, policy=only_allocate).run_cycle().binds == [("train-0", "n")]
    assert cluster(build.node("n"), documents).run_cycle().binds == [("train-0", "n"), ("train-free", "n")]


# --- network domains ---------------------------------------------------------------------------------------------------

TOPOLOGY = build.policy([["gang"], ["predicates", "binpack", "network-topology-aware"]], "allocate")


def racks(*cpus: int) -> list[Document]:
    """Return racks of two nodes with so much cpu each, under one spine."""
    nodes = [build.node(f"r{rack}-{place}", cpu=cpu) for rack, cpu in enumerate(cpus) for place in range(2)]
    leaves = [build.hypernode(f"rack{rack}", tier=1, members=[f"r{rack}-0", f"r{rack}-1"]) for rack in range(len(cpus))]
    spine = build.hypernode("spine", tier=2, members=[f"rack{rack}" for rack in range(len(cpus))], of="HyperNode")
    return [*nodes, *leaves, spine]


def close_gang(tier: int, **asks: int) -> list[Document]:
    documents = build.gang("train", tasks=4, **asks)  # type: ignore[arg-type]  # asks are resources
    documents[0]["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    return documents


def racks_of(binds: list[tuple[str, str]]) -> set[str]:
    return {node[:2] for _, node in binds}


def test_a_gang_that_must_be_close_gets_one_rack_or_nothing() -> None:
    assert racks_of(cluster(racks(2, 4), close_gang(1, cpu=2), policy=TOPOLOGY).run_cycle().binds) == {"r1"}
    assert cluster(racks(2, 2), close_gang(1, cpu=2), policy=TOPOLOGY).run_cycle().binds == []


def test_a_gang_that_may_be_wide_takes_several_racks_when_it_has_to() -> None:
    binds = cluster(racks(2, 2), close_gang(2, cpu=2), policy=TOPOLOGY).run_cycle().binds
    assert racks_of(binds) == {"r0", "r1"}
    assert racks_of(cluster(racks(2, 4), close_gang(2, cpu=2), policy=TOPOLOGY).run_cycle().binds) == {"r1"}


def test_a_fuller_rack_is_preferred() -> None:
    running = build.pod("old", on="r1-0", cpu=1)
    binds = cluster(racks(4, 4, 4), running, close_gang(1, cpu=1), policy=TOPOLOGY).run_cycle().binds
    assert racks_of(binds) == {"r1"}


def test_a_gang_that_runs_in_a_rack_stays_there() -> None:
    documents = close_gang(1, cpu=1)
    documents[0]["spec"]["minMember"] = 2
    documents[1]["spec"]["nodeName"], documents[1]["status"] = "r1-0", {"phase": "Running"}
    binds = cluster(racks(4, 4), documents, policy=TOPOLOGY).run_cycle().binds
    assert racks_of(binds) == {"r1"}
    assert len(binds) == 3


def test_each_sub_group_is_close_for_itself() -> None:
    documents = build.gang("train", tasks=4, cpu=2)
    documents[0]["spec"]["subGroupPolicy"] = [
        {
            "name": "ring",
            "subGroupSize": 2,
            "minSubGroups": 2,
            "matchLabelKeys": ["ring"],
            "networkTopology": {"highestTierAllowed": 1},
        }
    ]
    for number, document in enumerate(documents[1:]):
        document["metadata"]["labels"] = {"ring": str(number % 2)}
    binds = dict(cluster(racks(2, 2), documents, policy=TOPOLOGY).run_cycle().binds)
    assert len(binds) == 4
    for ring in ((0, 2), (1, 3)):
        assert len({binds[f"train-{number}"][:2] for number in ring}) == 1


def test_a_gang_whose_sub_groups_do_not_all_fit_gets_nothing() -> None:
    documents = build.gang("train", tasks=4, cpu=2)
    documents[0]["spec"]["subGroupPolicy"] = [{"name": "ring", "subGroupSize": 2, "minSubGroups": 2, "matchLabelKeys": ["ring"]}]
    for number, document in enumerate(documents[1:]):
        document["metadata"]["labels"] = {"ring": str(number % 2)}
    assert cluster(build.node("n", cpu=6), documents, policy=TOPOLOGY).run_cycle().binds == []


# --- backfill ----------------------------------------------------------------------------------------------------------


def test_tasks_that_ask_for_nothing_go_where_scores_say_even_to_full_nodes() -> None:
    full = build.pod("full", on="n", cpu=8, memory="32Gi")
    cycle = cluster(build.node("n"), full, build.gang("free", tasks=2)).run_cycle()
    assert cycle.binds == [("free-0", "n"), ("free-1", "n")]


def test_backfill_obeys_the_filters_and_says_why_not() -> None:
    found = cluster(build.node("n", spec={"unschedulable": True}), build.gang("free", tasks=1))
    cycle = found.run_cycle()
    assert cycle.binds == []
    assert cycle.why("free")


def test_a_task_without_requests_is_bound_only_with_its_gang() -> None:
    documents = [*build.gang("train", tasks=1, cpu=100), build.pod("train-free", group="train")]
    documents[0]["spec"]["minMember"] = 2
    cycle = cluster(build.node("n"), documents).run_cycle()
    assert cycle.binds == []
    assert cycle.status("train-free") in ("Pending", "Allocated")


def test_backfill_places_tasks_without_requests_that_were_only_pipelined() -> None:
    policy = build.policy([["priority", "gang"], ["predicates"]], "allocate, preempt, backfill")
    documents = gang_of("free", [build.pod(f"free-{number}") for number in range(2)], min_member=2, phase="Inqueue")
    cycle = cluster(build.node("n"), documents, policy=policy).run_cycle()
    assert cycle.binds == [("free-0", "n"), ("free-1", "n")]


# --- evicting actions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_nobody_is_evicted_for_tasks_that_ask_for_nothing(action: str) -> None:
    policy = build.policy([["priority", "gang"], ["predicates", "proportion"]], f"allocate, {action}")
    high = gang_of("high", [build.pod(f"high-{number}") for number in range(2)], min_member=2, phase="Inqueue", queue="b",
                   priorityClassName="high")  # fmt: skip
    low = gang_of("low", [build.pod("low-0", on="n", cpu=1)], min_member=0, phase="Running", queue="b" if "pre" in action else "a",
                  priorityClassName="low")  # fmt: skip
    classes = [priority_class("high", 9), priority_class("low", 1)]
    found = cluster(build.node("n"), build.queue("a"), build.queue("b"), classes, high, low, policy=policy).run_cycle()
    assert found.answer["evictions"] == {}
