"""Scores, by hand: each of nodeorder's, binpack, resource-strategy-fit, the network, and one worked example step by step."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.errors import ConfigError
from phalanx.session.cycle import open_session
from phalanx.session.session import Session
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support.open_sessions import gang_in

OFF = {f"{name}.weight": 0 for name in (
    "leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "podaffinity", "tainttoleration", "imagelocality",
    "podtopologyspread",
)}  # fmt: skip


def session_of(plugins: Iterable[str | Mapping[str, Any]], *parts: Document | Iterable[Document]) -> Session:
    policy = build.policy([plugins], "allocate")
    return open_session(Cluster(policy).submit(*parts).objects.snapshot(0.0), policy, CATALOGUE)


def scores(session: Session) -> list[float]:
    """Return the total score of each node for the first waiting task, all nodes being candidates."""
    task = next(task for task in gang_in(session).tasks if not task.task.node)
    found = session.node_view(task.task.shape).scores(np.ones(len(session.snapshot.nodes), dtype=np.bool_))
    assert found is not None
    return [float(score) for score in found]


def only(name: str, weight: int = 1) -> list[str | Mapping[str, Any]]:
    """Return predicates and nodeorder with one score."""
    return ["predicates", {"name": "nodeorder", "arguments": {**OFF, f"{name}.weight": weight}}]


GI = 1 << 30


def example() -> list[Document]:
    """The cluster of the worked example: three nodes, four running pods, one that waits."""
    image = [{"names": ["reg/train:v1"], "sizeBytes": 900000000}]
    nodes = [
        build.node("n0", labels={"zone": "a", "disk": "ssd"}, cpu=8, memory="32Gi"),
        build.node("n1", labels={"zone": "b", "disk": "hdd"}, cpu=16, memory="32Gi",
                   spec={"taints": [{"key": "noisy", "effect": "PreferNoSchedule"}]}),
        build.node("n2", labels={"zone": "a", "disk": "ssd"}, cpu=8, memory="16Gi"),
    ]  # fmt: skip
    for node in nodes[:2]:
        node["status"]["images"] = image
    running = [
        build.pod("e0", on="n0", cpu=2, memory="4Gi"), build.pod("e1", on="n1", cpu=3, memory="2Gi"), build.pod("e2", on="n2"),
        build.pod("e3", on="n2", cpu="500m", memory="1Gi"),
    ]  # fmt: skip
    for pod, app in zip(running, ("web", "web", "db", "web"), strict=True):
        pod["metadata"]["labels"] = {"app": app}
    return [*nodes, *running, build.pod_group("train"), waiting()]


def waiting() -> Document:
    def near(app: str, key: str, weight: int) -> Document:
        return {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}}

    def on(key: str, value: str, weight: int) -> Document:
        return {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}}

    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    spec = {
        "containers": [{"name": "main", "image": "reg/train:v1", "resources": {"requests": {"cpu": 2, "memory": "2Gi"}}}],
        "affinity": {
            "nodeAffinity": {preferred: [on("disk", "ssd", 30), on("zone", "b", 10)]},
            "podAffinity": {preferred: [near("db", "kubernetes.io/hostname", 50), near("web", "zone", 20)]},
        },
        "topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {"app": "web"}}}],
    }
    pod = build.pod("train-0", group="train", spec=spec)
    pod["metadata"]["labels"] = {"app": "web"}
    return pod


@pytest.mark.parametrize(
    ("name", "weight", "expected"),
    [
        ("leastrequested", 1, [65, 77, 73]), ("balancedresource", 1, [70, 73, 71]), ("nodeaffinity", 2, [200, 66, 200]),
        ("tainttoleration", 3, [300, 0, 300]), ("podaffinity", 2, [56, 0, 200]), ("podtopologyspread", 2, [66, 200, 66]),
        ("imagelocality", 1, [26, 56, 0]),
    ],
)  # fmt: skip
def test_the_worked_example_score_by_score(name: str, weight: int, expected: list[float]) -> None:
    assert scores(session_of(only(name, weight), example())) == expected


def test_the_worked_example_binpack() -> None:
    assert scores(session_of(["predicates", "binpack"], example())) == [34.375, 21.875, 25.0]


def test_the_worked_example_in_total() -> None:
    session = session_of(["predicates", "nodeorder", "binpack"], example())
    assert scores(session) == [817.375, 493.875, 935.0]
    policy = build.policy([["gang", "predicates", "nodeorder", "binpack"]], "allocate")
    assert Cluster(policy).submit(example()).run_cycle().binds == [("train-0", "n2")]


def test_the_emptier_node_leads_by_least_and_the_fuller_one_by_most_requested() -> None:
    parts = [build.node("n0"), build.node("n1"), build.pod("old", on="n0", cpu=4), *build.gang("train", tasks=1, cpu=1)]
    least, most = scores(session_of(only("leastrequested"), *parts)), scores(session_of(only("mostrequested"), *parts))
    assert least[1] > least[0]
    assert most[0] > most[1]


def test_containers_without_requests_count_a_little_in_least_requested() -> None:
    parts = [build.node("n", cpu=1, memory=1000 << 20), build.node("m", cpu=1, memory=1000 << 20)]
    documents = build.gang("train", tasks=1)
    # 100 of 1000 milli and 200 of 1000 Mi: 90 and 80.
    assert scores(session_of(only("leastrequested"), parts, documents)) == [85, 85]


def test_balance_is_left_out_for_a_task_that_asks_for_none_of_its_resources() -> None:
    parts = [build.node("n0"), build.node("n1"), build.pod("old", on="n0", cpu=4)]
    assert scores(session_of(only("balancedresource"), parts, build.gang("train", tasks=1))) == [0, 0]


def test_gpus_take_part_in_balance_only_when_asked_for() -> None:
    nodes = [build.node("n0", gpus=4), build.node("n1", gpus=4)]
    old = build.pod("old", on="n0", gpus=4)
    assert scores(session_of(only("balancedresource"), nodes, old, build.gang("train", tasks=1, cpu=1))) == [71, 71]
    with_gpu = scores(session_of(only("balancedresource"), nodes, old, build.gang("train", tasks=1, cpu=1, gpus=1)))
    assert with_gpu[0] != with_gpu[1]


def test_without_predicates_scores_see_the_state_at_the_opening() -> None:
    arguments = {**OFF, "leastrequested.weight": 1}
    for plugins, is_live in ((["predicates"], True), ([], False)):
        session = session_of(
            [*plugins, {"name": "nodeorder", "arguments": arguments}], build.node("n0"), build.node("n1"),
            build.gang("train", tasks=2, cpu=4),
        )  # fmt: skip
        before = scores(session)
        session.statement().allocate(gang_in(session).tasks[1:], [0])
        assert (scores(session) != before) is is_live


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [(0.5 + 0.25) / 2 * 100, (0.25 + 0.125) / 2 * 100]),
        ({"binpack.weight": 3}, [112.5, 56.25]),
        ({"binpack.cpu": 3}, [(3 * 0.5 + 0.25) / 4 * 100, (3 * 0.25 + 0.125) / 4 * 100]),
        ({"binpack.cpu": 0}, [25.0, 12.5]),
        ({"binpack.weight": 0}, [0.0, 0.0]),
        ({"binpack.resources": "nvidia.com/gpu", "binpack.resources.nvidia.com/gpu": 2}, [68.75, 34.375]),
        ({"binpack.resources": "*/*", "binpack.resources.*/*": 2}, [68.75, 34.375]),
        ({"binpack.resources": "amd.com/*"}, [37.5, 18.75]),
        ({"binpack.cpu": -5}, [37.5, 18.75]),
    ],
)
def test_binpack_weighs_how_full_a_node_would_be(arguments: dict[str, Any], expected: list[float]) -> None:
    nodes = [build.node("n0", cpu=8, memory="32Gi", gpus=1), build.node("n1", cpu=8, memory="32Gi", gpus=2)]
    old = build.pod("old", on="n0", cpu=2, memory="4Gi")
    documents = build.gang("train", tasks=1, cpu=2, memory="4Gi", gpus=1)
    assert scores(session_of([{"name": "binpack", "arguments": arguments}], nodes, old, documents)) == expected


def test_binpack_gives_nothing_to_a_node_that_would_overflow() -> None:
    nodes = [build.node("n0", cpu=8), build.node("n1", cpu=1)]
    assert scores(session_of(["binpack"], nodes, build.gang("train", tasks=1, cpu=2))) == [25.0, 0.0]


STRATEGY = {"resources": {"cpu": {"type": "MostAllocated", "weight": 3}, "nvidia.com/*": {"type": "LeastAllocated", "weight": 1}}}


def test_each_resource_has_its_strategy_by_name_or_pattern() -> None:
    nodes = [build.node("n0", cpu=8, gpus=4), build.node("n1", cpu=4, gpus=2)]
    plugin = {"name": "resource-strategy-fit", "arguments": STRATEGY}
    documents = build.gang("train", tasks=1, cpu=2, gpus=1, memory="1Gi")
    # cpu 2/8 and 2/4, GPUs 3/4 and 1/2 free; memory has no strategy. The default weight is 10.
    assert scores(session_of([plugin], nodes, documents)) == [(3 * 0.25 + 0.75) / 4 * 1000, (3 * 0.5 + 0.5) / 4 * 1000]


def own_strategy(kind: str, weights: str) -> list[Document]:
    documents = build.gang("train", tasks=1, cpu=2, memory="8Gi")
    documents[1]["metadata"]["annotations"] |= {
        "volcano.sh/resource-strategy-scoring-type": kind, "volcano.sh/resource-strategy-weight": weights,
    }  # fmt: skip
    return documents


@pytest.mark.parametrize(
    ("kind", "weights", "wanted"),
    [
        ("MostAllocated", '{"cpu": 3, "memory": 1}', [(3 * 0.25 + 0.25) / 4 * 1000, (3 * 0.5 + 0.25) / 4 * 1000]),
        ("MostAllocated", '{"cpu": 1}', [250.0, 500.0]),
        ("MostAllocated", '{"nvidia.com/gpu": 5}', [0.0, 0.0]),
        ("a wrong type is LeastAllocated", '{"cpu": 1}', [750.0, 500.0]),
        ("MostAllocated", "nonsense", [750.0, (0.5 + 0.75) / 2 * 1000]),
    ],
)
def test_a_pod_may_bring_its_own_strategy(kind: str, weights: str, wanted: list[float]) -> None:
    nodes = [build.node("n0", cpu=8), build.node("n1", cpu=4)]
    assert scores(session_of(["resource-strategy-fit"], nodes, own_strategy(kind, weights))) == wanted


def test_a_node_that_lacks_one_resource_scores_nothing_for_the_others() -> None:
    plugin = {"name": "resource-strategy-fit", "arguments": {"resources": {"cpu": {"type": "LeastAllocated"}, "memory": {}}}}
    nodes = [build.node("n0", cpu=8, memory="4Gi"), build.node("n1", cpu=8, memory="16Gi")]
    assert scores(session_of([plugin], nodes, build.gang("train", tasks=1, cpu=2, memory="8Gi"))) == [0.0, (0.75 + 0.5) / 2 * 1000]


@pytest.mark.parametrize("resources", [5, {"cpu": 5}, {"cpu": {"type": "Most"}}, {"cpu": {"type": "MostAllocated", "weight": "x"}}])
def test_a_wrong_strategy_is_refused_by_name(resources: object) -> None:
    with pytest.raises(ConfigError, match="plugin 'resource-strategy-fit', argument 'resources"):
        session_of([{"name": "resource-strategy-fit", "arguments": {"resources": resources}}], build.node("n"))


def test_nodes_with_scarce_resources_are_avoided_by_those_that_do_not_need_them() -> None:
    arguments = {"resources": {}, "sra": {"enable": True, "resources": "nvidia.com/gpu", "weight": 1}}
    nodes = [build.node("n0", gpus=1), build.node("n1")]
    plugin = {"name": "resource-strategy-fit", "arguments": arguments}
    assert scores(session_of([plugin], nodes, build.gang("train", tasks=1, cpu=1))) == [0.0, 100.0]
    assert scores(session_of([plugin], nodes, build.gang("train", tasks=1, gpus=1))) == [100.0, 100.0]


def proportional(**ratios: float) -> Mapping[str, Any]:
    named = {f"nvidia.com/gpu.{name}": ratio for name, ratio in ratios.items()}
    entry = {"enable": True, "resources": "nvidia.com/gpu", "resourceProportion": named}
    return {"name": "resource-strategy-fit", "arguments": {"proportional": entry}}


def room(plugin: Mapping[str, Any], nodes: list[Document], **asks: Any) -> list[int]:
    """Return how many tasks each node takes."""
    session = session_of([plugin], nodes, build.gang("train", tasks=1, **asks))
    view = session.node_view(gang_in(session).tasks[0].task.shape)
    return [view.room_in(np.arange(len(nodes)) == number) for number in range(len(nodes))]


def test_cpu_is_kept_free_beside_free_gpus() -> None:
    nodes = [build.node("n0", cpu=8, gpus=3), build.node("n1", cpu=8)]
    assert room(proportional(cpu=2, memory=0), nodes, cpu=3) == [0, 2]
    assert room(proportional(cpu=2, memory=0), nodes, cpu=1) == [2, 8]
    assert room(proportional(cpu=2, memory=0), nodes, cpu=3, gpus=1) == [2, 0]


def test_memory_beside_free_gpus_counts_in_gigabytes_and_a_ratio_left_out_is_one() -> None:
    nodes = [build.node("n0", cpu=100, memory=10 * 10**9, gpus=1)]
    assert room(proportional(cpu=0, memory=4), nodes, memory=2 * 10**9) == [3]
    assert room(proportional(cpu=0), nodes, memory=3 * 10**9) == [3]
    assert room(proportional(memory=0), nodes, cpu=33) == [3]


def test_a_node_whose_gpus_are_all_taken_gives_what_is_free_now_and_nothing_that_will_be() -> None:
    leaving = build.pod("old", on="n0", cpu=6, gpus=1)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    nodes = [build.node("n0", cpu=8, gpus=1), leaving]
    session = session_of([proportional()], nodes, build.gang("train", tasks=1, cpu=4))
    assert session.node_view(gang_in(session).tasks[0].task.shape).feasible.tolist() == [False]


# --- the network -------------------------------------------------------------------------------------------------------

NETWORK = [
    *(build.node(f"n{number}", cpu=8) for number in range(4)),
    build.hypernode("s0", tier=1, members=["n0", "n1"]), build.hypernode("s1", tier=1, members=["n2", "n3"]),
    build.hypernode("s2", tier=2, members=["s0", "s1"], of="HyperNode"),
]  # fmt: skip
TOPOLOGY = ["gang", "network-topology-aware"]


def gradients(session: Session) -> list[list[str]]:
    tree = session.snapshot.hypernodes
    return [[tree.names[number] for number in group] for group in session.hypernode_gradients(gang_in(session), tree.top)]


def hard(tier: int, **spec: Any) -> list[Document]:
    topology = {"mode": "hard", "highestTierAllowed": tier}
    return [build.pod_group("train", networkTopology=topology, **spec), build.pod("train-0", group="train", cpu=1)]


def test_narrow_domains_are_tried_before_wide_ones_and_none_beyond_the_allowed_tier() -> None:
    assert gradients(session_of(TOPOLOGY, NETWORK, hard(2))) == [["s0", "s1"], ["s2"]]
    assert gradients(session_of(TOPOLOGY, NETWORK, hard(1))) == [["s0", "s1"]]
    assert gradients(session_of(TOPOLOGY, NETWORK, build.gang("train", tasks=1, cpu=1))) == [["<cluster-top-hypernode>"]]


def test_domains_without_room_for_the_minimum_are_not_tried() -> None:
    old = build.pod("old", on="n0", cpu=8)
    assert gradients(session_of(TOPOLOGY, NETWORK, old, hard(2, minResources={"cpu": 12}))) == [["s1"], ["s2"]]
    assert gradients(session_of(TOPOLOGY, NETWORK, hard(2, minResources={"cpu": 100}))) == []


def test_a_gang_that_is_placed_stays_in_its_domain() -> None:
    running = build.pod("train-1", group="train", on="n2", cpu=1)
    assert gradients(session_of(TOPOLOGY, NETWORK, hard(1), running)) == [["s1"]]
    assert gradients(session_of(TOPOLOGY, NETWORK, hard(2), running)) == [["s0", "s1"], ["s2"]]


def test_the_fuller_domain_scores_higher_and_members_there_break_ties() -> None:
    old = build.pod("old", on="n0", cpu=7)
    session = session_of(TOPOLOGY, NETWORK, old, hard(2))
    (subgroup,) = gang_in(session).subgroups.values()
    found, bonus = session.hypernode_scores(subgroup, [0, 1])
    assert found.tolist() == [50.0, 6.25]
    assert bonus.tolist() == [0.0, 0.0]
    running = build.pod("train-1", group="train", on="n2", cpu=1)
    session = session_of(TOPOLOGY, NETWORK, hard(2), running)
    (subgroup,) = gang_in(session).subgroups.values()
    assert session.hypernode_scores(subgroup, [0, 1])[1].tolist() == [0.0, 50.0]


def test_nodes_near_the_members_score_higher() -> None:
    running = build.pod("train-1", group="train", on="n2", cpu=1)
    session = session_of(TOPOLOGY, NETWORK, hard(2), running)
    task = next(task for task in gang_in(session).tasks if not task.task.node)
    found = session.task_scores(task)
    assert found is not None
    assert found.tolist() == [50.0, 50.0, 150.0, 150.0]  # a tier below the top; the same HyperNode, and half of the members there


def test_members_nearby_count_only_among_several_candidates_that_are_the_closest() -> None:
    running = build.pod("train-1", group="train", on="n2", cpu=1)
    session = session_of(TOPOLOGY, NETWORK, hard(2), running)
    task = next(task for task in gang_in(session).tasks if not task.task.node)
    found = session.task_scores(task, np.array([True, True, True, False]))
    assert found is not None
    assert found[:3].tolist() == [50.0, 50.0, 100.0]


def test_places_that_are_found_and_given_back_are_followed() -> None:
    running = build.pod("train-1", group="train", on="n2", cpu=1)
    session = session_of(TOPOLOGY, NETWORK, hard(2), build.pod("train-2", group="train", cpu=1), running)
    first, second = (task for task in gang_in(session).tasks if not task.task.node)

    def scores() -> list[float]:
        found = session.task_scores(first)
        assert found is not None
        return [round(score) for score in found.tolist()]

    before = scores()
    statement = session.statement()
    statement.allocate([second], [3])
    during = scores()
    statement.discard()
    assert (before, during, scores()) == ([50, 50, 133, 133], [50, 50, 167, 167], before)


def test_candidates_of_one_leaf_are_not_scored() -> None:
    running = build.pod("train-1", group="train", on="n2", cpu=1)
    session = session_of(TOPOLOGY, NETWORK, hard(2), running)
    task = next(task for task in gang_in(session).tasks if not task.task.node)
    assert session.task_scores(task, np.array([True, True, False, False])) is None


def test_a_sub_group_without_a_constraint_is_steered_though_its_gang_has_one() -> None:
    group, pod = hard(2, subGroupPolicy=[{"name": "ring", "matchLabelKeys": ["ring"]}])
    pod["metadata"]["labels"] = {"ring": "0"}
    session = session_of(TOPOLOGY, NETWORK, build.pod("old", on="n0", cpu=7), [group, pod])
    found = session.task_scores(gang_in(session).tasks[0])
    assert found is not None
    assert found[0] == found[1] > found[2] == found[3]


def test_other_tasks_are_steered_to_fuller_domains_unless_that_is_off() -> None:
    old = build.pod("old", on="n0", cpu=7)
    session = session_of(TOPOLOGY, NETWORK, old, build.gang("train", tasks=1, cpu=1))
    found = session.task_scores(gang_in(session).tasks[0])
    assert found is not None
    assert found[0] == found[1] > found[2] == found[3]
    off = {"name": "network-topology-aware", "arguments": {"hypernode.binpack.normal-pod.enable": False}}
    session = session_of(["gang", off], NETWORK, build.gang("train", tasks=1, cpu=1))
    assert session.task_scores(gang_in(session).tasks[0]) is None


def test_the_profile_phalanx_keeps_whole_nodes_free_for_gangs_that_need_them() -> None:
    cluster = build.cluster(nodes=3, gpus=8, policy=policy_of_profile("phalanx"))
    cluster.submit(*(build.gang(f"small-{number}", tasks=1, cpu=1, gpus=1) for number in range(6)))
    assert len({node for _, node in cluster.run_cycle().binds}) == 1


def test_in_the_profile_phalanx_a_service_does_not_scatter_a_gang() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "train"}, "spec": {"selector": {"job": "train"}}}
    group, *pods = build.gang("train", tasks=4, cpu=1, gpus=1)
    for pod in pods:
        pod["metadata"]["labels"]["job"] = "train"
    used = {}
    for name in ("phalanx", "volcano"):
        cycle = build.cluster(nodes=4, gpus=8, policy=policy_of_profile(name)).submit(service, group, *pods).run_cycle()
        used[name] = len({node for _, node in cycle.binds})
    assert used == {"phalanx": 1, "volcano": 4}
