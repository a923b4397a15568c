"""The tree of network domains, where gangs may be and are in it, and the table of nodes below it."""

from collections.abc import Iterable
from typing import Any

import pytest

from phalanx.model.node import HyperNode, HyperNodeMember, Node
from phalanx.model.resources import ResourceSpace
from phalanx.placement import Counts
from phalanx.state.gang_state import GangState
from phalanx.state.hypernodes import TOP, HyperTree
from phalanx.state.node_table import NodeTable
from phalanx.state.verdict import Verdict
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support.open_sessions import gang_in, session_of, two_nodes


def tree_of(*hypernodes: HyperNode) -> HyperTree:
    nodes = [Node(f"n{number}", labels={"rack": f"r{number // 2}"}) for number in range(4)]
    return HyperTree(hypernodes, NodeTable(nodes, ResourceSpace()))


def over(name: str, tier: int, *members: str, is_hypernode: bool = False) -> HyperNode:
    return HyperNode(name, tier, members=tuple(HyperNodeMember(is_hypernode, name=member) for member in members))


def nodes_of(tree: HyperTree, name: str) -> list[int]:
    return [int(number) for number in tree.members[tree.number_by_name[name]]]


TREE = tree_of(
    over("s0", 1, "n0", "n1"), over("s1", 1, "n2", "n9"), over("s2", 2, "s0", "s1", "s9", is_hypernode=True), over("s3", 1, "n3")
)  # fmt: skip


def test_the_tree_nests_domains_under_a_top_that_holds_everything() -> None:
    assert nodes_of(TREE, "s2") == [0, 1, 2]
    assert nodes_of(TREE, "s1") == [2]
    assert nodes_of(TREE, TOP) == [0, 1, 2, 3]
    assert TREE.tiers[TREE.top] == 3
    assert not TREE.is_empty
    assert [TREE.names[leaf] for leaf in TREE.leaves] == ["s0", "s0", "s1", "s3"]
    assert TREE.parent_by_missing == {"s9": TREE.number_by_name["s2"]}


def test_members_may_be_named_by_pattern_or_by_labels() -> None:
    by_pattern = HyperNode("p", 1, members=(HyperNodeMember(pattern="^n[13]$"),))
    by_labels = HyperNode("l", 1, members=(HyperNodeMember(labels=(("rack", "r1"),)),))
    by_nothing = HyperNode("x", 1, members=(HyperNodeMember(), HyperNodeMember(is_hypernode=True, labels=(("rack", "r1"),))))
    above = HyperNode("top", 2, members=(HyperNodeMember(is_hypernode=True, pattern="^[pl]$"),))
    tree = tree_of(by_pattern, by_labels, by_nothing, above)
    assert nodes_of(tree, "p") == [1, 3]
    assert nodes_of(tree, "l") == [2, 3]
    assert nodes_of(tree, "x") == []
    assert nodes_of(tree, "top") == [1, 2, 3]


def test_a_domain_is_never_its_own_ancestor() -> None:
    tree = tree_of(over("a", 1, "b", is_hypernode=True), over("b", 1, "a", is_hypernode=True), over("c", 2, "c", is_hypernode=True))
    for number in range(tree.top):
        assert tree.ancestors(number)[-1] == tree.top


def test_ancestors_descendants_and_common_domains() -> None:
    def names(numbers: Iterable[int]) -> list[str]:
        return [TREE.names[number] for number in numbers]

    number = TREE.number_by_name
    assert names(TREE.ancestors(number["s0"])) == ["s0", "s2", TOP]
    assert names(TREE.descendants(TREE.top)) == [TOP, "s3", "s2", "s0", "s1"]
    assert TREE.names[TREE.common(number["s0"], number["s1"])] == "s2"
    assert TREE.names[TREE.common(number["s0"], number["s3"])] == TOP
    assert TREE.names[TREE.common(number["s2"], number["s0"])] == "s2"


@pytest.mark.parametrize(("nodes", "name"), [([0], "s0"), ([0, 1], "s0"), ([0, 2], "s2"), ([0, 3], TOP), ([3], "s3")])
def test_the_lowest_domain_that_holds_some_nodes(nodes: list[int], name: str) -> None:
    assert TREE.names[TREE.lowest_with(nodes)] == name


def test_without_hypernodes_there_is_only_the_top_and_it_is_no_leaf() -> None:
    tree = tree_of()
    assert tree.is_empty
    assert tree.names == [TOP]
    assert tree.tiers == [2]


NETWORK = [
    build.hypernode("s0", tier=1, members=["n0"]), build.hypernode("s1", tier=1, members=["n1"]),
    build.hypernode("s2", tier=2, members=["s0", "s1"], of="HyperNode", tier_name="spine"),
]  # fmt: skip


def constrained(topology: Document | None, *, on: str = "", **spec: Any) -> GangState:
    group = build.pod_group("train", min_member=1, networkTopology=topology, **spec)
    pods = [build.pod("train-0", group="train", on=on, cpu=1), build.pod("train-1", group="train", cpu=1)]
    pods[1]["metadata"]["labels"] = {"ring": "1"}
    return gang_in(session_of([*two_nodes(), build.node("n2")], NETWORK, group, pods))


@pytest.mark.parametrize(
    ("topology", "tier"),
    [
        (None, None), ({"mode": "hard", "highestTierAllowed": 1}, 1), ({"highestTierAllowed": 2}, 2), ({"mode": "soft"}, 3),
        ({"mode": "hard", "highestTierName": "spine"}, 2), ({"mode": "hard", "highestTierName": "moon"}, None),
        ({"mode": "hard"}, None),
    ],
)  # fmt: skip
def test_a_constraint_is_read_as_the_widest_allowed_tier(topology: Document | None, tier: int | None) -> None:
    gang = constrained(topology)
    assert gang.allowed_tier == tier
    assert gang.verdicts == []


def test_a_gang_occupies_the_lowest_domain_of_its_running_tasks() -> None:
    assert constrained({"highestTierAllowed": 2}, on="n1").allocated_hypernode == "s1"
    assert constrained({"highestTierAllowed": 2}).allocated_hypernode == ""


def test_a_gang_with_tasks_outside_of_every_hypernode_occupies_the_top() -> None:
    gang = constrained({"highestTierAllowed": 2}, on="n2")
    assert gang.allocated_hypernode == TOP
    assert [part.allocated_hypernode for part in gang.subgroups.values()] == [TOP]


@pytest.mark.parametrize(("recorded", "believed"), [("s0", "s0"), ("lost", "s3"), ("elsewhere", TOP)])
def test_where_nodes_say_nothing_the_group_object_is_believed_if_it_names_a_hypernode_or_its_member(
    recorded: str, believed: str
) -> None:
    group = build.pod_group("train", min_member=1, networkTopology={"highestTierAllowed": 2})
    group["metadata"]["annotations"] = {"volcano.sh/job-allocated-hypernode": recorded}
    broken = build.hypernode("s3", tier=2, members=["lost"], of="HyperNode")
    pods = [build.pod("train-0", group="train", on="n2", cpu=1), build.pod("train-1", group="train", cpu=1)]
    gang = gang_in(session_of([*two_nodes(), build.node("n2")], NETWORK, broken, group, pods))
    assert (gang.allocated_hypernode, [part.allocated_hypernode for part in gang.subgroups.values()]) == (believed, [believed])


def test_sub_groups_have_tiers_of_their_own() -> None:
    rings = [{"name": "ring", "matchLabelKeys": ["ring"], "networkTopology": {"mode": "soft"}}]
    gang = constrained({"highestTierAllowed": 2}, on="n0", subGroupPolicy=rings)
    assert {subgroup.id: subgroup.allowed_tier for subgroup in gang.subgroups.values()} == {
        "default/train": 2, "default/train/ring-1": 2,
    }  # fmt: skip
    assert gang.subgroups["default/train"].allocated_hypernode == "s0"
    assert gang.allocated_hypernode == "s0"


def test_a_label_column_answers_once_per_value() -> None:
    table = NodeTable([Node("b", labels={"z": "1"}), Node("a", labels={"z": "1"}), Node("c")], ResourceSpace())
    asked: list[str | None] = []

    def is_one(value: str | None) -> bool:
        asked.append(value)
        return value == "1"

    assert table.names == ["a", "b", "c"]
    assert table.label("z").where(is_one).tolist() == [True, True, False]
    assert asked == ["1", None]
    assert len(table) == 3


def test_an_empty_table_answers_with_nothing() -> None:
    table = NodeTable([], ResourceSpace())
    empty: Counts = table.count_taints(lambda taints: 1)
    assert empty.tolist() == []
    assert table.where_taints(lambda taints: True).tolist() == []


def test_a_refusal_carries_plugin_reason_and_numbers() -> None:
    verdict = Verdict.refuse("gang", "NotEnoughTasks", "2 more", missing=2)
    assert (verdict.ok, verdict.plugin, verdict.reason, verdict.numbers) == (False, "gang", "NotEnoughTasks", {"missing": 2})
