"""A whole simulated cluster."""

from phalanx.model.kinds import POD, QUEUE
from phalanx.sim.settings import Settings
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support import sim_worlds as worlds


def test_gangs_that_arrive_together_create_their_pods_in_turn() -> None:
    world = worlds.world(nodes=1)
    world.submit([build.gang("a", tasks=2), build.gang("b", tasks=3)])
    pods = sorted(world.store.items(POD), key=lambda pod: int(pod["metadata"]["resourceVersion"]))
    assert [pod["metadata"]["name"] for pod in pods] == ["a-0", "b-0", "a-1", "b-1", "b-2"]


def test_a_broken_object_is_noted_and_the_rest_goes_on() -> None:
    world = worlds.world(nodes=1, gpus=2)
    broken = build.pod("x", cpu="lots")
    world.submit([[broken], worlds.gang("a", tasks=1, gpus=1), worlds.gang("a", tasks=1)])
    worlds.run(world, 10)
    assert worlds.phases(world.store)["a-0"] == "Running"
    assert any("quantity 'lots'" in problem for problem in world.problems)
    assert any("PodGroup a" in problem and "already exists" in problem for problem in world.problems)


def test_what_the_cluster_refuses_is_noted_with_its_moment() -> None:
    world = worlds.world(nodes=1)
    world.plan(90, lambda: world.faults.die("nope"))
    worlds.run(world, 100)
    assert world.problems == ['90 s: nodes "nope" not found']


def test_finished_gangs_may_be_removed_at_once() -> None:
    for objects in (build.gang("a", tasks=2, gpus=1), kai.gang("a", tasks=2, gpus=1)):
        policy = kai.policy() if objects[0]["apiVersion"].startswith("scheduling.run.ai") else None
        world = worlds.world(nodes=1, gpus=2, policy=policy, settings=Settings(removes_finished=True))
        objects[0]["metadata"].setdefault("annotations", {})["phalanx.dev/duration"] = "5s"
        if policy is not None:
            world.load([kai.queue("team")])
            objects[0]["spec"]["queue"] = "team"
        worlds.submit(world, [*objects])
        worlds.run(world, 100)
        assert worlds.record(world, "a").finished == 6.0
        assert world.store.items(POD) == []
        assert world.cluster.snapshot(world.now).gangs == {}


def test_the_last_change_is_no_session_that_changes_nothing() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1), at=10)
    worlds.run(world, 5000)
    assert world.loop.count > 10
    assert world.last_change - world.start == 10


def test_what_is_counted_in_a_queue_wakes_nobody() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.run(world, 5)
    sessions, last = world.loop.count, world.last_change
    world.store.patch(QUEUE, "", "default", {"status": {"running": 3}}, is_status=True)
    worlds.run(world, 10)
    assert (world.loop.count, world.last_change) == (sessions, last)
    world.store.patch(QUEUE, "", "default", {"status": {"state": "Closed"}}, is_status=True)
    worlds.run(world, 15)
    assert (world.loop.count, world.last_change) == (sessions + 1, world.start + 10)


def test_reasons_name_gangs_that_wait() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1))
    worlds.run(world, 10)
    assert list(world.reasons()) == ["default/a"]
