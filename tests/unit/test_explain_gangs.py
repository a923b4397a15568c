"""The book of gangs that a running cluster shows."""

from typing import Any

from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.gang_rows import gang_rows
from phalanx.explain.gangs import GangBook
from phalanx.model.task import GangKey
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import gated_gangs as gates
from tests.support import kai_objects as kai
from tests.support import native_groups as native
from tests.support import sim_worlds as worlds


def items(cluster: ObjectCluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = GangBook().documents(cluster.snapshot(0))["items"]
    return found


def test_a_group_is_named_by_the_version_of_its_object_and_a_gang_of_pods_by_its_dialect() -> None:
    cluster = ObjectCluster()
    for document in (native.group("a", min_count=1, version="v1beta1"), native.group("b", min_count=1), gates.pod("c-0", "c", 1)):
        cluster.put(document)
    assert [item["group"] for item in items(cluster)] == ["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2", "gates"]


def test_pods_whose_group_does_not_exist_are_a_gang_that_waits() -> None:
    cluster = ObjectCluster()
    for document in (build.node("n"), *native.pods("a", 2)):
        cluster.put(document)
    (gang,) = items(cluster)
    assert (gang["metadata"]["name"], gang["status"], gang["group"], len(gang["members"])) == ("a", "Waits", "", 2)
    assert gang["why"] == "2 pods wait for PodGroup default/a of scheduling.k8s.io, which does not exist; create it"


def test_a_gang_of_another_scheduler_says_so() -> None:
    cluster = ObjectCluster(schedulers=frozenset({"volcano", "phalanx"}))
    for document in build.gang("train", tasks=2, cpu=1):
        if document["kind"] == "Pod":
            document["spec"]["schedulerName"] = "volcanoo"
        cluster.put(document)
    (gang,) = items(cluster)
    assert gang["why"] == "2 of 2 tasks are not ours: schedulerName is 'volcanoo'; did you mean 'volcano'?"


def test_the_reason_behind_a_gate_comes_before_the_gate() -> None:
    found = gates.world(nodes=1, gpus=1, policy=build.policy())
    worlds.submit(found, gates.gang("a", 2, gpus=1))
    worlds.run(found, 5)
    assert found.gates is not None
    reasons = found.gates.planner.waits
    assert list(reasons) == [GangKey("default/a")]
    book = GangBook()
    assert book.note(*found.look(), reasons) == reasons
    assert book.note(*found.look(), reasons) == {}


def test_that_a_reason_lasts_longer_is_no_news() -> None:
    world, book = worlds.world(nodes=2, gpus=1, policy=build.policy((("gang",), ("predicates",)), "allocate, heal")), GangBook()
    worlds.submit(world, worlds.gang("train", tasks=2, gpus=1))
    world.plan(100, lambda: world.faults.die("node-1"))
    found = []
    for moment in (110, 120, 130):
        worlds.run(world, moment)
        found.append([*book.note(*world.look(), {}).values()])
    assert [text.partition(";")[0] for text in found[0]] == ["1 of 2 tasks runs, below the minimum of 2 for 10 s"]
    assert found[1:] == [[], []]


def test_a_group_of_coscheduling_shows_its_own_phase() -> None:
    found = sigs.gang("train", tasks=2, cpu=1)
    found[0]["status"] = {"phase": "Scheduling"}
    cluster = build.cluster(nodes=0).submit(found)
    assert [item["phase"] for item in items(cluster.objects)] == ["Scheduling"]
    assert cluster.run_cycle().phase("train") == "Scheduling"


def test_a_gang_of_koordinator_that_has_started_still_shows_its_minimum() -> None:
    cluster = ObjectCluster()
    group, *members = sigs.koordinator_gang("train", tasks=3, match_policy="once-satisfied", cpu=1)
    group["status"] = {"phase": "Running"}
    for pod in members:
        pod["spec"]["nodeName"], pod["status"] = "n", {"phase": "Running"}
    for document in (build.node("n"), group, *members):
        cluster.put(document)
    assert [(item["minimum"], item["phase"]) for item in items(cluster)] == [(3, "Running")]


def test_all_views_of_a_group_with_sub_groups_show_the_same_minimum() -> None:
    parts = [{"name": "top"}, {"name": "left", "parent": "top", "minMember": 2}, {"name": "right", "minMember": 1}]
    pods = [kai.pod(f"p-{number}", "serve", part=part, gpus=1) for number, part in enumerate(("left", "left", "right"))]
    documents = [kai.queue("a", parent="", quota=-1), kai.pod_group("serve", min_member=2, subGroups=parts), *pods]
    world, book = worlds.world(nodes=1, gpus=4, policy=kai.policy()), GangBook()
    worlds.submit(world, documents)
    worlds.run(world, 5)
    assert worlds.record(world, "serve").minimum == 3
    assert [item["minimum"] for item in book.documents(world.look()[0])["items"]] == [3]
    cluster = kai.cluster().submit(documents)
    assert [row.minimum for row in gang_rows(cluster.objects.snapshot(0.0), cluster.run_cycle().decisions)] == [3]


def test_the_reason_of_a_gang_is_the_code_that_metrics_have() -> None:
    cluster = build.cluster(nodes=1, policy=build.policy([["gang", "predicates"]])).submit(build.gang("train", cpu=80))
    snapshot, book = cluster.objects.snapshot(0.0), GangBook()
    book.note(snapshot, cluster.run_cycle().decisions, {})
    (gang,) = book.documents(snapshot)["items"]
    assert (gang["reason"], gang["why"][:16]) == ("TooLarge", "0 of 1 tasks fit")
