"""The overview: what runs, what waits and why, how well the cluster is used, and what changed in the last hour."""

from phalanx.testing import build
from phalanx.ui.scope import EVERYTHING, Scope
from phalanx.ui.views.overview import overview
from tests.support import ui_clusters
from tests.support.ui_clusters import NOW
from tests.support.ui_pages import seen


def test_gangs_are_counted_by_what_becomes_of_them() -> None:
    found = overview(seen(ui_clusters.lively()), EVERYTHING)
    assert found["gangs"] == {"Runs": 5, "Starts": 1, "Waits": 4}
    assert found["pods"] == {"all": 68, "waiting": 34}


def test_reasons_to_wait_are_counted_the_most_frequent_first_with_an_example() -> None:
    found = overview(seen(ui_clusters.lively()), EVERYTHING)
    assert (found["reasons"][0]["code"], found["reasons"][0]["gangs"]) == ("TooLarge", 2)
    example = next(reason for reason in found["reasons"] if reason["code"] == "NodeSelectorMismatch")
    assert example["example"] == "batch/arm-build"
    assert "arch=arm64" in example["why"]


def test_what_gangs_without_their_minimum_hold_is_held_in_vain() -> None:
    group, *pods = build.gang("half", tasks=4, gpus=8)
    for pod, node in zip(pods[:2], ("node-00000", "node-00001"), strict=True):
        pod["spec"]["nodeName"], pod["status"] = node, {"phase": "Running"}
    whole = ui_clusters.running("whole", ["node-00002"], queue="default", gpus=8)
    found = overview(seen(ui_clusters.nodes(3, racks=1, zones=1), group, pods, whole), EVERYTHING)["use"]
    assert (found["offered"], found["allocated"], found["useful"], found["vain"]) == (24, 24, 8, 16)
    assert found["text"] == "16 of 24 GPUs allocated are held by gangs that do not have their minimum."


def test_free_devices_on_partly_used_nodes_are_scattered() -> None:
    found = overview(seen(ui_clusters.lively()), EVERYTHING)["use"]
    assert (found["offered"], found["allocated"], found["scattered"]) == (384, 240, 32)


def test_the_longest_waits_come_first() -> None:
    found = overview(seen(ui_clusters.lively()), EVERYTHING)["waits"]
    assert [wait["gang"] for wait in found] == ["batch/pretrain", "research/mixtral", "interactive/vision", "batch/arm-build"]
    assert found[0]["since"] == NOW - 9000


def test_changes_of_the_last_hour_are_listed_the_latest_first() -> None:
    found = overview(seen(ui_clusters.lively()), EVERYTHING)["changes"]
    assert [(change["gang"], change["text"]) for change in found][:3] == [
        ("batch/arm-build", "was created"),
        ("interactive/vision", "was created"),
        ("batch/tokenize", "started"),
    ]
    assert all(change["time"] >= NOW - 3600 for change in found)


def test_without_gpus_cpus_are_counted() -> None:
    found = overview(seen(build.node("n1", cpu=8), build.gang("train", tasks=1, cpu=2)), EVERYTHING)
    assert (found["resource"], found["unit"], found["use"]["offered"]) == ("cpu", "CPUs", 8)


def test_an_empty_cluster_has_an_overview() -> None:
    found = overview(seen(), EVERYTHING)
    assert (found["gangs"], found["reasons"], found["waits"], found["changes"]) == ({}, [], [], [])
    assert found["use"]["text"] == "No CPUs are allocated."


def test_a_reader_of_one_namespace_sees_its_gangs_alone() -> None:
    found = overview(seen(ui_clusters.lively()), Scope(frozenset({"batch"}), frozenset(), sees_nodes=False, sees_queues=False))
    assert found["gangs"] == {"Runs": 2, "Waits": 2}
    assert {wait["gang"].partition("/")[0] for wait in found["waits"]} == {"batch"}
    assert (found["use"], found["nodes"], found["problems"]) == (None, None, [])
