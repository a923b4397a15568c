"""Time limits, pauses and places that are held: the plugin coscheduling."""

from typing import Any

import pytest

from phalanx.config.policies import policy_of, policy_of_profile
from phalanx.errors import ConfigError
from phalanx.explain.events import GangEvent, gang_events
from phalanx.model.kinds import GROUP_BY_DIALECT, POD
from phalanx.plugins.coscheduling import LAST_FAILURE, WAITS_SINCE
from phalanx.session.policy import Policy
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import sim_worlds as worlds

PHALANX = policy_of_profile("phalanx")
KIND = GROUP_BY_DIALECT["coscheduling"]


def policy(**arguments: Any) -> Policy:
    tier: list[Any] = [{"name": "coscheduling", "arguments": arguments}, "priority", "gang"]
    actions = [{"name": "allocate", "arguments": {"nominatedFirst": True}}]
    return build.policy((tier, ("predicates", "nodeorder")), "allocate", configurations=actions)


OPTIMISTIC = policy(reservation="optimistic", podGroupRejectPercentage=100)


def world(nodes: int = 2, **more: Any) -> World:
    return worlds.world(nodes=nodes, policy=more.pop("policy", OPTIMISTIC), **{"cpu": 2, **more})


def held(world: World) -> dict[str, str]:
    """Return the nodes that are kept for pods."""
    pods = world.store.items(POD)
    return {pod["metadata"]["name"]: node for pod in pods if (node := pod["status"].get("nominatedNodeName"))}


def stamps(world: World, name: str = "train") -> dict[str, str]:
    annotations: dict[str, str] = world.store.get(KIND, "default", name)["metadata"].get("annotations", {})
    return annotations


def told(world: World) -> list[GangEvent]:
    found: list[GangEvent] = []
    world.loop.decided.append(lambda _, decisions: found.extend(gang_events(decisions)))
    return found


# --- holding ---------------------------------------------------------------------------------------------------------------


def test_an_optimistic_gang_keeps_the_places_that_it_found() -> None:
    there = world()
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2))
    worlds.submit(there, sigs.gang("small", tasks=1, cpu=2), at=5)
    worlds.run(there, 30)
    assert held(there) == {"train-0": "node-0", "train-1": "node-1"}
    assert set(worlds.phases(there.store).values()) == {"Pending"}
    assert there.reasons()["default/train"] == (
        "2 of 3 tasks fit; 1 more place for 2 cpu needed (2 nodes: 2 lack cpu (0 of 4 are free, 2 needed));"
        " 2 of 3 tasks keep a place until the others have one"
    )


def test_a_pessimistic_gang_keeps_nothing() -> None:
    there = world(policy=policy())
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2))
    worlds.submit(there, sigs.gang("small", tasks=1, cpu=2), at=5)
    worlds.run(there, 30)
    assert held(there) == {}
    assert worlds.phases(there.store)["small-0"] == "Running"


def test_kept_places_become_binds_in_one_session_when_the_last_one_is_found() -> None:
    there = world()
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2))
    there.plan(20, lambda: there.store.create(build.node("node-2", cpu=2)))
    binds: list[dict[Any, str]] = []
    there.loop.decided.append(lambda _, decisions: binds.append(dict(decisions.binds)))
    worlds.run(there, 40)
    assert [found for found in binds if found] == [
        {"default/train-0": "node-0", "default/train-1": "node-1", "default/train-2": "node-2"}
    ]
    assert stamps(there) == {}


def test_a_more_important_gang_does_not_take_places_that_are_kept() -> None:
    there = world()
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2))
    worlds.submit(there, sigs.gang("urgent", tasks=1, cpu=2, pod_spec={"priority": 9}), at=5)
    worlds.run(there, 30)
    assert worlds.phases(there.store)["urgent-0"] == "Pending"


@pytest.mark.parametrize(("tasks", "places", "kept"), [(9, 8, 0), (10, 9, 9), (10, 8, 0), (20, 18, 18)])
def test_surprise_7_ten_percent_are_nothing_below_ten_members(tasks: int, places: int, kept: int) -> None:
    there = world(nodes=places, policy=policy(reservation="optimistic"))
    worlds.submit(there, sigs.gang("train", tasks=tasks, cpu=2))
    worlds.run(there, 5)
    assert len(held(there)) == kept


def test_surprise_2_nothing_is_kept_while_gated_members_are_needed() -> None:
    group, *pods = sigs.gang("train", tasks=3, cpu=2)
    pods[2]["spec"]["schedulingGates"] = [{"name": "later"}]
    there = world(nodes=3)
    worlds.submit(there, [group, *pods])
    worlds.run(there, 30)
    assert held(there) == {}
    assert "held back by the scheduling gate 'later'" in there.reasons()["default/train"]


def test_a_gang_that_is_not_strict_keeps_its_places_whatever_the_configuration_says() -> None:
    there = world(policy=PHALANX)
    worlds.submit(there, sigs.koordinator_gang("train", tasks=3, cpu=2, mode="NonStrict"))
    worlds.run(there, 30)
    assert len(held(there)) == 2
    worlds.run(there, 605)
    assert LAST_FAILURE in there.store.get(GROUP_BY_DIALECT["koordinator"], "default", "train")["metadata"]["annotations"]


def test_surprise_9_a_waiting_time_of_an_hour_is_an_hour() -> None:
    there = world(policy=PHALANX)
    worlds.submit(there, sigs.koordinator_gang("train", tasks=3, cpu=2, mode="NonStrict", waiting_time="1h"))
    worlds.run(there, 3595)
    assert len(held(there)) == 2
    events = told(there)
    worlds.run(there, 3602)
    assert [(item.reason, item.is_warning) for item in events] == [("ScheduleTimeout", True)]


def test_a_gang_that_pods_make_keeps_places_only_while_its_time_runs() -> None:
    there = world(policy=PHALANX)
    pods = [
        sigs.describing_pod(f"train-{number}", "train", min_available="3", mode="NonStrict", waiting_time="2m", cpu=2)
        for number in range(3)
    ]
    worlds.submit(there, pods)
    worlds.run(there, 60)
    assert len(held(there)) == 2
    worlds.run(there, 300)
    assert held(there) == {}


# --- time ------------------------------------------------------------------------------------------------------------------


def test_when_the_time_is_up_places_are_given_back_and_an_event_says_so() -> None:
    there = world(policy=policy(reservation="optimistic", podGroupRejectPercentage=100, podGroupBackoffSeconds=30))
    events = told(there)
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2, spec={"scheduleTimeoutSeconds": 20}))
    worlds.run(there, 19)
    assert (len(held(there)), events) == (2, [])
    worlds.run(there, 21)
    assert held(there) == {}
    assert [(item.reason, item.message) for item in events] == [
        ("ScheduleTimeout", "not whole within 20 s; it gives back 2 places that it kept and is tried again in 30 s")
    ]
    assert there.reasons()["default/train"] == "it failed and pauses, tried again in 29 s"
    assert (WAITS_SINCE in stamps(there), LAST_FAILURE in stamps(there)) == (False, True)
    worlds.run(there, 52)
    assert len(held(there)) == 2


@pytest.mark.parametrize("chosen", [OPTIMISTIC, policy()], ids=["optimistic", "pessimistic"])
def test_the_argument_is_the_limit_of_groups_without_one_and_zero_is_none(chosen: Policy) -> None:
    there = world(policy=chosen)
    events = told(there)
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2, spec={"scheduleTimeoutSeconds": 0}))
    worlds.run(there, 59)
    assert events == []
    worlds.run(there, 62)
    assert [item.reason for item in events] == ["ScheduleTimeout"]


def test_the_profile_phalanx_knows_only_the_limits_of_groups() -> None:
    there = world(policy=PHALANX)
    events = told(there)
    worlds.submit(
        there, sigs.gang("plain", tasks=3, cpu=2), sigs.gang("train", tasks=3, cpu=2, spec={"scheduleTimeoutSeconds": 30})
    )
    worlds.run(there, 32)
    assert [(item.group.name, item.reason) for item in events] == [("train", "ScheduleTimeout")]
    assert stamps(there, "plain") == {}


def test_a_gang_that_starts_is_told_so_once_and_loses_its_stamps() -> None:
    there = world()
    events = told(there)
    worlds.submit(there, sigs.gang("train", tasks=2, cpu=2))
    worlds.run(there, 60)
    assert [(item.reason, item.message, item.is_warning) for item in events] == [
        ("Scheduled", "2 members have a place, 2 are needed", False)
    ]


def test_after_an_attempt_that_failed_a_gang_pauses_if_that_is_asked_for() -> None:
    there = world(policy=policy(podGroupBackoffSeconds=50))
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2))
    there.plan(10, lambda: there.store.create(build.node("node-2", cpu=2)))
    worlds.run(there, 49)
    assert set(worlds.phases(there.store).values()) == {"Pending"}
    worlds.run(there, 53)
    assert set(worlds.phases(there.store).values()) == {"Running"}


# --- order -----------------------------------------------------------------------------------------------------------------


def ordered(*gangs: list[Any], **arguments: Any) -> list[str]:
    """Return the gangs in the order in which they get a place each."""
    found = []
    cluster = build.cluster(nodes=1, policy=policy(**arguments), cpu=2).submit(*gangs)
    for _ in gangs:
        ((pod, _),) = cluster.run_cycle(now=1000.0).binds
        found.append(pod.rpartition("-")[0])
        cluster.remove("Pod", pod)
    return found


def aged(name: str, second: int, *, failed: int | None = None, priority: int = 0) -> list[Any]:
    group, *pods = sigs.gang(name, cpu=2, pod_spec={"priority": priority})
    group["metadata"]["creationTimestamp"] = f"1970-01-01T00:00:{second:02}Z"
    if failed is not None:
        group["metadata"]["annotations"] = {LAST_FAILURE: f"1970-01-01T00:00:{failed:02}Z"}
    return [group, *pods]


def test_the_order_is_priority_then_the_time_of_the_last_failure_or_creation_then_the_name() -> None:
    gangs = [aged("e", 1), aged("d", 30), aged("c", 10, failed=20), aged("b", 10), aged("a", 10), aged("late", 50, priority=5)]
    assert ordered(*gangs) == ["late", "e", "a", "b", "c", "d"]


# --- an early check --------------------------------------------------------------------------------------------------------


def test_min_resources_beyond_what_is_free_are_refused_before_any_place_is_looked_for() -> None:
    cluster = build.cluster(nodes=2, policy=policy(), cpu=2).submit(build.gang("other", cpu=1))
    cluster.carry_out(cluster.run_cycle())
    cluster.submit(sigs.gang("train", tasks=1, cpu=1, spec={"minResources": {"cpu": "4"}}))
    assert cluster.run_cycle().binds == []
    assert cluster.why("train") == "its minResources ask for 4 cpu in all, free are 3"
    cluster.remove("Pod", "other-0")
    assert len(cluster.run_cycle().binds) == 1


def test_what_others_hold_counts_where_they_can_be_evicted() -> None:
    cluster = build.cluster(nodes=2, policy=PHALANX, cpu=2).submit(build.gang("other", cpu=1))
    cluster.carry_out(cluster.run_cycle())
    cluster.submit(sigs.gang("train", tasks=1, cpu=1, spec={"minResources": {"cpu": "4"}}))
    assert len(cluster.run_cycle().binds) == 1
    cluster.submit(sigs.gang("huge", tasks=1, cpu=1, spec={"minResources": {"cpu": "5"}}))
    cluster.run_cycle()
    assert cluster.why("huge") == "its minResources ask for 5 cpu in all, there are 4"


def test_names_of_quotas_in_min_resources_are_no_resources() -> None:
    cluster = build.cluster(nodes=1, policy=policy(), cpu=2)
    cluster.submit(sigs.gang("train", tasks=1, cpu=1, spec={"minResources": {"cpu": "1", "count/pods": "1", "limits.cpu": "2"}}))
    assert len(cluster.run_cycle().binds) == 1


# --- settings --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"podGroupBackoffSeconds": -1}, "argument 'podGroupBackoffSeconds': -1.0 is not a number of 0 or more"),
        ({"permitWaitingTimeSeconds": "soon"}, "argument 'permitWaitingTimeSeconds': 'soon' is not a number"),
        ({"podGroupRejectPercentage": 101}, "101 is not a percentage; write a whole number from 0 to 100"),
        ({"reservation": "hopeful"}, "'hopeful' is unknown; write 'optimistic' or 'pessimistic'"),
        ({"reservations": "optimistic"}, "unknown setting; did you mean 'reservation'?"),
    ],
)
def test_a_wrong_argument_says_what_to_write(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        policy_of({"actions": "allocate", "tiers": [{"plugins": [{"name": "coscheduling", "arguments": arguments}]}]})
    assert message in str(problem.value)
