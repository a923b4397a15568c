"""The control planes that tests of real operators run on, the lanes on them, and where the results of lanes are kept."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from phalanx.config.policies import profile_text
from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import wait_until
from phalanx.dev.programs import is_built
from phalanx.dev.replicas import scheduling
from tests.operators import autoscaler_lanes
from tests.operators.page import RESULTS
from tests.support.kept_results import Results
from tests.support.live_site import Site
from tests.support.operator_lane import GPUS, GRACE_SECONDS, NODES, URGENT, WAIT_SECONDS, Lane
from tests.support.operator_mode import OperatorMode

HERE = Path(__file__).parent
ALWAYS = ("test_try_live",)
"""Tests besides lanes that `make test` has time for."""
NAMES = ("phalanx", "volcano", "yunikorn", "default-scheduler")
"""Phalanx has the names of all schedulers that operators write into pods, and that of kube-scheduler: samples run as they are."""
SHORT_GRACE = f"configurations:\n  - name: heal\n    arguments:\n      grace: {GRACE_SECONDS}s\n"


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own: the definitions of real operators would clash with those that other tests play."""
    with _plane(tmp_path_factory.mktemp("plane")) as plane:
        yield plane


def _plane(folder: Path) -> ControlPlane:
    return ControlPlane(folder, nodes=NODES, machines=Machines(gpus=GPUS))


@pytest.fixture(scope="module")
def scheduled(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane with our scheduler beside it."""
    with _scheduling(plane, tmp_path_factory.mktemp("lanes")):
        yield plane


def _scheduling(plane: ControlPlane, folder: Path, profile: str = "phalanx", *flags: str) -> AbstractContextManager[Path]:
    """Run a profile of ours with a short grace, so that lanes can wait until it is over."""
    config = folder / "phalanx.yaml"
    config.write_text(profile_text(profile).replace("configurations:\n", SHORT_GRACE))
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": URGENT}, "value": 1000}
    plane.apply([urgent])
    return scheduling(plane, folder, f"--config={config}", *(f"--scheduler-name={name}" for name in NAMES), *flags)


@pytest.fixture(scope="module")
def mode() -> OperatorMode:
    """The mode that `for_modes` says."""
    raise AssertionError("a test of an operator says for which modes it is")


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, mode: OperatorMode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with our scheduler and the operator of a mode beside it."""
    for name in (mode.operator, *mode.needs):
        if not is_built(name):
            pytest.skip(f"{name} is not built; run 'phalanx dev build {name}' once")
    folder = tmp_path_factory.mktemp(mode.operator)
    with ExitStack() as beside:
        if mode.has_own_definitions:
            plane = beside.enter_context(_plane(folder / "plane"))
        else:
            plane = request.getfixturevalue("scheduled")
        beside.enter_context(mode.start(plane, folder, *mode.flags))
        if mode.has_own_definitions:
            beside.enter_context(_scheduling(plane, folder, mode.profile, *mode.scheduler_flags))
        yield plane


@pytest.fixture
def lane(request: pytest.FixtureRequest, ground: ControlPlane, mode: OperatorMode) -> Iterator[Lane]:
    """A mode on empty nodes; if the test is a lane, one that the mode has."""
    mark = request.node.get_closest_marker("lane")
    if mark is not None and mark.args[0] in mode.known_defects:
        request.applymarker(pytest.mark.xfail(reason=mode.known_defects[mark.args[0]], raises=AssertionError, strict=True))
    assert wait_until(lambda: not ground.kubectl("get", "pods", "-A", "-o", "name"), WAIT_SECONDS, step=0.5), "pods of another lane"
    with Site(ground) as site:
        lane = Lane(ground, site, mode)
        if mode.surroundings:
            lane.create(*mode.surroundings)
        yield lane
        mode.leave(lane)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `make test` has no time for, and let results know the lanes, also those whose operator will not start."""
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    if not config.getoption("operators"):
        left_out = [item for item in ours if _is_only_for_all(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in ours:
        if (found := _lane_of(item)) is not None:
            _name(item, *found)
        elif (mark := item.get_closest_marker("autoscaler")) is not None and is_built(autoscaler_lanes.PROGRAM):
            item.user_properties += [("mode", autoscaler_lanes.KEY), ("lane", mark.args[0])]


def _name(item: pytest.Item, mode: OperatorMode, lane: str) -> None:
    """Name a lane in results if its operator is built, and leave it out where it does not apply."""
    if lane in mode.not_applicable:
        item.add_marker(pytest.mark.skip(reason=mode.not_applicable[lane]))
    if all(map(is_built, (mode.operator, *mode.needs))):
        item.user_properties += [("mode", mode.key), ("lane", lane)]


def _is_only_for_all(item: pytest.Item) -> bool:
    found = _lane_of(item)
    if found is None:
        return item.path.stem not in ALWAYS
    mode, lane = found
    return lane not in mode.in_make_test


def _lane_of(item: pytest.Item) -> tuple[OperatorMode, str] | None:
    """Return the mode and the lane of a test; None for those that are no lanes."""
    mark = item.get_closest_marker("lane")
    if mark is None or not isinstance(item, pytest.Function):
        return None
    mode = item.callspec.params["mode"]
    assert isinstance(mode, OperatorMode)
    return mode, str(mark.args[0])


def pytest_configure(config: pytest.Config) -> None:
    """Keep the results of lanes where all of them were asked for."""
    if config.getoption("operators"):
        config.pluginmanager.register(Results(RESULTS, "mode", "lane"), "operator-results")
