"""Controllers around gangs that pods alone make, in virtual time: patience, gates, and pods that say nonsense."""

from collections.abc import Sequence
from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.controllers.builtin import ControllerSettings, standard_controllers
from phalanx.controllers.controller import Controller, Key, RecordEvent
from phalanx.controllers.kueue import ALL_GROUPS, KueueGateController
from phalanx.controllers.quarantine import MEMBERS, POD_ALONE, QuarantineController, QuarantineKey
from phalanx.controllers.yunikorn import YuniKornController
from phalanx.dialects.kueue import ADMISSION_GATE, TOPOLOGY_GATE, TOTAL_COUNT
from phalanx.dialects.yunikorn import DEGRADED, TASK_GROUPS
from phalanx.explain.gangs import gang_list
from phalanx.model.kinds import POD, Document
from phalanx.session.policy import Policy
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import pod_made_gangs as made
from tests.support import sim_worlds as worlds

GATE = KueueGateController(build.policy(), CATALOGUE)


def world(*controllers: Any, **more: Any) -> World:
    return worlds.world(controllers=controllers, **more)


def standard(policy: Policy) -> Sequence[Controller]:
    return standard_controllers(pair_for, ControllerSettings(scheduler=(policy, CATALOGUE)), has_admission=policy.has_admission)


def pods(found: World) -> dict[str, Document]:
    return {pod["metadata"]["name"]: pod for pod in found.store.items(POD)}


def listen(found: World) -> list[RecordEvent]:
    told: list[RecordEvent] = []
    found.on_event(told.append)
    return told


def quiet(found: World, controller: Any, key: Key) -> bool:
    """Tell whether a controller that is asked again has nothing to write."""
    return not controller.reconcile(found.store, key).writes


# --- YuniKorn: patience --------------------------------------------------------------------------------------------------


def too_large(style: str) -> Sequence[Document]:
    """Return an application of which two pods find room and two do not."""
    policy = f"placeholderTimeoutInSeconds=60 gangSchedulingStyle={style}"
    return made.application("spark", {"driver": 1, "executor": 3}, policy=policy, cpu=3)


@pytest.mark.parametrize("style", ["Soft", "Unknown"])
def test_a_soft_application_goes_on_one_by_one_after_its_timeout_and_says_so(style: str) -> None:
    found = world(YuniKornController(), nodes=2, cpu=4)
    told = listen(found)
    worlds.submit(found, too_large(style))
    worlds.run(found, 59)
    assert set(worlds.phases(found.store).values()) == {"Pending"}
    worlds.run(found, 70)
    assert sorted(worlds.phases(found.store).values()) == ["Pending", "Pending", "Running", "Running"]
    assert pods(found)["spark-driver-0"]["metadata"]["annotations"][DEGRADED] == "2026-01-01T00:01:00Z"
    assert [(event.reason, event.is_warning) for event in told] == [("GangDegraded", True)]
    assert "its pods now start one by one" in told[0].message
    assert quiet(found, YuniKornController(), Key("default", "spark"))


OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray", "uid": "ray", "controller": True}


def owned(documents: Sequence[Document]) -> list[Document]:
    """Return pods that a controller makes."""
    return [{**pod, "metadata": {**pod["metadata"], "ownerReferences": [OWNER]}} for pod in documents]


def test_an_application_that_its_owner_scales_below_its_first_minimum_runs_and_gets_new_pods_one_by_one() -> None:
    found = world(YuniKornController(), nodes=4, cpu=1, policy=policy_of_profile("phalanx"))
    worlds.submit(found, owned(made.application("ray", {"head": 1, "worker": 3}, cpu=1)))
    worlds.run(found, 5)
    assert set(worlds.phases(found.store).values()) == {"Running"}
    for number in range(3):
        found.store.delete(POD, "default", f"ray-worker-{number}")
    worlds.run(found, 10)
    (gang,) = gang_list(found.cluster.snapshot(found.now), lambda state: "waits")["items"]
    assert (gang["status"], gang["why"], gang["running"]) == ("Runs", "", 1)
    worlds.submit(found, owned([made.application_pod("ray-worker-9", "ray", "worker", cpu=1)]), at=11)
    worlds.run(found, 20)
    assert worlds.phases(found.store) == {"ray-head-0": "Running", "ray-worker-9": "Running"}


def test_a_hard_application_fails_after_its_timeout_and_so_do_pods_that_come_later() -> None:
    found = world(YuniKornController(), nodes=2, cpu=4)
    told = listen(found)
    worlds.submit(found, too_large("Hard"))
    worlds.submit(found, [made.application_pod("late", "spark", "executor", cpu=1)], at=100)
    worlds.run(found, 59)
    assert set(worlds.phases(found.store).values()) == {"Pending"}
    worlds.run(found, 110)
    assert set(worlds.phases(found.store).values()) == {"Failed"}
    assert {pod["status"]["reason"] for pod in pods(found).values()} == {"ResourceReservationTimeout"}
    assert [event.reason for event in told] == ["ResourceReservationTimeout"] * 2
    assert quiet(found, YuniKornController(), Key("default", "spark"))


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_an_application_that_started_in_time_is_left_alone(style: str) -> None:
    found = world(YuniKornController(), nodes=4, cpu=4)
    told = listen(found)
    worlds.submit(found, too_large(style))
    worlds.run(found, 200)
    assert set(worlds.phases(found.store).values()) == {"Running"}
    assert told == []


def test_time_counts_from_the_originator_although_nothing_was_ever_free() -> None:
    """Surprise 14: YuniKorn's own timer begins with the first placeholder that is allocated, and here there is none."""
    found = world(YuniKornController(), nodes=1, cpu=1)
    worlds.submit(found, too_large("Hard"))
    worlds.run(found, 61)
    assert set(worlds.phases(found.store).values()) == {"Failed"}


# --- Kueue: the gate -----------------------------------------------------------------------------------------------------


def gates(found: World) -> dict[str, list[str]]:
    return {name: [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()] for name, pod in pods(found).items()}


def test_a_group_is_let_through_when_all_of_it_finds_room() -> None:
    found = world(GATE, nodes=2, cpu=4)
    told = listen(found)
    worlds.submit(found, made.pod_group("train", tasks=3, is_gated=True, cpu=4))
    worlds.run(found, 60)
    assert gates(found) == {f"train-{number}": [ADMISSION_GATE] for number in range(3)}
    assert told == []
    found.plan(100, lambda: found.load([build.node("another", cpu=4)]))
    worlds.run(found, 160)
    assert set(worlds.phases(found.store).values()) == {"Running"}
    assert [event.reason for event in told] == ["Admitted"] * 3


def test_of_two_groups_only_the_one_that_would_start_is_let_through() -> None:
    found = world(GATE, nodes=3, cpu=4)
    first, second = (made.pod_group(name, tasks=2, is_gated=True, cpu=4) for name in ("one", "two"))
    worlds.submit(found, first, second)
    worlds.run(found, 60)
    assert gates(found) == {"one-0": [], "one-1": [], "two-0": [ADMISSION_GATE], "two-1": [ADMISSION_GATE]}


def test_the_gate_stays_where_nobody_asked_to_lift_it() -> None:
    found = world(*standard(build.policy()), nodes=2, cpu=4)
    worlds.submit(found, made.pod_group("train", tasks=1, is_gated=True, cpu=1))
    worlds.run(found, 60)
    assert gates(found) == {"train-0": [ADMISSION_GATE]}


def test_a_configuration_may_ask_to_lift_it() -> None:
    policy = build.policy(flags={"liftsKueueGate": True})
    assert "kueue-gate" in {controller.name for controller in standard(policy)}


def test_a_pod_that_waits_for_its_topology_too_is_left_to_kueue() -> None:
    (pod,) = made.pod_group("train", tasks=1, is_gated=True, cpu=1)
    pod["spec"]["schedulingGates"].append({"name": TOPOLOGY_GATE})
    found = world(GATE, nodes=1)
    worlds.submit(found, [pod])
    worlds.run(found, 60)
    assert gates(found) == {"train-0": [ADMISSION_GATE, TOPOLOGY_GATE]}


@pytest.mark.parametrize("lifted", [0, 1, 2, 3])
def test_after_a_crash_at_any_point_the_rest_is_let_through(lifted: int) -> None:
    half = made.pod_group("train", tasks=3, is_gated=True, cpu=4)
    for pod in half[:lifted]:
        del pod["spec"]["schedulingGates"]
    found = world(GATE, nodes=3, cpu=4)
    worlds.submit(found, half)
    worlds.run(found, 60)
    assert set(worlds.phases(found.store).values()) == {"Running"}
    assert quiet(found, GATE, ALL_GROUPS)


def test_a_group_that_is_half_let_through_starts_nothing_while_there_is_no_room() -> None:
    half = made.pod_group("train", tasks=3, is_gated=True, cpu=4)
    del half[0]["spec"]["schedulingGates"]
    found = world(GATE, nodes=2, cpu=4)
    worlds.submit(found, half)
    worlds.run(found, 60)
    assert set(worlds.phases(found.store).values()) == {"Pending"}


# --- pods that say nonsense ----------------------------------------------------------------------------------------------


def scheduled(pod: Document) -> Document:
    (found,) = [item for item in pod["status"]["conditions"] if item["type"] == "PodScheduled"]
    return dict(found)


def test_a_pod_with_another_count_is_told_and_the_rest_starts() -> None:
    group = made.pod_group("train", tasks=3, cpu=1)
    for pod, count in zip(group, ("2", "2", "7"), strict=True):
        pod["metadata"]["annotations"][TOTAL_COUNT] = count
    found = world(QuarantineController(), nodes=2)
    told = listen(found)
    worlds.submit(found, group)
    worlds.run(found, 60)
    assert worlds.phases(found.store) == {"train-0": "Running", "train-1": "Running", "train-2": "Pending"}
    condition = scheduled(pods(found)["train-2"])
    assert (condition["status"], condition["reason"]) == ("False", "Misconfigured")
    assert "'7', but the oldest pod of group train says '2'" in condition["message"]
    assert [(event.about["metadata"]["name"], event.message) for event in told] == [("train-2", condition["message"])]
    assert quiet(found, QuarantineController(), QuarantineKey("default", "train", MEMBERS))


def test_an_originator_that_cannot_be_read_is_told() -> None:
    group = made.application("spark", {"driver": 1, "executor": 1})
    group[0]["metadata"]["annotations"][TASK_GROUPS] = "nonsense"
    found = world(QuarantineController(), nodes=2)
    worlds.submit(found, group)
    worlds.run(found, 60)
    assert set(worlds.phases(found.store).values()) == {"Pending"}
    assert "not JSON" in scheduled(pods(found)["spark-driver-0"])["message"]
    assert quiet(found, QuarantineController(), QuarantineKey("default", "spark-driver-0", POD_ALONE))


def test_a_pod_of_koordinators_that_says_nonsense_is_told_unless_somebody_else_says_what_the_gang_is() -> None:
    broken = sigs.describing_pod("train-0", "train", min_available="two", cpu=1)
    found = world(QuarantineController(), nodes=2, cpu=4)
    told = listen(found)
    worlds.submit(found, [broken, sigs.describing_pod("train-1", "train", min_available="2", cpu=1)])
    worlds.submit(found, [sigs.pod_group(sigs.KOORDINATOR, "fine", {"minMember": 1})])
    worlds.submit(found, [sigs.describing_pod("fine-0", "fine", min_available="two", cpu=1)])
    worlds.submit(found, [sigs.describing_pod("alone-0", "alone", min_available="two", cpu=1)])
    worlds.run(found, 60)
    assert {event.about["metadata"]["name"] for event in told} == {"alone-0"}
    assert worlds.phases(found.store) == {"alone-0": "Pending", "fine-0": "Running", "train-0": "Running", "train-1": "Running"}
