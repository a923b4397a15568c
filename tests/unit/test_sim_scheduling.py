"""Sessions in virtual time: when they are held, and how what they decide is carried out."""

import itertools
from functools import partial

from phalanx.config.policies import policy_of_profile
from phalanx.model.kinds import GROUP_BY_DIALECT, POD
from phalanx.session.decision import Eviction
from phalanx.sim.settings import Delays, Settings, Span
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds

PREEMPTING = build.policy((("priority", "gang"), ("predicates", "proportion")), "allocate, gangpreempt")


def held_at(world: World) -> list[float]:
    """Return a list that will hold the moments of all sessions."""
    moments: list[float] = []
    world.loop.decided.append(lambda snapshot, decisions: moments.append(snapshot.now - world.start))
    return moments


def test_sessions_follow_changes_with_a_gap_and_beat_while_gangs_wait() -> None:
    world = worlds.world(nodes=1, gpus=1, settings=Settings(period=5, heartbeat=60))
    moments = held_at(world)
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1), at=10)
    worlds.submit(world, worlds.gang("b", tasks=2, gpus=1), at=11)
    worlds.run(world, 200)
    assert moments[:3] == [0.0, 10.0, 15.0]
    assert all(later - earlier >= 5 for earlier, later in itertools.pairwise(moments))
    assert moments[-3:] == [moments[-1] - 120, moments[-1] - 60, moments[-1]]


def test_without_anybody_waiting_there_are_no_more_sessions() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.run(world, 1000)
    assert world.next_time() is None


def test_a_bind_takes_its_delay_and_nobody_else_gets_the_place_meanwhile() -> None:
    world = worlds.world(nodes=1, gpus=1, settings=Settings(delays=Delays(bind=Span(10, 10))))
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.submit(world, worlds.gang("b", tasks=1, gpus=1), at=3)
    worlds.run(world, 9)
    assert [pod["spec"].get("nodeName") for pod in world.store.items(POD)] == [None, None]
    worlds.run(world, 100)
    assert worlds.phases(world.store) == {"a-0": "Running", "b-0": "Pending"}


def test_a_pod_that_was_deleted_before_its_bind_leaves_the_place_to_others() -> None:
    world = worlds.world(nodes=1, gpus=1, settings=Settings(delays=Delays(bind=Span(10, 10))))
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.submit(world, worlds.gang("b", tasks=1, gpus=1), at=1)
    world.plan(5, partial(world.store.delete, POD, "default", "a-0"))
    worlds.run(world, 100)
    assert worlds.phases(world.store) == {"b-0": "Running"}


def preempting() -> World:
    world = worlds.world(nodes=1, gpus=1, policy=PREEMPTING)
    world.load([{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}])
    group, pod = build.gang("low", tasks=1, gpus=1)
    pod["metadata"]["labels"] = {"app": "low"}
    worlds.submit(world, [group, pod])
    urgent, hurried = build.gang("high", tasks=1, gpus=1)
    urgent["spec"]["priorityClassName"] = hurried["spec"]["priorityClassName"] = "high"
    worlds.submit(world, [urgent, hurried], at=10)
    return world


def test_an_evicted_pod_goes_comes_back_and_is_recorded() -> None:
    world, heard = preempting(), list[Eviction]()
    world.loop.evictor.evicted.append(heard.append)
    worlds.run(world, 100)
    assert worlds.phases(world.store) == {"low-0": "Pending", "high-0": "Running"}
    assert [eviction.task.key for eviction in heard] == ["default/low-0"]
    assert (worlds.record(world, "low").evicted, len(world.recorder.evictions)) == (1, 1)
    assert world.recorder.evictions[0].preemptor == "default/high"


def test_an_eviction_that_a_budget_refuses_is_not_recorded() -> None:
    world = preempting()
    selector = {"matchLabels": {"app": "low"}}
    world.load([{
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": selector}, "status": {"disruptionsAllowed": 0},
    }])  # fmt: skip
    worlds.run(world, 100)
    assert worlds.phases(world.store) == {"low-0": "Running", "high-0": "Pending"}
    assert world.recorder.evictions == []


def test_looking_carries_nothing_out() -> None:
    world = worlds.world(nodes=1, gpus=1)
    world.submit([worlds.gang("a", tasks=1, gpus=1)])
    before = world.store.history.version
    _, decisions = world.look()
    assert len(decisions.outcomes) == 1
    assert world.store.history.version == before


def test_a_group_that_waits_for_admission_is_admitted_where_nobody_waits_for_a_place() -> None:
    world = worlds.world(nodes=1, gpus=1, policy=policy_of_profile("phalanx"))
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.submit(world, [build.pod_group("b", min_member=2)], at=100)
    worlds.run(world, 200)
    assert worlds.phases(world.store) == {"a-0": "Running"}
    assert world.store.get(GROUP_BY_DIALECT["volcano"], "default", "b")["status"]["phase"] == "Inqueue"


LENT = {"tdm.revocable-zone.rz1": "00:00-12:00"}
MIDNIGHT, NOON = 1767225600.0, 12 * 3600.0


def test_what_runs_is_moved_when_its_time_is_up_although_nobody_waits() -> None:
    policy = build.policy((("gang", {"name": "tdm", "arguments": LENT}),), "allocate, shuffle")
    for settings in (Settings(), Settings(parks_up_to=1800.0, heartbeat=600.0)):
        world = worlds.world(nodes=0, policy=policy, settings=settings, start=MIDNIGHT)
        world.load([build.node("lent", labels={"volcano.sh/revocable-zone": "rz1"}, cpu=2)])
        group, pod = worlds.gang("a", tasks=1, cpu=1, duration="20h")
        pod["metadata"]["annotations"] |= {"volcano.sh/preemptable": "true", "volcano.sh/revocable-zone": "*"}
        worlds.submit(world, [group, pod])
        worlds.run(world, NOON - 1)
        assert worlds.phases(world.store) == {"a-0": "Running"}
        worlds.run(world, NOON + 3600)
        assert worlds.phases(world.store) == {"a-0": "Pending"}


def test_a_cluster_whose_policy_moves_what_runs_comes_to_rest_with_the_last_pod() -> None:
    policy = build.policy((("gang", {"name": "tdm", "arguments": LENT}),), "allocate, shuffle")
    world = worlds.world(nodes=1, policy=policy, cpu=2)
    worlds.submit(world, worlds.gang("a", tasks=1, cpu=1, duration="1h"))
    worlds.run(world, 4 * 3600)
    assert world.next_time() is None
