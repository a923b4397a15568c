"""Lanes: what people expect of a gang scheduler behind their operator, written once, for every mode of every real operator.

Nodes have room for four pods. `make operators` runs all lanes, `make test` only those that a mode names. What is special of one
operator stands in a file of its own beside this one.
"""

from dataclasses import replace

import pytest

from tests.operators.modes import MODES
from tests.support.operator_lane import BEYOND_SECONDS, GPUS, LATE_SECONDS, NODES, URGENT, WAIT_SECONDS, Lane
from tests.support.operator_mode import GPU, Order, for_modes

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), for_modes(MODES)]
ROOM = NODES
"""Every pod asks for all GPUs of a node."""


def order(name: str, pods: int, priority: str = "") -> Order:
    return Order(name, pods, GPUS, priority)


@pytest.mark.lane("idle")
def test_a_workload_starts_on_a_cluster_in_which_nobody_waits(lane: Lane) -> None:
    lane.watch(lambda: not lane.pods(), lane.pods, seconds=2.0)
    lane.submit(order("first", 3))
    lane.await_running("first", 3)
    (gang,) = lane.gangs("first").values()
    assert (gang["status"], gang["minimum"]) == ("Runs", 3), gang


@pytest.mark.lane("fits")
def test_a_workload_that_fits_starts_beside_one_that_waits(lane: Lane) -> None:
    lane.submit(order("large", ROOM + 1))
    lane.await_waiting("large")
    lane.submit(order("small", ROOM))
    lane.await_running("small", ROOM)
    assert lane.bound("large") == 0, lane.phases("large")


@pytest.mark.lane("waits")
def test_a_workload_that_does_not_fit_waits_whole_and_everybody_is_told_the_same(lane: Lane) -> None:
    lane.submit(order("large", ROOM + 1))
    lane.await_true(lambda: any(GPU in gang["why"] for gang in lane.gangs("large").values()), lane.gangs)
    ((name, gang),) = lane.gangs("large").items()
    assert gang["status"] == "Waits"
    assert lane.explained(name)["why"] == gang["why"]
    lane.watch(lambda: lane.bound("large") == 0, lambda: lane.phases("large"))
    there = 0 if lane.mode.makes_pods_when_admitted else ROOM + 1
    assert len(lane.told("large")) == len(lane.pods("large")) == there, lane.told("large")
    assert any(gang["why"] in text for text in lane.warnings()), lane.warnings()


@pytest.mark.lane("deadlock")
def test_of_two_workloads_that_fit_only_alone_one_runs_whole_and_the_other_waits_whole(lane: Lane) -> None:
    names = ("one", "two")
    lane.submit(*(order(name, 3) for name in names))
    lane.await_true(lambda: any(len(lane.running(name)) == 3 for name in names), lambda: [lane.phases(name) for name in names])
    first = next(name for name in names if len(lane.running(name)) == 3)
    second = next(name for name in names if name != first)
    lane.watch(lambda: len(lane.running(first)) == 3 and not lane.bound(second), lambda: [lane.phases(name) for name in names])
    lane.delete(first)
    lane.await_running(second, 3)


@pytest.mark.lane("room")
def test_a_workload_that_waits_starts_when_room_comes(lane: Lane) -> None:
    with lane.one_node_less():
        lane.submit(order("train", ROOM))
        lane.await_waiting("train")
        assert lane.bound("train") == 0, lane.phases("train")
    lane.await_running("train", ROOM)


@pytest.mark.lane("clean")
def test_a_workload_that_is_deleted_leaves_nothing(lane: Lane) -> None:
    lane.submit(order("runs", 3), order("waits", 3))
    lane.await_true(lambda: lane.running("runs") or lane.running("waits"), lane.gangs)
    lane.delete("runs")
    lane.delete("waits")
    lane.await_true(lambda: not lane.leftovers(), lane.leftovers)


@pytest.mark.lane("suspend")
def test_a_suspended_workload_makes_room_and_starts_again_when_it_is_resumed(lane: Lane) -> None:
    lane.submit(order("train", 3))
    lane.await_running("train", 3)
    lane.submit(order("next", 3))
    lane.await_waiting("next")
    lane.suspend("train")
    lane.await_running("next", 3)
    assert not lane.pods("train")
    said = [text for text in lane.warnings() if text.startswith("train") and "evicted" in text]
    assert said == []
    lane.resume("train")
    lane.await_waiting("train")
    assert len(lane.running("next")) == 3
    lane.delete("next")
    lane.await_running("train", 3)


@pytest.mark.lane("failure")
def test_a_member_that_fails_is_replaced_and_the_others_run_on(lane: Lane) -> None:
    lane.submit(order("train", ROOM))
    lane.await_running("train", ROOM)
    if lane.mode.is_replaced_late:
        lane.be_patient()
    others = lane.fail_one("train")
    lane.await_running("train", ROOM)
    lane.watch(lambda: others < lane.running("train") and len(lane.running("train")) == ROOM, lane.warnings)


@pytest.mark.lane("priority")
def test_an_urgent_workload_takes_the_place_of_a_whole_one_which_starts_again_later(lane: Lane) -> None:
    lane.submit(order("usual", ROOM))
    lane.await_running("usual", ROOM)
    lane.submit(order("urgent", 2, URGENT))
    lane.await_running("urgent", 2)
    lane.await_waiting("usual", LATE_SECONDS if lane.mode.is_replaced_late else WAIT_SECONDS)
    lane.watch(lambda: lane.bound("usual") == 0 and len(lane.running("urgent")) == 2, lambda: lane.phases("usual"))
    lane.delete("urgent")
    lane.await_running("usual", ROOM)


@pytest.mark.lane("scale")
def test_a_workload_that_is_scaled_beyond_the_room_and_back_runs_on(lane: Lane) -> None:
    first, most, *fewer = lane.mode.sizes
    lane.submit(replace(order("train", first), is_scaled=True))
    lane.await_running("train", first)
    before = lane.running("train")
    lane.watch(lambda: before == lane.running("train"), lane.warnings, seconds=2.0)
    lane.scale("train", most)
    lane.await_true(lambda: len(lane.pods("train")) == most, lambda: lane.phases("train"))
    lane.watch(lambda: before <= lane.running("train"), lane.warnings)
    for pods in fewer:  # operators take any pod away, also one that runs; those that are left have to run
        lane.scale("train", pods)
        lane.await_all_running("train", pods)
    lane.await_true(lambda: {gang["status"] for gang in lane.gangs("train").values()} == {"Runs"}, lane.gangs)
    after = lane.running("train")
    lane.watch(lambda: after == lane.running("train"), lane.warnings)
    assert [text for text in lane.warnings() if "evicted" in text] == []


@pytest.mark.lane("grace")
def test_nothing_happens_to_a_workload_that_runs_or_waits_when_every_grace_is_over(lane: Lane) -> None:
    lane.submit(order("runs", 3))
    lane.await_running("runs", 3)
    lane.submit(order("waits", 3))
    lane.await_waiting("waits")
    lane.await_true(lane.warnings, lane.gangs)

    def uids() -> set[str]:
        return {pod["metadata"]["uid"] for pod in lane.pods()}

    before, said = uids(), lane.warnings()
    lane.watch(lambda: uids() == before and len(lane.running("runs")) == 3, lane.gangs, seconds=2 * BEYOND_SECONDS)
    assert lane.bound("waits") == 0
    assert lane.warnings() == said


@pytest.mark.lane("samples")
def test_samples_of_the_operator_run_as_they_are(lane: Lane) -> None:
    assert lane.mode.samples
    for sample in lane.mode.samples:
        lane.run_sample(sample)
