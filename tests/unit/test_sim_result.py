"""The result of a simulation: one plain dict."""

import json
from typing import Any

import pytest

from phalanx.sim.result import Run, distribution, result
from phalanx.sim.settings import Settings
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds


def simulated(seconds: float = 100, **settings: Any) -> World:
    """Return a world in which one gang ran from 1 to 61 and another from 62 on, on two GPUs."""
    world = worlds.world(nodes=2, gpus=1, settings=Settings(**settings))
    worlds.submit(world, worlds.gang("a", tasks=2, duration="60s", gpus=1), worlds.gang("b", tasks=2, gpus=1))
    worlds.run(world, seconds)
    return world


def found(world: World, **run: Any) -> dict[str, Any]:
    return result(world, Run("volcano", seed=7, **run))


def test_it_has_the_keys_that_others_read() -> None:
    answer = found(simulated())
    assert list(answer) == [
        "profile", "seed", "start", "seconds", "ending", "resource", "gangs", "evictions", "timeouts", "deadlocks", "metrics",
        "nodes", "queues",
    ]  # fmt: skip
    assert list(answer["metrics"]) == [
        "allocation", "occupancy", "fragmentation", "sessions", "gangs", "started", "finished", "waiting", "evictions",
        "evictedGangs", "goodput", "lostWork", "goodputPart", "lostPart", "makespan", "slowdown", "fairness", "belowDeserved",
        "wait", "waitByQueue", "waitBySize",
    ]  # fmt: skip
    assert list(answer["metrics"]["wait"]) == ["count", "mean", "p50", "p90", "p99", "max"]
    assert (answer["profile"], answer["seed"], answer["start"]) == ("volcano", 7, "2026-01-01T00:00:00Z")
    assert json.loads(json.dumps(answer)) == answer


def test_work_is_either_useful_or_lost() -> None:
    world = worlds.world(nodes=2, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=2, duration="60s", gpus=1))
    world.plan(31, lambda: world.faults.fail("default", "a-0"))
    worlds.run(world, 200)
    metrics = found(world)["metrics"]
    assert (metrics["lostWork"], metrics["goodput"]) == (pytest.approx(60.0, abs=2), 120.0)
    assert metrics["goodputPart"] + metrics["lostPart"] == pytest.approx(metrics["occupancy"], abs=0.01)
    assert metrics["goodputPart"] == pytest.approx(120 / 400)


def test_a_gang_that_never_started_counts_with_the_slowdown_that_it_has_at_least() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("large", tasks=2, duration="60s", gpus=1))
    worlds.run(world, 240)
    answer = found(world)
    assert answer["gangs"][0]["slowdown"] == pytest.approx((240 + 60) / 60)
    assert answer["metrics"]["makespan"] == 240.0


def test_gangs_have_their_times() -> None:
    first, second = found(simulated())["gangs"]
    assert first == {
        "name": "default/a", "queue": "default", "priority": 0, "tasks": 2, "minimum": 2, "amount": 2.0, "submitted": 0.0,
        "started": 1.0, "finished": 61.0, "evicted": 0, "wait": 1.0, "run": 60.0, "spans": [[1.0, 61.0]], "why": "",
        "slowdown": 1.016667,
    }  # fmt: skip
    assert (second["started"], second["finished"], second["run"], second["spans"]) == (62.0, None, 38.0, [[62.0, None]])


def test_metrics_are_averages_over_time() -> None:
    metrics = found(simulated())["metrics"]
    assert metrics["allocation"] == pytest.approx(1.0)
    assert metrics["occupancy"] == pytest.approx(0.98)
    assert (metrics["gangs"], metrics["started"], metrics["finished"], metrics["waiting"]) == (2, 2, 1, 0)
    assert metrics["makespan"] == 100.0, "the second gang has not ended"
    assert metrics["wait"] == metrics["waitByQueue"]["default"] == metrics["waitBySize"]["2-8"]
    assert (metrics["wait"]["mean"], metrics["wait"]["max"]) == (31.5, 62.0)


def test_a_gang_that_has_not_started_counts_with_its_wait_until_the_end() -> None:
    answer = found(simulated(40))
    waiting = answer["gangs"][1]
    assert (waiting["started"], waiting["wait"]) == (None, 40.0)
    assert waiting["why"].startswith("0 of 2 tasks fit")
    assert answer["metrics"]["wait"]["max"] == 40.0
    assert answer["metrics"]["waiting"] == 1


@pytest.mark.parametrize(("keeps_progress", "lost"), [(False, 2 * 29.0), (True, 0.0)])
def test_lost_work_is_what_was_begun_anew(keeps_progress: bool, lost: float) -> None:
    world = simulated(20, keeps_progress=keeps_progress)
    world.plan(30, lambda: world.faults.fail("default", "a-0"))
    worlds.run(world, 500)
    assert found(world)["metrics"]["lostWork"] == pytest.approx(lost)


def test_nodes_and_queues_are_pictures_of_at_most_200_columns() -> None:
    answer = found(simulated())
    nodes, queue = answer["nodes"], answer["queues"]["default"]
    assert nodes["names"] == ["node-0", "node-1"]
    assert len(nodes["times"]) == len(nodes["held"][0]) == len(queue["held"]) == len(queue["deserved"]) == 200
    assert nodes["held"][0][100] == 1.0
    assert (queue["held"][100], queue["deserved"][100]) == (2.0, 2.0)


def test_many_nodes_are_shown_in_groups() -> None:
    world = worlds.world(nodes=450, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=450, gpus=1))
    worlds.run(world, 10)
    nodes = found(world)["nodes"]
    assert len(nodes["names"]) == 150
    assert nodes["names"][:2] == ["node-0..node-2", "node-3..node-5"]
    assert all(row[-1] == 1.0 for row in nodes["held"])


def deadlocked(seconds: float) -> World:
    policy = build.policy((("predicates",),), "allocate")
    world = worlds.world(nodes=3, gpus=1, policy=policy, is_solo=True)
    worlds.submit(world, *(worlds.gang(name, tasks=3, duration="60s", gpus=1) for name in ("a", "b")), at=10)
    worlds.run(world, seconds)
    return world


def test_gangs_that_block_each_other_are_a_deadlock_after_a_while_or_in_a_quiet_cluster() -> None:
    expected = [{"since": 10.0, "gangs": ["default/a", "default/b"], "holds": 3.0}]
    assert found(deadlocked(600))["deadlocks"] == expected
    assert found(deadlocked(200))["deadlocks"] == []
    assert found(deadlocked(200), is_quiet=True)["deadlocks"] == expected
    assert found(simulated(40), is_quiet=True)["deadlocks"] == []


def test_an_end_before_the_last_moment_of_the_world_is_the_end() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=1, duration="9s", gpus=1))
    worlds.run(world, 1000)
    answer = found(world, end=10.0)
    assert (answer["seconds"], answer["metrics"]["allocation"]) == (10.0, 1.0)


def test_a_cluster_in_which_nothing_happens_has_a_result_too() -> None:
    answer = found(worlds.world(nodes=0))
    assert (answer["gangs"], answer["nodes"], answer["queues"]) == ([], {"names": [], "times": [], "held": []}, {})
    assert answer["metrics"]["wait"] == {"count": 0, "mean": 0.0, "p50": 0.0, "p90": 0.0, "p99": 0.0, "max": 0.0}


def test_a_distribution_has_its_percentiles() -> None:
    assert distribution(range(101)) == {"count": 101, "mean": 50.0, "p50": 50.0, "p90": 90.0, "p99": 99.0, "max": 100.0}
