"""Faults: nodes that die, return, are drained, leave and join; pods that fail."""

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.dialects.bind_requests import FAILED_BINDS, failed_binds, failed_binds_document
from phalanx.errors import Missing
from phalanx.model.kinds import POD, kind_of
from phalanx.model.task import FailedBind
from phalanx.sim.settings import Settings
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds
from tests.support import volcano_jobs as jobs


def running(**settings: object) -> World:
    """Return a world in which a gang of two runs on two nodes of three, and a third node is free."""
    world = worlds.world(nodes=3, gpus=1, settings=Settings(**settings))  # type: ignore[arg-type]  # passed on
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1))
    worlds.run(world, 10)
    return world


def places(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in world.store.items(POD)}


def test_pods_of_a_dead_node_come_back_elsewhere() -> None:
    world = running()
    dead = places(world)["a-0"]
    world.faults.die(dead)
    worlds.run(world, 20)
    assert dead not in places(world).values()
    assert worlds.phases(world.store) == {"a-0": "Running", "a-1": "Running"}


def test_without_a_restart_they_stay_away() -> None:
    world = running(restart_after=None)
    world.faults.die(places(world)["a-0"])
    worlds.run(world, 1000)
    assert list(places(world)) == ["a-1"]


def test_nothing_is_placed_on_a_dead_node_until_it_returns() -> None:
    world = worlds.world(nodes=1, gpus=1)
    world.faults.die("node-0")
    world.faults.die("node-0")
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.run(world, 100)
    assert places(world) == {"a-0": ""}
    world.faults.come_back("node-0")
    worlds.run(world, 110)
    assert worlds.phases(world.store) == {"a-0": "Running"}


def test_a_cordoned_node_keeps_its_pods_and_takes_no_others() -> None:
    world = worlds.world(nodes=1, gpus=2)
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.submit(world, worlds.gang("b", tasks=1, gpus=1), at=20)
    worlds.run(world, 10)
    world.faults.cordon("node-0")
    worlds.run(world, 100)
    assert worlds.phases(world.store) == {"a-0": "Running", "b-0": "Pending"}
    world.faults.uncordon("node-0")
    worlds.run(world, 110)
    assert worlds.phases(world.store) == {"a-0": "Running", "b-0": "Running"}


def test_uncordoning_does_not_wake_the_dead() -> None:
    world = worlds.world(nodes=1, gpus=1)
    world.faults.die("node-0")
    world.faults.uncordon("node-0")
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.run(world, 100)
    assert places(world) == {"a-0": ""}


def test_a_drained_node_loses_its_pods_as_far_as_budgets_allow() -> None:
    world = running()
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {}}}, "status": {"disruptionsAllowed": 0},
    }  # fmt: skip
    drained = places(world)["a-0"]
    world.store.load(budget)
    world.faults.drain(drained)
    worlds.run(world, 20)
    assert places(world)["a-0"] == drained
    world.store.delete(kind_of(budget), "default", "keep")
    world.faults.drain(drained)
    worlds.run(world, 40)
    assert places(world)["a-0"] not in ("", drained)


def test_a_node_leaves_with_its_pods_and_another_joins() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.run(world, 10)
    world.faults.leave("node-0")
    worlds.run(world, 20)
    assert places(world) == {"a-0": ""}
    world.faults.join(build.node("node-9", gpus=1))
    worlds.run(world, 30)
    assert places(world) == {"a-0": "node-9"}


def test_a_node_that_left_may_join_again() -> None:
    world = worlds.world(nodes=1, gpus=1)
    world.faults.leave("node-0")
    world.faults.join(build.node("node-0", gpus=1))
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.run(world, 10)
    assert worlds.phases(world.store) == {"a-0": "Running"}


def test_ended_pods_lose_nothing_with_their_node() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=1, duration="5s", gpus=1))
    worlds.run(world, 10)
    for fault in ("drain", "die", "leave"):
        world.faults.by_name[fault]("node-0")
        worlds.run(world, world.now - world.start + 20)
        assert worlds.phases(world.store) == {"a-0": "Succeeded"}
    assert worlds.record(world, "a").finished == 6.0


def test_a_failed_pod_comes_back_and_an_ended_one_cannot_fail() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=1, duration="60s", gpus=1))
    worlds.run(world, 10)
    world.faults.fail("default", "a-0")
    worlds.run(world, 30)
    assert worlds.phases(world.store) == {"a-0": "Running"}
    worlds.run(world, 200)
    world.faults.fail("default", "a-0")
    assert worlds.phases(world.store) == {"a-0": "Succeeded"}


@pytest.mark.parametrize("fault", ["die", "return", "drain", "cordon", "uncordon", "leave"])
def test_nothing_can_happen_to_a_node_that_does_not_exist(fault: str) -> None:
    world = worlds.world(nodes=1)
    with pytest.raises(Missing):
        world.faults.by_name[fault]("nope")
    worlds.submit(world, worlds.gang("a", tasks=1))
    worlds.run(world, 10)
    assert worlds.phases(world.store) == {"a-0": "Running"}


def test_a_pod_that_a_controller_cares_for_fails_and_stays_until_that_decides() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("train", jobs.task("worker")))
    ward.run(10)
    ward.fail("train-worker-0")
    ward.run(20)
    status = ward.pod("train-worker-0")["status"]
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1


# --- binds that are refused ----------------------------------------------------------------------------------------------


def refusing(profile: str, *nodes: str) -> World:
    """Return a world of three nodes, of which some refuse binds for ever, with a gang of two that fits on any two of them."""
    world = worlds.world(nodes=3, gpus=1, policy=policy_of_profile(profile))
    for node in nodes:
        world.faults.refuse_binds(node, float("inf"))
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1))
    worlds.run(world, 120)
    return world


@pytest.mark.parametrize("node", ["node-0", "node-1", "node-2"])
def test_a_gang_that_one_node_refuses_starts_as_a_whole_on_others(node: str) -> None:
    world = refusing("phalanx", node)
    assert sorted(places(world).values()) == sorted({"node-0", "node-1", "node-2"} - {node})


@pytest.mark.parametrize(("profile", "why"), [("phalanx", "bind to node-"), ("volcano", "the last bind of pod a-")])
def test_a_gang_that_every_node_refuses_is_rolled_back_and_says_why_it_waits(profile: str, why: str) -> None:
    world = refusing(profile, "node-0", "node-1", "node-2")
    assert set(places(world).values()) == {""}
    assert world.reasons()["default/a"].startswith(why)


@pytest.mark.parametrize("profile", ["volcano", "kai"])
def test_a_gang_that_one_node_refuses_again_and_again_names_the_bind_under_why(profile: str) -> None:
    world = refusing(profile, "node-0")
    found = set()
    for _ in range(8):
        worlds.run(world, 0.5)
        found.add("of pod a-" in world.reasons()["default/a"])
    assert set(places(world).values()) != {"node-1", "node-2"}
    assert found == {True}


def test_a_refused_pod_keeps_what_was_said() -> None:
    world = refusing("phalanx", "node-0", "node-1", "node-2")
    (pod, *_) = (pod for pod in world.store.items(POD) if FAILED_BINDS in pod["metadata"]["annotations"])
    failures = failed_binds(pod["metadata"]["annotations"])
    assert all(failure.message.endswith(f"the scenario refuses binds to node {failure.node}") for failure in failures)


def test_a_long_message_is_cut_off() -> None:
    (written,) = failed_binds_document([FailedBind("n", 1, 0.0, "x" * 1000)])
    assert written["message"] == f"{'x' * 253}..."
