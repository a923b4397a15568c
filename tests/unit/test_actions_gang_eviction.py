"""The gang-aware evicting actions: settings, domains, bundles, and who is left alone."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from phalanx.actions.gang_eviction import GangPreemptAction, GangReclaimAction
from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.errors import ConfigError
from phalanx.model.task import GangKey
from phalanx.session.cycle import run_cycle
from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import crowded_clusters as crowds

FEWEST = policy_of_profile("phalanx")
FIRST = ("priority", "gang", "conformance")
SECOND = ("predicates", "capacity", "nodeorder", "network-topology-aware")
BUNDLES = build.policy([FIRST, SECOND], "allocate, gangpreempt, gangreclaim")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"victims": "few"}, "action 'gangpreempt', argument 'victims': 'few' is unknown; write 'bundles' or 'fewest'"),
        ({"victim": "fewest"}, "did you mean 'victims'?"),
        ({"maxDomains": "many"}, "'maxDomains'"),
        ({"allowWholeBundle": "perhaps"}, "'allowWholeBundle'"),
    ],
)
def test_a_wrong_setting_is_named(arguments: Mapping[str, object], text: str) -> None:
    with pytest.raises(ConfigError) as problem:
        GangPreemptAction(arguments)
    assert text in str(problem.value)


def test_bundles_are_the_default() -> None:
    assert GangReclaimAction({}).victims == "bundles"


def running(name: str, places: list[str], *, minimum: int = 1, cpu: int = 4, queue: str = "blue") -> list[Document]:
    group = build.pod_group(name, min_member=minimum, phase="Running", queue=queue)
    return [group, *(build.pod(f"{name}-{n}", group=name, on=place, cpu=cpu) for n, place in enumerate(places))]


def urgent(tasks: int, *, queue: str = "blue", cpu: int = 4, **spec: object) -> list[Document]:
    gang = build.gang("urgent", tasks=tasks, queue=queue, cpu=cpu)
    gang[0]["spec"].update({"priorityClassName": "high", **spec})
    gang[0]["status"]["phase"] = "Inqueue"
    return gang


def cluster_of(nodes: int, policy: Policy, *queues: Document) -> Cluster:
    cluster = build.cluster(nodes=nodes, policy=policy, cpu=4).submit(crowds.classes())
    return cluster.submit(queues or [build.queue("blue")])


def test_a_calm_gang_takes_free_room_but_asks_nobody_to_go() -> None:
    cluster = cluster_of(3, FEWEST).submit(running("meek", ["node-0", "node-1"], minimum=2), urgent(2))
    snapshot, catalogue = cluster.objects.snapshot(0.0), catalogue_of(FEWEST.catalogue)
    calm = replace(snapshot, calm=frozenset({GangKey("default/urgent")}))
    assert run_cycle(snapshot, FEWEST, catalogue).evictions
    assert not run_cycle(calm, FEWEST, catalogue).evictions
    free = replace(cluster.remove("Pod", "meek-0").objects.snapshot(0.0), calm=calm.calm)
    assert len(run_cycle(free, FEWEST, catalogue).binds) == 2


def evicted(cluster: Cluster) -> dict[str, str]:
    evictions = cluster.run_cycle().answer["evictions"]
    return {key.removeprefix("default/"): entry["message"] for key, entry in evictions.items()}


def test_bundles_take_what_gangs_can_spare_before_whole_gangs() -> None:
    cluster = cluster_of(2, BUNDLES).submit(
        running("two", ["node-0"]), running("one", ["node-1", "node-1"], cpu=2), urgent(1, cpu=2)
    )
    assert evicted(cluster) == {
        "one-0": "preempted by gang default/urgent (priority 10 over 0); its gang keeps its minimum; "
        "let go by priority, gang, conformance; number 1 of 3 bundles in the order of victims"
    }


def test_bundles_between_queues_say_whose_turn_it_is() -> None:
    cluster = cluster_of(1, BUNDLES, build.queue("blue"), build.queue("green", deserved={"cpu": 4}))
    cluster.submit(running("old", ["node-0"]), urgent(1, queue="green"))
    assert evicted(cluster) == {
        "old-0": "reclaimed from queue blue for gang default/urgent of queue green; its whole gang goes; "
        "let go by priority, gang, conformance; number 1 of 1 bundles in the order of victims"
    }


@pytest.mark.parametrize("policy", [FEWEST, BUNDLES])
def test_a_gang_that_must_stay_together_clears_one_domain_only(policy: Policy) -> None:
    cluster = cluster_of(4, policy)
    cluster.submit(build.hypernode(f"s{n}", tier=1, members=[f"node-{2 * n}", f"node-{2 * n + 1}"]) for n in range(2))
    cluster.submit(build.hypernode("top", tier=2, members=["s0", "s1"], of="HyperNode"))
    cluster.submit(running("one", ["node-0"]), running("two", ["node-2"]), running("kept", ["node-3"]))
    cluster.submit(urgent(2, networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    assert list(evicted(cluster)) == ["one-0"]


def racks_of_two() -> Cluster:
    cluster = cluster_of(4, FEWEST)
    cluster.submit(build.hypernode(f"s{n}", tier=1, members=[f"node-{2 * n}", f"node-{2 * n + 1}"]) for n in range(2))
    return cluster.submit(build.hypernode("top", tier=2, members=["s0", "s1"], of="HyperNode"))


def head_and_ring(ring: int) -> list[Document]:
    """A head that may be anywhere, and a ring that must stay in one rack."""
    policy = {"name": "ring", "subGroupSize": ring, "matchLabelKeys": ["ring"], "networkTopology": {"highestTierAllowed": 1}}
    gang = [*urgent(ring, cpu=3, subGroupPolicy=[policy]), build.pod("urgent-head", group="urgent", cpu=1)]
    gang[0]["spec"]["minMember"] = ring + 1
    for pod in gang[1:-1]:
        pod["metadata"]["labels"]["ring"] = "a"
    return gang


def test_a_sub_group_that_must_stay_in_a_tier_is_not_placed_across_it_beside_other_pods() -> None:
    found = racks_of_two().submit(running("old", ["node-0"]), head_and_ring(3)).run_cycle()
    assert (found.binds, list(found.decisions.evictions)) == ([], [])


def test_room_for_a_sub_group_is_made_in_one_domain_of_its_tier() -> None:
    cluster = racks_of_two().submit(running("one", ["node-0"]), running("two", ["node-2"]), running("kept", ["node-3"]))
    assert list(evicted(cluster.submit(head_and_ring(2)))) == ["one-0"]


def test_a_gang_whose_pods_must_not_preempt_waits() -> None:
    gang = urgent(1)
    gang[1]["spec"]["preemptionPolicy"] = "Never"
    assert evicted(cluster_of(1, FEWEST).submit(running("old", ["node-0"]), gang)) == {}


def test_a_gang_of_roles_gets_the_roles_it_needs() -> None:
    gang = [
        build.pod_group("urgent", min_member=2, queue="blue", priorityClassName="high", minTaskMember={"chief": 1, "worker": 1})
    ]
    gang += [build.in_group("urgent", build.pod(f"urgent-{n}", cpu=4), role="worker") for n in range(2)]
    gang.append(build.in_group("urgent", build.pod("urgent-9", cpu=4), role="chief"))
    cycle = cluster_of(2, FEWEST).submit(running("old", ["node-0", "node-1"]), gang).run_cycle()
    assert "urgent-9" in dict(cycle.pipelined)
    assert len(cycle.pipelined) == len(cycle.decisions.evictions) == 2


def test_a_gang_of_roles_starts_on_free_room_that_other_members_of_it_could_not_use() -> None:
    gang = [build.pod_group("new", min_member=2, queue="blue", minTaskMember={"chief": 0, "worker": 1})]
    gang += [build.in_group("new", build.pod(f"new-{n}", cpu=4), role="chief") for n in range(3)]
    gang.append(build.in_group("new", build.pod("new-9", cpu=4), role="worker"))
    cycle = cluster_of(2, FEWEST).submit(gang).run_cycle()
    assert "new-9" in dict(cycle.binds)
    assert (len(cycle.binds), cycle.decisions.evictions) == (2, {})


def test_a_queue_that_deserves_no_more_takes_nothing_from_others() -> None:
    queues = build.queue("blue", deserved={"cpu": 1}), build.queue("green", deserved={"cpu": 2})
    assert evicted(cluster_of(1, FEWEST, *queues).submit(running("old", ["node-0"]), urgent(1, queue="green"))) == {}


def test_a_queue_that_is_not_to_be_reclaimed_keeps_all() -> None:
    queues = build.queue("blue", reclaimable=False), build.queue("green", deserved={"cpu": 4})
    assert evicted(cluster_of(1, FEWEST, *queues).submit(running("old", ["node-0"]), urgent(1, queue="green"))) == {}


@pytest.mark.parametrize(
    "broken",
    [
        [build.queue("lost", parent="nowhere")],
        [build.queue("lost"), build.queue("below", parent="lost")],
        [build.queue("lost", parent="found"), build.queue("found", parent="lost")],
    ],
    ids=["no parent", "not a leaf", "circle"],
)
def test_a_gang_of_a_wrong_queue_is_refused_alone(broken: list[Document]) -> None:
    cluster = cluster_of(2, FEWEST, build.queue("blue"), build.queue("green", deserved={"cpu": 8}), *broken)
    cluster.submit(running("old", ["node-0", "node-1"]), urgent(2, queue="green"), build.gang("stray", queue="lost", cpu=1))
    cycle = cluster.run_cycle()
    assert sorted(cycle.decisions.evictions) == ["default/old-0", "default/old-1"]
    assert [task for task, _ in cycle.pipelined] == ["urgent-0", "urgent-1"]
    assert "queue lost" in cycle.why("stray")


@pytest.mark.parametrize(("rule", "victims"), [("first-tier", ["default/old-0"]), ("all-agree", [])])
def test_an_empty_answer_of_a_tier_protects_when_all_must_agree(rule: str, victims: list[str]) -> None:
    tiers = [("conformance",), ("priority", "gang"), ("predicates", "nodeorder")]
    fewest = [{"name": "gangpreempt", "arguments": {"victims": "fewest"}}]
    policy = build.policy(tiers, "allocate, gangpreempt", victimRule=rule, configurations=fewest)
    gang = running("old", ["node-0"])
    gang[1]["spec"]["priorityClassName"] = "system-node-critical"
    cycle = cluster_of(1, policy).submit(gang, urgent(1)).run_cycle()
    assert sorted(cycle.decisions.evictions) == victims


def lenders() -> list[Document]:
    """A queue that deserves 4 of the 8 cores it has, in gangs that can spare a task each."""
    return [*running("one", ["node-0", "node-0"], cpu=2, queue="rich"), *running("two", ["node-1", "node-1"], cpu=2, queue="rich")]


def test_bundles_of_one_queue_together_leave_it_what_it_deserves() -> None:
    queues = [build.queue("rich", deserved={"cpu": 6}), build.queue("poor", deserved={"cpu": 4})]
    policy = build.policy([["gang", "capacity"], ["predicates", "nodeorder"]], "allocate, gangreclaim")
    assert evicted(cluster_of(2, policy, *queues).submit(lenders(), urgent(1, queue="poor", cpu=2))).keys() == {"one-0"}
    assert evicted(cluster_of(2, policy, *queues).submit(lenders(), urgent(2, queue="poor", cpu=2))) == {}


def test_nothing_is_reclaimed_for_a_gang_that_is_more_than_its_queue_deserves() -> None:
    queues = [build.queue("rich", deserved={"cpu": 1}), build.queue("poor", deserved={"cpu": 3})]
    assert evicted(cluster_of(2, BUNDLES, *queues).submit(lenders(), urgent(2, queue="poor", cpu=2))) == {}


def test_nothing_is_evicted_for_a_gang_that_its_queue_has_no_room_for() -> None:
    queues = [build.queue("blue", capability={"cpu": 5})]
    there = [running("meek", ["node-0"], cpu=4), running("other", ["node-1"], cpu=1)]
    assert evicted(cluster_of(2, BUNDLES, *queues).submit(*there, urgent(2, cpu=3))) == {}


def test_nothing_is_searched_for_members_that_cannot_make_their_sub_group_whole() -> None:
    parts = [{"name": "workers", "minMember": 3}]
    meta = {"namespace": "default", "name": "urgent"}
    spec = {"minMember": 3, "queue": "blue", "priorityClassName": "high", "subGroups": parts}
    gang: list[Document] = [{"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": meta, "spec": spec}]
    for number, cpu in enumerate((2, 3, 4)):
        pod = build.pod(f"urgent-{number}", cpu=cpu)
        pod["metadata"]["annotations"] = {"pod-group-name": "urgent"}
        pod["metadata"]["labels"] = {"kai.scheduler/subgroup-name": "workers"}
        gang.append(pod)
    gang[-1]["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    cluster = cluster_of(2, FEWEST).submit(running("old", ["node-0", "node-1"]), gang)
    assert evicted(cluster) == {}
