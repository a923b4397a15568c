"""Hard network constraints: what they forbid, what becomes of those that mean no tier, and what is said of those without effect."""

from typing import Any

import pytest

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.explain.no_effect import notes_without_effect
from phalanx.session.cycle import run_cycle
from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle, Document

PLUGIN = "network-topology-aware"
REFUSING = {"name": PLUGIN, "arguments": {"unresolvedTier": "refuse"}}


def policy_with(*plugins: str | dict[str, Any]) -> Policy:
    return build.policy([["gang"], ["predicates", "nodeorder", *plugins]], "allocate")


AS_VOLCANO, STRICT, WITHOUT = policy_with(PLUGIN), policy_with(REFUSING), policy_with()


def racks(*cpus: int) -> list[Document]:
    """Return racks of two nodes with so much cpu each, under one spine, and a node outside."""
    nodes = [build.node(f"r{rack}-{place}", cpu=cpu) for rack, cpu in enumerate(cpus) for place in range(2)]
    names = [f"rack{rack}" for rack in range(len(cpus))]
    leaves = [
        build.hypernode(name, tier=1, members=[f"r{rack}-0", f"r{rack}-1"], tier_name="leaf") for rack, name in enumerate(names)
    ]
    return [*nodes, *leaves, build.hypernode("spine", tier=2, members=names, of="HyperNode", tier_name="spine")]


def gang(topology: Document | None, *, tasks: int = 2, cpu: int = 2, **spec: Any) -> list[Document]:
    documents = build.gang("train", tasks=tasks, cpu=cpu)
    documents[0]["spec"].update(spec, **({} if topology is None else {"networkTopology": topology}))
    for pod in documents[1:]:
        pod["metadata"]["labels"] = {"ring": "0"}
    return documents


def cycle(*parts: Any, policy: Policy = AS_VOLCANO) -> Cycle:
    return Cluster(policy).submit(*parts).run_cycle()


def notes(*parts: Any, policy: Policy) -> list[str]:
    snapshot = Cluster(policy).submit(*parts).objects.snapshot(0.0)
    return list(notes_without_effect([(snapshot, run_cycle(snapshot, policy, catalogue_of(policy.catalogue)))]))


def running(pod: Document, node: str) -> None:
    pod["spec"]["nodeName"], pod["status"] = node, {"phase": "Running"}


# --- what a hard constraint forbids --------------------------------------------------------------------------------------


def test_a_gang_that_runs_outside_of_every_hypernode_cannot_grow_within_a_tier() -> None:
    documents = gang({"mode": "hard", "highestTierAllowed": 1}, tasks=2, cpu=1)
    running(documents[1], "outside")
    assert cycle(racks(4, 4), build.node("outside", cpu=1), documents).binds == []
    documents[0]["spec"]["networkTopology"] = {"mode": "soft", "highestTierAllowed": 1}
    assert len(cycle(racks(4, 4), build.node("outside", cpu=1), documents).binds) == 1


@pytest.mark.parametrize("size", [1, 3])
def test_hard_sub_groups_of_a_soft_gang_are_not_placed_across_their_tier(size: int) -> None:
    ring = {"name": "ring", "subGroupSize": size, "matchLabelKeys": ["ring"], "networkTopology": {"highestTierAllowed": 1}}
    documents = gang({"mode": "soft"}, tasks=3, cpu=4, subGroupPolicy=[ring])
    assert cycle(racks(4, 4), documents).binds == []
    assert len(cycle(racks(8, 4), documents).binds) == 3


def test_a_sub_group_that_no_domain_takes_is_told_with_its_own_tasks() -> None:
    ring = {"name": "ring", "subGroupSize": 3, "matchLabelKeys": ["ring"], "networkTopology": {"highestTierAllowed": 1}}
    documents = gang({"mode": "soft"}, tasks=6, cpu=4, subGroupPolicy=[ring])
    for number, pod in enumerate(documents[1:]):
        pod["metadata"]["labels"] = {"ring": str(number // 3)}
    sentence = "no HyperNode of tier 1 or narrower has room for all 3 tasks of a sub-group of 'ring', each 4 cpu"
    assert cycle(racks(4, 4, 4), documents).why("train") == sentence


def test_tasks_of_a_soft_gang_follow_each_other_from_one_rack_to_the_next() -> None:
    binds = [node for _, node in cycle(racks(4, 4, 4), gang({"mode": "soft"}, tasks=6, cpu=2)).binds]
    assert len({node[:2] for node in binds[:4]}) == 1
    assert len({node[:2] for node in binds}) == 2


def test_tier_names_mean_tiers_for_gangs_and_sub_groups() -> None:
    assert cycle(racks(2, 2), gang({"mode": "hard", "highestTierName": "leaf"}, tasks=3)).binds == []
    assert len(cycle(racks(2, 2), gang({"mode": "hard", "highestTierName": "spine"}, tasks=3)).binds) == 3
    ring = {"name": "ring", "subGroupSize": 3, "matchLabelKeys": ["ring"], "networkTopology": {"highestTierName": "leaf"}}
    assert cycle(racks(2, 2), gang(None, tasks=3, subGroupPolicy=[ring])).binds == []


# --- constraints that mean no tier ---------------------------------------------------------------------------------------

UNRESOLVED = [
    (
        {"mode": "hard"},
        "spec.networkTopology is hard, but names no tier; write highestTierAllowed or highestTierName, or mode: soft",
    ),
    (
        {"mode": "hard", "highestTierName": "moon"},
        "spec.networkTopology.highestTierName: no HyperNode has the tier name 'moon'; the HyperNodes have 'leaf', 'spine'",
    ),
]


@pytest.mark.parametrize(("topology", "text"), UNRESOLVED)
def test_a_constraint_that_means_no_tier_restricts_nothing_as_in_volcano_and_a_note_says_so(topology: Document, text: str) -> None:
    assert len(cycle(racks(2, 2), gang(topology, tasks=3)).binds) == 3
    assert notes(racks(2, 2), gang(topology, tasks=3), policy=AS_VOLCANO) == [
        f"PodGroup default/train: {text} (it has no effect now)"
    ]


@pytest.mark.parametrize(("topology", "text"), UNRESOLVED)
def test_where_it_is_refused_the_gang_waits_and_the_reason_says_what_to_write(topology: Document, text: str) -> None:
    found = cycle(racks(2, 2), gang(topology, tasks=3), policy=STRICT)
    assert (found.binds, found.why("train")) == ([], text)
    assert notes(racks(2, 2), gang(topology, tasks=3), policy=STRICT) == []


def test_a_policy_of_sub_groups_without_a_tier_is_named() -> None:
    ring = {"name": "ring", "subGroupSize": 1, "matchLabelKeys": ["ring"], "networkTopology": {"mode": "hard"}}
    found = cycle(racks(2, 2), gang(None, subGroupPolicy=[ring]), policy=STRICT)
    assert found.why("train").startswith("spec.subGroupPolicy[ring].networkTopology is hard, but names no tier")


def test_without_names_of_tiers_the_reason_says_to_write_a_number() -> None:
    fabric = [build.node("n0"), build.hypernode("s0", tier=1, members=["n0"])]
    found = cycle(fabric, gang({"mode": "hard", "highestTierName": "leaf"}, tasks=1), policy=STRICT)
    assert found.why("train").endswith(
        "no HyperNode has the tier name 'leaf'; none has a tierName; write highestTierAllowed instead"
    )


@pytest.mark.parametrize("tier", [1, 2, 9])
def test_in_our_profile_a_hard_constraint_waits_while_there_is_no_hypernode(tier: int) -> None:
    found = cycle(build.node("n0"), gang({"mode": "hard", "highestTierAllowed": tier}), policy=policy_of_profile("phalanx"))
    assert (found.binds, found.why("train")) == (
        [],
        "spec.networkTopology is hard, but no HyperNode exists; create HyperNodes, or let 'phalanx run --hypernode-level LABEL'"
        " create them from labels of nodes, or write mode: soft",
    )


def test_a_soft_constraint_starts_without_hypernodes() -> None:
    found = cycle(build.node("n0"), gang({"mode": "soft", "highestTierAllowed": 1}), policy=policy_of_profile("phalanx"))
    assert len(found.binds) == 2


# --- what has no effect --------------------------------------------------------------------------------------------------


def test_a_configuration_without_the_plugin_says_that_a_hard_constraint_has_no_effect() -> None:
    hard = gang({"mode": "hard", "highestTierAllowed": 1}, tasks=3)
    assert len(cycle(racks(2, 2), hard, policy=WITHOUT).binds) == 3
    assert notes(racks(2, 2), hard, policy=WITHOUT) == [
        "PodGroup default/train: spec.networkTopology is hard, but has no effect:"
        " no plugin of the configuration heeds HyperNodes; add network-topology-aware"
    ]
    assert notes(racks(2, 2), gang({"mode": "soft"}), policy=WITHOUT) == []
    assert notes(racks(2, 2), hard, policy=AS_VOLCANO) == []


def test_a_plugin_that_is_not_asked_for_domains_has_no_effect_either() -> None:
    off = policy_with({"name": PLUGIN, "enabledHyperNodeGradient": False})
    assert len(notes(racks(2, 2), gang({"mode": "hard", "highestTierAllowed": 1}, tasks=3), policy=off)) == 1


def test_the_profile_kai_says_that_a_hard_constraint_has_no_effect_though_it_admits_nobody() -> None:
    hard = gang({"mode": "hard", "highestTierAllowed": 1}, tasks=3)
    assert len(notes(racks(2, 2), hard, policy=policy_of_profile("kai"))) == 1


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (
            {"name": "part", "matchLabelKeys": ["part"]},
            "no pod of the gang has a value of 'part'; write labels of the pods in matchLabelKeys, or add these to the pods",
        ),
        (
            {"name": "part", "matchLabelKeys": ["ring"], "labelSelector": {"matchLabels": {"app": "other"}}},
            "its labelSelector fits no pod of the gang; write one that does",
        ),
    ],
)
def test_a_policy_of_sub_groups_that_fits_no_pod_is_told(policy: Document, text: str) -> None:
    found = notes(racks(2), gang(None, subGroupPolicy=[policy]), policy=AS_VOLCANO)
    assert found == [f"PodGroup default/train: spec.subGroupPolicy[part]: makes no sub-group, because {text}"]


def test_a_policy_that_fits_some_pods_and_a_gang_that_has_all_its_pods_are_not_told() -> None:
    rings = [{"name": "ring", "matchLabelKeys": ["ring"]}]
    assert notes(racks(2), gang(None, subGroupPolicy=rings), policy=AS_VOLCANO) == []
    documents = gang({"mode": "hard"}, tasks=1)
    running(documents[1], "r0-0")
    assert notes(racks(2), documents, policy=AS_VOLCANO) == []


def test_groups_alike_share_a_note() -> None:
    gangs = []
    for number in range(5):
        documents = build.gang(f"g{number}", tasks=1, cpu=1)
        documents[0]["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
        gangs.extend(documents)
    (found,) = notes(racks(8), gangs, policy=WITHOUT)
    assert found.startswith("PodGroup default/g0, default/g1, default/g2 and 2 others: spec.networkTopology is hard")


# --- tasks that ask for different things ---------------------------------------------------------------------------------


def test_the_reason_counts_tasks_by_what_they_ask_for() -> None:
    pods = [build.pod("train-0", cpu=8), build.pod("train-1", cpu=1), build.pod("train-2", cpu=1)]
    group = build.pod_group("train", min_member=3, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    found = cycle(racks(4), group, [build.in_group("train", pod) for pod in pods])
    assert found.why("train") == "no HyperNode of tier 1 or narrower has room for all 3 tasks (2 with 1 cpu, 1 with 8 cpu)"


def test_the_reason_does_not_list_every_kind_of_task() -> None:
    pods = [build.pod(f"train-{number}", cpu=number + 1) for number in range(5)]
    group = build.pod_group("train", min_member=5, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    found = cycle(racks(4), group, [build.in_group("train", pod) for pod in pods])
    assert found.why("train").endswith("(1 with 1 cpu, 1 with 2 cpu, 1 with 3 cpu, 2 with other requests)")
