"""Lanes: what people expect of a gang scheduler behind their operator, written once, for every mode of every real operator.

Nodes have room for four pods. `make operators` runs all lanes, `make test` only those that a mode names. Phalanx has the names of
all schedulers that operators write into pods, and that of kube-scheduler, so that samples run as they are.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.config.policies import profile_text
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import wait_until
from phalanx.dev.replicas import scheduling
from tests.operators.modes import MODES
from tests.support.live_site import Site
from tests.support.operator_lane import BEYOND_SECONDS, GPUS, GRACE_SECONDS, NODES, WAIT_SECONDS, Lane
from tests.support.operator_mode import GPU, OperatorMode, Order

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300)]
ROOM = NODES
"""Every pod asks for all GPUs of a node."""
NAMES = ("phalanx", "volcano", "yunikorn", "default-scheduler")
URGENT = "lane-urgent"
SHORT_GRACE = f"configurations:\n  - name: heal\n    arguments:\n      grace: {GRACE_SECONDS}s\n"


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Our profile with a short grace, so that lanes can wait until it is over."""
    folder = tmp_path_factory.mktemp("lanes")
    config = folder / "phalanx.yaml"
    config.write_text(profile_text("phalanx").replace("configurations:\n", SHORT_GRACE))
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": URGENT}, "value": 1000}
    plane.apply([urgent])
    flags = [f"--config={config}", *(f"--scheduler-name={name}" for name in NAMES)]
    with scheduling(plane, folder, *flags) as log:
        yield log


@pytest.fixture(scope="module", params=MODES, ids=lambda mode: mode.label)
def mode(
    request: pytest.FixtureRequest, plane: ControlPlane, scheduler: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorMode]:
    """A mode, with its operator running."""
    mode: OperatorMode = request.param
    with mode.start(plane, tmp_path_factory.mktemp(mode.operator), *mode.flags):
        yield mode


@pytest.fixture
def lane(request: pytest.FixtureRequest, plane: ControlPlane, mode: OperatorMode) -> Iterator[Lane]:
    """A mode on empty nodes."""
    name = request.node.get_closest_marker("lane").args[0]
    request.node.user_properties += [("mode", mode.key), ("lane", name)]
    if name in mode.not_applicable:
        pytest.skip(mode.not_applicable[name])
    if name in mode.known_defects:
        request.applymarker(pytest.mark.xfail(reason=mode.known_defects[name], raises=AssertionError, strict=True))
    assert wait_until(lambda: not plane.kubectl("get", "pods", "-A", "-o", "name"), WAIT_SECONDS, step=0.5), "pods of another lane"
    with Site(plane) as site:
        yield Lane(plane, site, mode)


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
    lane.await_waiting("large")
    ((name, gang),) = lane.gangs("large").items()
    assert GPU in gang["why"], gang
    assert lane.explained(name)["why"] == gang["why"]
    lane.watch(lambda: lane.bound("large") == 0, lambda: lane.phases("large"))
    assert len(lane.told("large")) == len(lane.pods("large")) == ROOM + 1, lane.told("large")
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
    failed = max(lane.pods("train"), key=lambda pod: str(pod["metadata"]["name"]))["metadata"]
    others = lane.running("train") - {failed["uid"]}
    lane.fail(failed["name"])
    lane.await_true(lambda: failed["uid"] not in lane.running("train"), lambda: lane.phases("train"))
    lane.await_running("train", ROOM)
    lane.watch(lambda: others < lane.running("train") and len(lane.running("train")) == ROOM, lane.warnings)


@pytest.mark.lane("priority")
def test_an_urgent_workload_takes_the_place_of_a_whole_one_which_starts_again_later(lane: Lane) -> None:
    lane.submit(order("usual", ROOM))
    lane.await_running("usual", ROOM)
    lane.submit(order("urgent", 2, URGENT))
    lane.await_running("urgent", 2)
    lane.await_waiting("usual")
    lane.watch(lambda: lane.bound("usual") == 0 and len(lane.running("urgent")) == 2, lambda: lane.phases("usual"))
    lane.delete("urgent")
    lane.await_running("usual", ROOM)


@pytest.mark.lane("scale")
def test_a_workload_that_is_scaled_beyond_the_room_and_back_runs_on(lane: Lane) -> None:
    lane.submit(order("train", 3))
    lane.await_running("train", 3)
    before = lane.running("train")
    lane.watch(lambda: before == lane.running("train"), lane.warnings, seconds=2.0)
    lane.scale("train", ROOM + 2)
    lane.await_true(lambda: len(lane.pods("train")) == ROOM + 2, lambda: lane.phases("train"))
    lane.watch(lambda: before <= lane.running("train"), lane.warnings)
    for fewer in (ROOM, 2):  # operators take any pod away, also one that runs; those that are left have to run
        lane.scale("train", fewer)
        lane.await_all_running("train", fewer)
    after = lane.running("train")
    lane.watch(lambda: after == lane.running("train"), lane.warnings)
    assert [text for text in lane.warnings() if "evicted" in text] == []


@pytest.mark.lane("grace")
def test_nothing_happens_to_a_workload_that_runs_or_waits_when_every_grace_is_over(lane: Lane) -> None:
    lane.submit(order("runs", 3))
    lane.await_running("runs", 3)
    lane.submit(order("waits", 3))
    lane.await_waiting("waits")

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
