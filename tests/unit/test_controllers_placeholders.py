"""Applications whose originator makes the other pods once it runs, in virtual time: placeholders come, keep room, and go."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.controllers.controller import Key, RecordEvent
from phalanx.controllers.placeholders import IMAGE, is_placeholder
from phalanx.controllers.yunikorn import YuniKornController
from phalanx.dialects.group_references import YUNIKORN_APP
from phalanx.dialects.pods import PLACEHOLDER, REPLACES, TASK_GROUP
from phalanx.dialects.yunikorn import DEGRADED, RELEASED, STARTED, TASK_GROUPS, task_groups
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD
from phalanx.model.kinds import Document as Kept
from phalanx.sim.world import World
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import pod_made_gangs as made
from tests.support import sim_worlds as worlds

GROUPS = {"driver": 1, "executor": 3}
PATIENCE = "placeholderTimeoutInSeconds=60 gangSchedulingStyle="


def world(**more: Any) -> World:
    return worlds.world(controllers=(YuniKornController(),), **more)


def driver(name: str = "spark", *, policy: str = "", **more: Any) -> list[Document]:
    """Return the first pod of an application, the others of which come later."""
    return made.application(name, GROUPS, policy=policy, **{"cpu": 1, **more})[:1]


def executors(name: str = "spark", count: int = 3, **more: Any) -> list[Document]:
    return [made.application_pod(f"{name}-exec-{number}", name, "executor", **{"cpu": 1, **more}) for number in range(count)]


def pods(found: World) -> dict[str, Kept]:
    return {pod["metadata"]["name"]: pod for pod in found.store.items(POD) if not is_placeholder(pod)}


def placeholders(found: World, application: str = "spark") -> list[Kept]:
    names = (pod for pod in found.store.items(POD) if pod["metadata"]["labels"].get(YUNIKORN_APP) == application)
    return [pod for pod in names if is_placeholder(pod)]


def nodes_of(pods: Sequence[Kept]) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in pods)


def listen(found: World) -> list[RecordEvent]:
    told: list[RecordEvent] = []
    found.on_event(told.append)
    return told


def phases(found: World) -> dict[str, str]:
    return {name: pod["status"]["phase"] for name, pod in pods(found).items()}


# --- the trace of an application ----------------------------------------------------------------------------------------


def test_a_driver_starts_with_room_for_its_executors_and_they_take_it_when_they_come() -> None:
    found = world(nodes=2, cpu=2)
    worlds.submit(found, driver())
    worlds.submit(found, executors(), at=15)
    worlds.run(found, 10)
    assert phases(found) == {"spark-driver-0": "Running"}
    kept = nodes_of(placeholders(found))
    assert len(kept) == 3
    assert "" not in kept
    worlds.run(found, 30)
    assert set(phases(found).values()) == {"Running"}
    assert placeholders(found) == []
    assert nodes_of([pod for name, pod in pods(found).items() if "exec" in name]) == kept
    assert found.recorder.evictions == []
    assert found.problems == []


@pytest.mark.parametrize("profile", ["phalanx", "volcano", "kai", "coscheduling"])
def test_nobody_takes_the_room_of_a_placeholder_that_goes_whichever_profile_decides(profile: str) -> None:
    found = world(nodes=2, cpu=2, policy=policy_of_profile(profile))
    greedy = [made.application_pod(f"greedy-{number}", "greedy", "", cpu=1) for number in range(3)]
    worlds.submit(found, driver())
    worlds.submit(found, greedy, at=12)
    for number, pod in enumerate(executors()):
        worlds.submit(found, [pod], at=15 + 7 * number)
    worlds.run(found, 60)
    assert {name for name, phase in phases(found).items() if phase == "Running"} == {
        "spark-driver-0", "spark-exec-0", "spark-exec-1", "spark-exec-2",
    }  # fmt: skip
    assert placeholders(found) == []
    assert found.recorder.evictions == []


def test_a_driver_for_whose_executors_there_is_no_room_waits_and_says_what_is_missing() -> None:
    found = world(nodes=1, cpu=2)
    worlds.submit(found, driver())
    worlds.run(found, 60)
    assert phases(found) == {"spark-driver-0": "Pending"}
    assert nodes_of(placeholders(found)) == [""] * 3
    assert found.reasons()["default/spark"].startswith("2 of 4 tasks fit (executor: 1 of 3)")


def test_of_two_applications_that_fit_only_alone_one_runs_whole_and_the_other_waits_whole() -> None:
    found = world(nodes=3, cpu=2)
    worlds.submit(found, driver("one"), driver("two"))
    worlds.submit(found, executors("one"), executors("two"), at=15)
    worlds.run(found, 60)
    assert {name: phase for name, phase in phases(found).items() if name.startswith("one")} == dict.fromkeys(
        ["one-driver-0", "one-exec-0", "one-exec-1", "one-exec-2"], "Running"
    )
    assert {phase for name, phase in phases(found).items() if name.startswith("two")} == {"Pending"}
    assert placeholders(found, "two") == []


def test_placeholders_of_billions_of_members_are_refused() -> None:
    huge = json.dumps([{"name": "executor", "minMember": 2**31 - 1, "minResource": {"cpu": 1}}])
    with pytest.raises(SnapshotError, match="placeholders of 2,147,483,647 members are too many"):
        task_groups({TASK_GROUPS: huge})


def test_pods_that_all_come_at_once_get_no_placeholders() -> None:
    found = world(nodes=1, cpu=2)
    worlds.submit(found, made.application("spark", GROUPS, cpu=1))
    worlds.run(found, 60)
    assert placeholders(found) == []


def test_pods_that_come_one_after_the_other_get_no_placeholders() -> None:
    found = world(nodes=2, cpu=2)
    for number, pod in enumerate(made.application("spark", GROUPS, cpu=1)):
        worlds.submit(found, [pod], at=number)
    made_ones: list[str] = []
    found.store.listen(lambda event: made_ones.append("one") if event.kind is POD and is_placeholder(event.object) else None)
    worlds.run(found, 60)
    assert set(phases(found).values()) == {"Running"}
    assert made_ones == []


def test_a_pod_that_comes_before_the_start_takes_the_part_of_a_placeholder() -> None:
    found = world(nodes=1, cpu=2)
    worlds.submit(found, driver())
    worlds.submit(found, executors(count=2), at=15)
    worlds.run(found, 30)
    assert len(placeholders(found)) == 1
    found.store.delete(POD, "default", "spark-exec-0")
    worlds.run(found, 40)
    assert len(placeholders(found)) == 2


def test_a_pod_larger_than_its_placeholder_goes_elsewhere_and_the_placeholder_goes_too() -> None:
    found = world(nodes=2, cpu=4)
    worlds.submit(found, worlds.gang("other", tasks=1, cpu=4))
    worlds.submit(found, driver(), at=1)
    worlds.submit(found, executors(count=1, cpu=3), at=15)
    worlds.run(found, 30)
    assert phases(found)["spark-exec-0"] == "Pending"
    assert len(placeholders(found)) == 3
    found.store.delete(POD, "default", "other-0")
    worlds.run(found, 60)
    assert phases(found)["spark-exec-0"] == "Running"
    assert len(placeholders(found)) == 2


def test_a_pod_of_no_task_group_starts_for_itself_and_takes_nobodys_room() -> None:
    found = world(nodes=2, cpu=2)
    worlds.submit(found, driver())
    worlds.submit(found, [made.application_pod("history", "spark", "", cpu=1)], at=15)
    worlds.run(found, 30)
    assert phases(found) == {"spark-driver-0": "Running", "history": "Pending"}
    assert len(placeholders(found)) == 3
    found.load([build.node("another", cpu=1)])
    worlds.run(found, 60)
    assert phases(found)["history"] == "Running"
    assert len(placeholders(found)) == 3


def test_pods_beyond_the_minimum_start_where_there_is_room() -> None:
    found = world(nodes=3, cpu=2)
    worlds.submit(found, driver())
    worlds.submit(found, executors(count=5), at=15)
    worlds.run(found, 60)
    assert list(phases(found).values()) == ["Running"] * 6
    assert placeholders(found) == []


def test_an_originator_of_no_task_group_starts_with_the_others_or_not_at_all() -> None:
    found = world(nodes=1, cpu=3)
    (first,) = driver()
    first["metadata"]["annotations"] = {TASK_GROUPS: json.dumps([{"name": "executor", "minMember": 3, "minResource": {"cpu": 1}}])}
    worlds.submit(found, [first])
    worlds.run(found, 30)
    assert nodes_of([first, *placeholders(found)]) == [""] * 4
    found.load([build.node("another", cpu=1)])
    worlds.run(found, 60)
    assert phases(found) == {"spark-driver-0": "Running"}
    assert "" not in nodes_of(placeholders(found))


def test_an_application_that_loses_executors_later_is_not_taken_for_a_broken_gang() -> None:
    found = world(nodes=2, cpu=2)
    worlds.submit(found, driver())
    worlds.submit(found, executors(), at=15)
    worlds.run(found, 30)
    for number in range(3):
        found.store.delete(POD, "default", f"spark-exec-{number}")
    worlds.run(found, 600)
    assert phases(found) == {"spark-driver-0": "Running"}
    assert found.recorder.evictions == []


# --- the end of patience -------------------------------------------------------------------------------------------------


def test_a_soft_application_without_room_goes_on_alone_and_its_placeholders_go() -> None:
    found = world(nodes=1, cpu=2)
    worlds.submit(found, driver(policy=f"{PATIENCE}Soft"))
    worlds.run(found, 59)
    assert phases(found) == {"spark-driver-0": "Pending"}
    worlds.run(found, 70)
    assert phases(found) == {"spark-driver-0": "Running"}
    assert placeholders(found) == []
    assert DEGRADED in pods(found)["spark-driver-0"]["metadata"]["annotations"]


def test_a_hard_application_without_room_fails_and_its_placeholders_go() -> None:
    found = world(nodes=1, cpu=2)
    worlds.submit(found, driver(policy=f"{PATIENCE}Hard"))
    worlds.run(found, 70)
    assert phases(found) == {"spark-driver-0": "Failed"}
    assert placeholders(found) == []


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_room_for_pods_that_do_not_come_is_given_back_a_while_after_the_start(style: str) -> None:
    found = world(nodes=2, cpu=2)
    told = listen(found)
    worlds.submit(found, worlds.gang("before", tasks=2, cpu=2, duration="40s"))
    worlds.submit(found, driver(policy=f"{PATIENCE}{style}"), at=1)
    worlds.submit(found, executors(count=1), at=60)
    worlds.run(found, 95)
    assert len(placeholders(found)) == 2
    worlds.run(found, 110)
    assert placeholders(found) == []
    assert {name: phase for name, phase in phases(found).items() if "spark" in name} == {
        "spark-driver-0": "Running", "spark-exec-0": "Running",
    }  # fmt: skip
    assert [event.message for event in told if event.reason == RELEASED] == [
        "room was kept for 2 more pods, and they did not come within 60 s; it is given back"
    ]
    worlds.run(found, 600)
    assert phases(found)["spark-driver-0"] == "Running"


# --- the end of an application -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [10.0, 30.0])
def test_placeholders_go_when_the_driver_is_deleted(at: float) -> None:
    found = world(nodes=2 if at < 20 else 1, cpu=2)
    worlds.submit(found, driver())
    found.plan(at, lambda: found.store.delete(POD, "default", "spark-driver-0"))
    worlds.run(found, at - 1)
    assert len(placeholders(found)) == 3
    worlds.run(found, at + 40)
    assert list(found.store.items(POD)) == []


def test_placeholders_go_when_the_driver_ends() -> None:
    found = world(nodes=2, cpu=2)
    (pod,) = driver()
    pod["metadata"]["annotations"]["phalanx.dev/duration"] = "20s"
    worlds.submit(found, [pod])
    worlds.run(found, 20)
    assert len(placeholders(found)) == 3
    worlds.run(found, 40)
    assert phases(found) == {"spark-driver-0": "Succeeded"}
    assert placeholders(found) == []


# --- what they are -------------------------------------------------------------------------------------------------------


def test_a_placeholder_is_what_its_task_group_says() -> None:
    toleration = {"key": "spot", "operator": "Exists"}
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    group = {
        "name": "executor", "minMember": 1, "minResource": {"cpu": 1, "memory": "2Gi"}, "labels": {"team": "a"},
        "annotations": {"note": "b"}, "nodeSelector": {"disk": "ssd"}, "tolerations": [toleration],
        "affinity": {"nodeAffinity": {}}, "topologySpreadConstraints": [spread],
    }  # fmt: skip
    (pod,) = driver()
    pod["metadata"]["annotations"][TASK_GROUPS] = json.dumps([{"name": "driver", "minMember": 1}, group])
    pod["spec"]["priorityClassName"] = "high"
    pod["metadata"] |= {"uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    found = world(nodes=1)
    found.load([{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}, pod])
    worlds.run(found, 5)
    (made_one,) = placeholders(found)
    meta, spec = made_one["metadata"], made_one["spec"]
    assert meta["labels"] == {"team": "a", YUNIKORN_APP: "spark"}
    assert (meta["annotations"][TASK_GROUP], meta["annotations"]["note"]) == ("executor", "b")
    assert [(owner["kind"], owner["name"]) for owner in meta["ownerReferences"]] == [("Pod", "spark-driver-0")]
    assert (spec["schedulerName"], spec["priorityClassName"], spec["nodeSelector"]) == ("yunikorn", "high", {"disk": "ssd"})
    assert (spec["tolerations"][0], spec["affinity"]) == (toleration, {"nodeAffinity": {}})
    assert {item["effect"] for item in spec["tolerations"][1:]} == {"NoExecute"}  # those that the API server adds
    assert spec["topologySpreadConstraints"] == [spread]
    (container,) = spec["containers"]
    asks = {"cpu": "1", "memory": "2Gi"}
    assert (container["image"], container["resources"]) == (IMAGE, {"requests": asks, "limits": asks})


@pytest.mark.parametrize("name", ["Spark_App.2026", "x" * 63])
def test_names_of_placeholders_can_be_names_whatever_the_application_is_called(name: str) -> None:
    found = world(nodes=1, cpu=2)
    (pod,) = driver()
    pod["metadata"]["labels"][YUNIKORN_APP] = name
    worlds.submit(found, [pod])
    worlds.run(found, 10)
    names = [item["metadata"]["name"] for item in placeholders(found, name)]
    assert len(set(names)) == 3
    assert all(len(item) <= 63 and item.replace("-", "").isalnum() and item == item.lower() for item in names)


def test_an_application_whose_name_is_an_annotation_has_placeholders_of_the_same_application() -> None:
    found = world(nodes=2, cpu=2)
    (pod,) = driver()
    pod["metadata"]["labels"] = {}
    pod["metadata"]["annotations"][YUNIKORN_APP] = "a name that no label could have"
    worlds.submit(found, [pod])
    worlds.run(found, 10)
    assert len(found.store.items(POD)) == 4
    assert "" not in nodes_of(found.store.items(POD))


def test_applications_of_another_scheduler_are_left_to_it() -> None:
    found = worlds.world(controllers=(YuniKornController(frozenset({"phalanx"})),), nodes=1, cpu=2)
    worlds.submit(found, driver(policy=f"{PATIENCE}Hard"))
    worlds.run(found, 100)
    assert phases(found) == {"spark-driver-0": "Pending"}
    assert placeholders(found) == []


def test_placeholders_of_another_scheduler_are_left_to_it_when_the_driver_has_gone() -> None:
    theirs = made.application_pod("tg-theirs", "spark", "executor", cpu=1)
    theirs["metadata"]["annotations"][PLACEHOLDER] = "true"
    found = worlds.world(controllers=(YuniKornController(frozenset({"phalanx"})),), nodes=1, cpu=2)
    worlds.submit(found, [theirs])
    worlds.run(found, 10)
    assert [pod["metadata"]["name"] for pod in placeholders(found)] == ["tg-theirs"]


def test_who_is_asked_again_has_nothing_to_write() -> None:
    found = world(nodes=2, cpu=2)
    worlds.submit(found, driver())
    worlds.submit(found, executors(count=2), at=15)
    for moment in (2, 10, 14, 30):
        worlds.run(found, moment)
        assert not YuniKornController().reconcile(found.store, Key("default", "spark")).writes
    assert STARTED in pods(found)["spark-driver-0"]["metadata"]["annotations"]
    assert len({pod["metadata"]["annotations"][REPLACES] for name, pod in pods(found).items() if "exec" in name}) == 2


# --- what a session promises ---------------------------------------------------------------------------------------------


def running_application(*coming: Document, on: Sequence[str]) -> build.Cluster:
    """Return a cluster on which a driver runs with placeholders on some nodes, and pods come."""
    first = made.application("spark", GROUPS, cpu=1)[0]
    first["metadata"]["annotations"][STARTED] = "2026-01-01T00:00:00Z"
    kept = [made.application_pod(f"tg-{number}", "spark", "executor", cpu=1) for number in range(len(on))]
    for pod, node in zip((first, *kept), ("node-0", *on), strict=True):
        pod["spec"]["nodeName"], pod["status"] = node, {"phase": "Running"}
    for pod in kept:
        pod["metadata"]["annotations"][PLACEHOLDER] = "true"
    return build.cluster(nodes=3, cpu=1).submit([first, *kept, *coming])


def coming(number: int, **marks: str) -> Document:
    (pod,) = executors(count=1)
    pod["metadata"]["name"] = pod["metadata"]["uid"] = f"exec-{number}"
    pod["metadata"]["annotations"] |= {REPLACES: marks["replaces"]} if "replaces" in marks else {}
    return {**pod, "status": {"phase": "Pending", "nominatedNodeName": marks.get("nominated", "")}}


def test_a_pod_stays_with_the_place_it_was_promised() -> None:
    for node in ("node-1", "node-2"):
        cycle = running_application(coming(0, nominated=node), on=["node-1", "node-2"]).run_cycle()
        assert cycle.answer["pipelined"] == {"default/exec-0": node}
        assert cycle.answer["evictions"] == {}


def test_the_place_of_a_placeholder_that_goes_for_one_pod_is_promised_to_no_other() -> None:
    first, second = coming(0, nominated="node-1", replaces="tg-0"), coming(1)
    cycle = running_application(first, second, on=["node-1", "node-2"]).run_cycle()
    assert cycle.answer["pipelined"] == {"default/exec-0": "node-1", "default/exec-1": "node-2"}


def test_a_pod_whose_placeholder_has_gone_takes_no_second_one() -> None:
    cycle = running_application(coming(0, nominated="node-2", replaces="tg-gone"), on=["node-2"]).run_cycle()
    assert cycle.binds == [("exec-0", "node-1")]
