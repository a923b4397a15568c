"""A control plane of each release of Kubernetes that is tested, with `phalanx run` beside it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.errors import PhalanxError
from tests.support.kept_results import Results
from tests.support.live_site import Site
from tests.versions.checks import KNOWN_DEFECTS
from tests.versions.page import RESULTS

HERE = Path(__file__).parent
NODES, CPUS = 3, "4"


@pytest.fixture(scope="module")
def release() -> str:
    """The release that a test is run on."""
    raise AssertionError("a test says on which releases it is run")


@pytest.fixture(scope="module")
def ground(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of a release with our scheduler beside it; without its binaries tests fail."""
    folder = tmp_path_factory.mktemp("plane")
    with (
        ControlPlane(folder, nodes=NODES, machines=Machines(cpu=CPUS), kubernetes=release) as plane,
        scheduling(plane, folder, "--scheduler-name=phalanx", "--scheduler-name=volcano"),
    ):
        yield plane


@pytest.fixture
def site(request: pytest.FixtureRequest, release: str, ground: ControlPlane) -> Iterator[Site]:
    """A namespace of a test, whose result is kept."""
    mark = request.node.get_closest_marker("check")
    assert mark is not None
    request.node.user_properties += [("release", release), ("check", mark.args[0])]
    if mark.args[0] in KNOWN_DEFECTS[release]:
        reason = KNOWN_DEFECTS[release][mark.args[0]]
        request.applymarker(pytest.mark.xfail(reason=reason, raises=PhalanxError, strict=True))
    with Site(ground) as site:
        yield site


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these tests out of `make test`."""
    if config.getoption("versions"):
        return
    left_out = [item for item in items if item.path.is_relative_to(HERE)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_configure(config: pytest.Config) -> None:
    """Keep results where they were asked for."""
    if config.getoption("versions"):
        config.pluginmanager.register(Results(RESULTS, "release", "check"), "version-results")
