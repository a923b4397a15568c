"""The recorder: who held what, when, and the lives of gangs."""

from phalanx.model.resources import CPU, GPU
from phalanx.sim.recorder import HoldingChange
from phalanx.sim.settings import Settings
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support import sim_worlds as worlds


def test_what_is_held_is_noted_by_node_and_queue_and_let_go_at_the_end() -> None:
    world = worlds.world(nodes=1, gpus=4)
    worlds.submit(world, worlds.gang("a", tasks=1, duration="10s", gpus=3))
    worlds.run(world, 100)
    assert world.recorder.changes == [HoldingChange(0.0, "node-0", "default", 3.0), HoldingChange(11.0, "node-0", "default", -3.0)]
    assert world.recorder.useful == [(1.0, 3.0), (11.0, 0.0)]


def test_a_gang_that_runs_from_the_beginning_is_recorded_from_0() -> None:
    world = worlds.world(nodes=2, gpus=1)
    pods = [build.in_group("a", build.pod(f"a-{number}", on=f"node-{number}", gpus=1)) for number in (0, 1)]
    world.load([build.pod_group("a", min_member=2, phase="Running"), *pods])
    worlds.run(world, 5)
    record = worlds.record(world, "a")
    assert (record.submitted, record.started, record.amount, record.spans) == (0.0, 0.0, 2.0, [(0.0, None)])
    assert world.recorder.resource == GPU


def test_a_half_started_gang_holds_since_its_first_pod_has_a_place() -> None:
    world = worlds.world(nodes=1, gpus=1)
    group, first, second = build.gang("a", tasks=2, gpus=1)
    first["spec"]["nodeName"], first["status"] = "node-0", {"phase": "Running"}
    world.load([group, first, second])
    worlds.run(world, 50)
    assert worlds.record(world, "a").held_since == 0.0
    world.faults.die("node-0")
    worlds.run(world, 60)
    assert worlds.record(world, "a").held_since is None


def test_capacity_follows_nodes_that_die_and_return() -> None:
    world = worlds.world(nodes=1, gpus=8)
    world.plan(10, lambda: world.faults.die("node-0"))
    world.plan(20, lambda: world.faults.come_back("node-0"))
    world.plan(30, lambda: world.faults.leave("node-0"))
    worlds.run(world, 40)
    assert world.recorder.capacity_changes == [
        (0.0, "node-0", 8.0),
        (10.0, "node-0", 0.0),
        (20.0, "node-0", 8.0),
        (30.0, "node-0", 0.0),
    ]


def test_without_gpus_cpus_are_counted() -> None:
    world = worlds.world(nodes=1, cpu=4, settings=Settings())
    worlds.submit(world, worlds.gang("a", tasks=1, cpu="1500m"))
    worlds.run(world, 5)
    assert world.recorder.resource == CPU
    assert [change.amount for change in world.recorder.changes] == [1.5]
    world.load([build.queue("other")])
    assert world.recorder.resource == CPU


def test_a_part_of_a_gpu_counts_as_that_part() -> None:
    world = worlds.world(nodes=1, gpus=1)
    pod = build.pod("x", on="node-0")
    pod["metadata"]["annotations"]["gpu-fraction"] = "0.25"
    world.load([pod])
    assert [change.amount for change in world.recorder.changes] == [0.25]


def test_what_queues_deserve_is_noted_when_it_changes() -> None:
    for policy in (build.policy(), kai.policy()):
        world = worlds.world(nodes=2, gpus=4, policy=policy)
        worlds.submit(world, worlds.gang("a", tasks=1, duration="10s", gpus=4))
        worlds.run(world, 5)
        assert [(queue, amount) for _, queue, amount in world.recorder.deserved if queue == "default"] in (
            [("default", 4.0)],
            [("default", 8.0)],
        )
