"""Broken HyperNodes are reported, each with what to write instead; the tree goes on with the rest."""

import pytest

from phalanx.model.node import HyperNode, HyperNodeMember, Node
from phalanx.model.resources import ResourceSpace
from phalanx.state.hypernode_problems import hypernode_problems
from phalanx.state.hypernodes import HyperTree
from phalanx.state.node_table import NodeTable


def over(name: str, tier: int, *members: str) -> HyperNode:
    """Return a HyperNode over nodes, whose names begin with "n", and HyperNodes."""
    return HyperNode(name, tier, members=tuple(HyperNodeMember(not member.startswith("n"), name=member) for member in members))


def problems(*hypernodes: HyperNode) -> dict[str, str]:
    table = NodeTable([Node(f"node-{number}", labels={"rack": f"r{number // 2}"}) for number in range(4)], ResourceSpace())
    return hypernode_problems(HyperTree(hypernodes, table), table)


RACK0, RACK1 = over("rack0", 1, "node-0", "node-1"), over("rack1", 1, "node-2", "node-3")


def test_a_tree_that_is_right_has_no_problems() -> None:
    assert problems() == {}
    assert problems(RACK0, RACK1, over("spine", 2, "rack0", "rack1")) == {}


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (["node-0", "nodes-1"], "Node 'nodes-1' does not exist; write 'node-1', or remove the member"),
        (["node-0", "nowhere"], "Node 'nowhere' does not exist; create it, or remove the member"),
        (["na", "nb", "nc", "nx"], "Nodes 'na', 'nb', 'nc' and 1 other do not exist; create them, or remove the members"),
        (["node-0", "moon"], "HyperNode 'moon' does not exist; create it, or remove the member"),
    ],
)
def test_members_that_do_not_exist_are_named(members: list[str], text: str) -> None:
    assert problems(over("s", 1, *members)) == {"s": f"spec.members: {text}"}


def test_a_circle_is_told_once() -> None:
    assert problems(over("a", 1, "b"), over("b", 2, "c"), over("c", 3, "a")) == {
        "a": "spec.members: HyperNodes contain each other in a circle (a > b > c > a); remove one of these members"
    }
    assert problems(over("a", 1, "a")) == {"a": "spec.members: it contains itself; remove the member"}


def test_a_node_in_two_hypernodes_of_a_tier_is_told_on_the_later_one() -> None:
    assert problems(RACK0, over("rack1", 1, "node-1", "node-2")) == {
        "rack1": "spec.members: Node 'node-1' is also in HyperNode 'rack0' of the same tier 1; remove it from one of the two"
    }
    by_label = HyperNode("rack1", 1, members=(HyperNodeMember(labels=(("rack", "r0"),)),))
    assert "Nodes 'node-0', 'node-1' are also in HyperNode 'rack0'" in problems(RACK0, by_label)["rack1"]
    assert problems(RACK0, over("direct", 2, "node-0")) == {}


def test_a_hypernode_in_two_others_is_told() -> None:
    assert problems(RACK0, over("left", 2, "rack0"), over("right", 2, "rack0")) == {
        "right": "spec.members: HyperNode 'rack0' is also in HyperNode 'left'; remove it from one of the two"
    }


@pytest.mark.parametrize("tier", [1, 2])
def test_a_tier_that_does_not_rise_is_told(tier: int) -> None:
    assert problems(over("inner", tier, "node-0"), over("outer", 1, "inner")) == {
        "outer": f"spec.members: HyperNode 'inner' has tier {tier}, which is not below tier 1 of this one;"
        " write a higher tier here, or a lower one there"
    }


def test_several_problems_of_one_hypernode_are_one_sentence_each() -> None:
    (text,) = problems(over("s", 1, "nowhere", "moon")).values()
    assert text.count("spec.members: ") == 2
