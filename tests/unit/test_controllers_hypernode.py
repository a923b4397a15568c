"""HyperNodes follow the labels of nodes."""

from typing import Any

from phalanx.controllers.hypernode import LABELS, MADE_FROM, HyperNodeController
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import HYPERNODE, NODE
from phalanx.testing import build
from tests.support.controller_store import Stage

LEAF, SPINE = "net/leaf", "net/spine"


def stage(*nodes: dict[str, Any]) -> Stage:
    found = Stage(HyperNodeController([LEAF, SPINE]))
    if nodes:
        found.make(*nodes)
    found.run(2)
    return found


def node(name: str, leaf: str = "", spine: str = "") -> dict[str, Any]:
    return build.node(name, labels={key: value for key, value in ((LEAF, leaf), (SPINE, spine)) if value})


def members(found: Stage) -> dict[str, list[str]]:
    return {
        item["metadata"]["name"]: [member["selector"]["exactMatch"]["name"] for member in item["spec"]["members"]]
        for item in found.store.items(HYPERNODE)
    }


def relabel(found: Stage, name: str, **labels: str | None) -> None:
    own = {{"leaf": LEAF, "spine": SPINE}[key]: value for key, value in labels.items()}
    found.store.patch(NODE, "", name, {"metadata": {"labels": own}})
    found.run(found.time.now - found.start + 2)


def test_every_level_is_a_tier_and_holds_the_one_below() -> None:
    found = stage(node("a", "l1", "s1"), node("b", "l1", "s1"), node("c", "l2", "s1"), node("d", "l3", "s2"))
    assert members(found) == {
        "tier-1.s1.l1": ["a", "b"], "tier-1.s1.l2": ["c"], "tier-1.s2.l3": ["d"],
        "tier-2.s1": ["tier-1.s1.l1", "tier-1.s1.l2"], "tier-2.s2": ["tier-1.s2.l3"],
    }  # fmt: skip
    wide = found.find(HYPERNODE, "tier-2.s1")
    assert (wide["spec"]["tier"], wide["spec"]["tierName"], wide["spec"]["members"][0]["type"]) == (2, SPINE, "HyperNode")
    assert wide["metadata"]["labels"] == {"phalanx.dev/made-from": "node-labels", SPINE: "s1"}
    assert found.unsettled() == []


def test_the_scheduler_reads_them_as_nested_domains() -> None:
    found, cluster = stage(node("a", "l1", "s1"), node("b", "l2", "s1"), node("c", "l3", "s2")), ObjectCluster()
    for item in (*found.store.items(NODE), *found.store.items(HYPERNODE)):
        cluster.put(item)
    tree = cluster.snapshot(0.0).hypernodes
    sizes = {name: len(nodes) for name, nodes in zip(tree.names, tree.members, strict=True)}
    assert (sizes["tier-2.s1"], sizes["tier-1.s1.l1"], tree.tier_by_name) == (2, 1, {LEAF: 1, SPINE: 2})


def test_leaves_of_one_name_under_two_spines_are_two() -> None:
    assert members(stage(node("a", "l1", "s1"), node("b", "l1", "s2"))) == {
        "tier-1.s1.l1": ["a"], "tier-1.s2.l1": ["b"], "tier-2.s1": ["tier-1.s1.l1"], "tier-2.s2": ["tier-1.s2.l1"],
    }  # fmt: skip


def test_a_node_without_a_label_is_in_nothing_of_that_level_and_above() -> None:
    assert members(stage(node("a", "l1"), node("b", "", "s1"), node("c"))) == {"tier-1.l1": ["a"]}


def test_nodes_that_come_move_lose_a_label_and_go() -> None:
    found = stage(node("a", "l1", "s1"), node("b", "l1", "s1"))
    found.make(node("c", "l2", "s1"))
    found.run(10)
    assert members(found)["tier-2.s1"] == ["tier-1.s1.l1", "tier-1.s1.l2"]
    relabel(found, "b", leaf="l2")
    assert (members(found)["tier-1.s1.l1"], members(found)["tier-1.s1.l2"]) == (["a"], ["b", "c"])
    relabel(found, "c", leaf=None)
    assert members(found)["tier-1.s1.l2"] == ["b"]
    found.store.delete(NODE, "", "b")
    found.run(30)
    assert members(found) == {"tier-1.s1.l1": ["a"], "tier-2.s1": ["tier-1.s1.l1"]}
    assert found.unsettled() == []


def test_what_others_made_is_left_alone() -> None:
    own = build.hypernode("tier-2.s1", tier=5, members=["z"])
    found = stage(build.hypernode("pod-7", tier=1, members=["z"]), own, node("a", "l1", "s1"))
    assert members(found) == {"pod-7": ["z"], "tier-1.s1.l1": ["a"], "tier-2.s1": ["z"]}
    found.store.delete(NODE, "", "a")
    found.run(10)
    assert members(found) == {"pod-7": ["z"], "tier-2.s1": ["z"]}


def test_one_of_ours_that_was_deleted_or_changed_is_put_right() -> None:
    found = stage(node("a", "l1", "s1"))
    found.store.delete(HYPERNODE, "", "tier-1.s1.l1")
    found.store.patch(HYPERNODE, "", "tier-2.s1", {"spec": build.hypernode("other", tier=2, members=["z"])["spec"]})
    found.run(10)
    assert members(found) == {"tier-1.s1.l1": ["a"], "tier-2.s1": ["tier-1.s1.l1"]}


def test_one_of_ours_that_was_stored_empty_is_filled() -> None:
    empty = build.hypernode("tier-2.s1", tier=2, members=[])
    empty["metadata"]["labels"] = {MADE_FROM: LABELS}
    assert members(stage(empty, node("a", "l1", "s1"))) == {"tier-1.s1.l1": ["a"], "tier-2.s1": ["tier-1.s1.l1"]}


def test_values_that_are_no_names_are_kept_apart() -> None:
    names = list(members(stage(node("a", "Leaf_1"), node("b", "leaf.1"), node("c", "leaf-1"))))
    assert len(names) == 3
    assert all(name == name.lower() and "_" not in name for name in names)


def test_a_change_that_moves_no_node_is_not_looked_at() -> None:
    found, controller = stage(node("a", "l1", "s1"), node("b")), HyperNodeController([LEAF, SPINE])
    assert [key for name in "ab" for key in controller.concerns(found.store, NODE, found.find(NODE, name))] == []
    assert list(controller.concerns(found.store, NODE, node("gone", "l1", "s1"))) != []
