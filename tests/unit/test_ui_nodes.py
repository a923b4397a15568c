"""Nodes as arrays, by domain; one node; and room for so many nodes in one domain."""

import pytest

from phalanx.errors import ConfigError
from phalanx.testing import build
from phalanx.ui.scope import EVERYTHING, Scope
from phalanx.ui.views.domains import levels
from phalanx.ui.views.nodes import node, nodes
from phalanx.ui.views.rooms import RoomAsked, rooms
from tests.support import ui_clusters
from tests.support.ui_clusters import RACK, ZONE
from tests.support.ui_pages import seen

GPU = "nvidia.com/gpu"
IN_RACK = RoomAsked(8, "8", GPU, RACK)


def test_what_nodes_offer_and_use_comes_as_arrays() -> None:
    found = nodes(seen(ui_clusters.lively()), EVERYTHING)
    gpus = found["resources"][0]
    assert (gpus["name"], gpus["unit"], gpus["offered"][0]) == (GPU, "GPUs", 8)
    assert (gpus["used"][0], gpus["used"][24], gpus["used"][40]) == (8, 4, 0)
    assert all(len(values) == 48 for values in (found["names"], found["state"], found["pods"], gpus["used"], found["queue"]))


def test_cordoned_nodes_and_those_that_are_not_ready_are_marked() -> None:
    state = nodes(seen(ui_clusters.lively()), EVERYTHING)["state"]
    assert (state[5], state[45], state[0]) == (1, 2, 0)


def test_a_node_is_of_the_queue_that_holds_most_of_it() -> None:
    found = nodes(seen(ui_clusters.lively()), EVERYTHING)
    names = [found["queues"][place] if place >= 0 else "" for place in found["queue"]]
    assert (names[0], names[16], names[30], names[40]) == ("research", "batch", "production", "")


def test_levels_are_labels_of_places_the_widest_first() -> None:
    found = levels(seen(ui_clusters.lively()).snapshot)
    assert [level.key for level in found] == [ZONE, RACK]
    assert list(found[0].names) == ["zone-0", "zone-1"]


def test_hypernodes_are_levels_by_tier() -> None:
    racks = [build.hypernode(f"s{number}", tier=1, members=[f"node-0000{number}"]) for number in range(2)]
    spine = build.hypernode("spine", tier=2, members=["s0", "s1"], of="HyperNode", tier_name="spine")
    found = levels(seen(ui_clusters.nodes(3, racks=1, zones=1), racks, spine).snapshot)
    assert [(level.key, level.title, level.of.tolist()) for level in found][:2] == [
        ("hypernode/2", "spine", [0, 0, -1]),
        ("hypernode/1", "HyperNodes of tier 1", [0, 1, -1]),
    ]


def test_one_node_is_shown_with_its_gangs_and_domains() -> None:
    found = node(seen(ui_clusters.lively()), EVERYTHING, "node-00024")
    assert found is not None
    assert [(gang["gang"], gang["held"]) for gang in found["gangs"]] == [("batch/tokenize", 4)]
    assert [domain["name"] for domain in found["domains"]] == ["zone-1", "rack-003"]
    assert found["resources"][0] == {"name": GPU, "unit": "GPUs", "offered": 8, "used": 4, "leaving": 0}


def test_gangs_of_other_namespaces_on_a_node_are_only_counted() -> None:
    scope = Scope(frozenset({"research"}), frozenset(), sees_nodes=True, sees_queues=False)
    found = node(seen(ui_clusters.lively()), scope, "node-00024")
    assert found is not None
    assert (found["gangs"], found["otherPods"]) == ([], 1)


def test_who_may_not_list_nodes_sees_none() -> None:
    scope = Scope(sees_nodes=False)
    cluster = seen(ui_clusters.lively())
    assert nodes(cluster, scope)["hidden"]
    assert node(cluster, scope, "node-00000") is None
    assert rooms(cluster, scope, IN_RACK)["domains"] == []


# --- room ----------------------------------------------------------------------------------------------------------------


def test_room_for_whole_nodes_is_found_in_one_rack() -> None:
    found = rooms(
        seen(ui_clusters.nodes(40, racks=4, zones=1), ui_clusters.running("a", ["node-00000"], queue="default", gpus=8)),
        EVERYTHING,
        IN_RACK,
    )
    assert found["text"] == (f"8 nodes with 8 GPUs free in one domain of {RACK}: rack-000 has 9, and 3 more domains have room")
    assert found["domains"][0]["names"] == [f"node-{number:05}" for number in range(1, 9)]
    assert found["nodes"] == list(range(1, 9))


def test_where_no_domain_has_room_the_nearest_one_is_named() -> None:
    found = rooms(seen(ui_clusters.lively()), EVERYTHING, IN_RACK)
    assert (found["enough"], found["nodes"]) == (0, [])
    assert found["text"] == f"no room for 8 nodes with 8 GPUs free in one domain of {RACK}: rack-005 has 7, the most"


def test_nodes_that_take_no_pods_are_no_room() -> None:
    two = ui_clusters.nodes(2, racks=1, zones=1)
    two[0]["spec"]["unschedulable"] = True
    found = rooms(seen(two), EVERYTHING, RoomAsked(1, "8"))
    assert found["domains"][0]["names"] == ["node-00001"]


def test_a_level_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"nothing here is divided by 'shelf'; write one of: cluster, .*rack"):
        rooms(seen(ui_clusters.lively()), EVERYTHING, RoomAsked(1, "8", level="shelf"))


def test_a_resource_that_nobody_offers_has_no_room() -> None:
    found = rooms(seen(ui_clusters.lively()), EVERYTHING, RoomAsked(1, "1", "example.com/fpga"))
    assert found["text"] == "no room for 1 node with 1 example.com/fpga free; no node has that free"
