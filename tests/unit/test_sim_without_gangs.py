"""The cluster of a scheduler that knows no gangs."""

from phalanx.sim.without_gangs import SoloCluster
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support import sim_worlds as worlds

ONE_BY_ONE = build.policy((("priority", "predicates", "nodeorder"),), "allocate")


def test_every_pod_is_a_gang_of_one() -> None:
    cluster = SoloCluster()
    for document in (*build.gang("a", tasks=2), *kai.gang("b", tasks=1)):
        assert cluster.put(document)
    gangs = cluster.snapshot(0).gangs
    assert sorted(gangs) == ["default/a-0", "default/a-1", "default/b-0"]
    assert {gang.min_member for gang in gangs.values()} == {1}


def test_pods_keep_the_order_in_which_they_were_made() -> None:
    cluster = SoloCluster()
    for name in ("z", "a", "m"):
        cluster.put(build.pod(name))
    gangs = cluster.snapshot(0).gangs.values()
    assert [gang.key for gang in sorted(gangs, key=lambda gang: gang.created)] == ["default/z", "default/a", "default/m"]


def test_a_pod_goes_with_its_group() -> None:
    cluster = SoloCluster()
    group, pod = build.gang("a", tasks=1)
    cluster.put(group)
    cluster.put(pod)
    cluster.remove(group)
    assert list(cluster.snapshot(0).gangs) == ["default/a-0"]
    cluster.remove(pod)
    assert cluster.snapshot(0).gangs == {}


def test_two_gangs_block_each_other() -> None:
    world = worlds.world(nodes=3, gpus=1, policy=ONE_BY_ONE, is_solo=True)
    worlds.submit(world, *(worlds.gang(name, tasks=3, duration="60s", gpus=1) for name in ("a", "b")))
    worlds.run(world, 3600)
    assert [worlds.record(world, name).started for name in ("a", "b")] == [None, None]
    assert [worlds.record(world, name).held_since for name in ("a", "b")] == [0.0, 0.0]


def test_a_gang_is_told_why_one_of_its_pods_waits() -> None:
    world = worlds.world(nodes=1, gpus=1, policy=ONE_BY_ONE, is_solo=True)
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1))
    worlds.run(world, 10)
    assert world.reasons() == {
        "default/a": "0 of 1 tasks fit; 1 more place for 1 nvidia.com/gpu needed"
        " (1 node: 1 lacks nvidia.com/gpu (0 of 1 are free, 1 needed))"
    }
