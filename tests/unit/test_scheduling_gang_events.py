"""Events about gangs: one for each thing that happens, and none about pods that are just being created."""

from collections.abc import Callable

from phalanx.config.policies import policy_of_profile
from phalanx.controllers.controller import RecordEvent
from phalanx.model.kinds import NODE
from phalanx.scheduling.events import SessionEvents
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import pod_made_gangs as made
from tests.support import sim_worlds as worlds


def watched(profile: str = "coscheduling") -> tuple[World, list[RecordEvent]]:
    """Return a served world with room for two pods, and what is recorded about groups in it."""
    there = worlds.world(nodes=2, cpu=2, policy=policy_of_profile(profile), is_served=True)
    SessionEvents(there.port, there.loop, behind_gates=dict)
    found: list[RecordEvent] = []
    there.on_event(found.append)
    return there, found


def about_groups(events: list[RecordEvent], test: Callable[[RecordEvent], bool] = lambda event: True) -> list[tuple[str, str]]:
    return [(event.reason, event.message) for event in events if event.about["kind"] == "PodGroup" and test(event)]


def test_a_timeout_is_one_event() -> None:
    there, events = watched()
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2, spec={"scheduleTimeoutSeconds": 30}))
    worlds.run(there, 25)
    assert [reason for reason, _ in about_groups(events)] == ["FailedScheduling"]
    worlds.run(there, 45)
    assert about_groups(events)[1:] == [("ScheduleTimeout", "not whole within 30 s; it is tried again in the next session")]


def test_a_gang_that_only_waits_is_no_problem_of_the_cluster() -> None:
    there, events = watched("phalanx")
    worlds.submit(there, build.gang("train", tasks=3, cpu=2))
    worlds.run(there, 5)
    assert [reason for reason, _ in about_groups(events)] == ["FailedScheduling"]
    assert there.problems == []


def test_another_reason_after_a_timeout_is_reported() -> None:
    there, events = watched()
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2, spec={"scheduleTimeoutSeconds": 30}))
    worlds.run(there, 35)
    there.store.create(build.node("node-2", cpu=1))
    worlds.run(there, 50)
    assert [reason for reason, _ in about_groups(events)] == ["FailedScheduling", "ScheduleTimeout"]
    for name in ("node-0", "node-1", "node-2"):
        there.store.patch(NODE, "", name, {"spec": {"unschedulable": True}})
    worlds.run(there, 60)
    assert [reason for reason, _ in about_groups(events)] == ["FailedScheduling", "ScheduleTimeout", "FailedScheduling"]
    assert "3 are cordoned" in about_groups(events)[-1][1]


def test_pods_that_come_one_after_the_other_are_waited_for() -> None:
    there, events = watched()
    group, *pods = sigs.gang("train", tasks=2, cpu=2)
    for number, document in enumerate((group, *pods)):
        worlds.submit(there, [document], at=number)
    worlds.run(there, 20)
    assert [reason for reason, _ in about_groups(events)] == ["Scheduled"]


def test_pods_that_do_not_come_are_reported_as_missing() -> None:
    there, events = watched()
    worlds.submit(there, sigs.gang("train", tasks=1, min_member=2, cpu=2))
    worlds.run(there, 20)
    assert ("Quarantined", "1 of 2 pods exist; create 1 more pod, or write 1 in spec.minMember") in about_groups(events)


def test_a_gang_of_pods_alone_has_its_event_on_the_pod_that_describes_it() -> None:
    there, events = watched("phalanx")
    worlds.submit(there, made.application("spark", {"driver": 1, "executor": 2}, cpu=2))
    worlds.run(there, 5)
    ((name, text),) = [(event.about["metadata"]["name"], event.message) for event in events if event.reason == "FailedScheduling"]
    assert (name, text.partition(";")[0]) == ("spark-driver-0", "2 of 3 tasks fit (executor: 1 of 2)")
