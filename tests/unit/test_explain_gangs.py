"""The book of gangs that a running cluster shows."""

from typing import Any

from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.gangs import GangBook
from phalanx.model.task import GangKey
from phalanx.testing import build
from tests.support import gated_gangs as gates
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
