"""The control plane that tests of real operators share, and where the results of lanes are kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.plane import ControlPlane
from tests.operators.results import Results
from tests.support.operator_lane import GPUS, NODES
from tests.support.operator_mode import OperatorMode

HERE = Path(__file__).parent
ALWAYS = ("test_try_live",)
"""Tests besides lanes that `make test` has time for."""


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own: the definitions of real operators would clash with those that other tests play."""
    with ControlPlane(tmp_path_factory.mktemp("plane"), nodes=NODES, machines=Machines(gpus=GPUS)) as plane:
        yield plane


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `make test` has no time for."""
    if config.getoption("operators"):
        return
    left_out = [item for item in items if item.path.is_relative_to(HERE) and _is_only_for_all(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _is_only_for_all(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("lane")
    if mark is None or not isinstance(item, pytest.Function):
        return item.path.stem not in ALWAYS
    mode = item.callspec.params["mode"]
    assert isinstance(mode, OperatorMode)
    return mark.args[0] not in mode.in_make_test


def pytest_configure(config: pytest.Config) -> None:
    """Keep the results of lanes where all of them were asked for."""
    if config.getoption("operators"):
        config.pluginmanager.register(Results(), "operator-results")
