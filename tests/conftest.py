"""What several folders of tests share: how properties are tried, and the one real control plane.

Properties are tried on the same examples in every run; `make fuzz` looks for new ones. Tests that talk to the control plane bear
the mark below; tests/support/workers.py says which of them share one. What they need is built before the first test, where no
time limit counts.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from phalanx.dev.go_build import build
from phalanx.dev.layout import KWOK, SERVER
from phalanx.dev.plane import ControlPlane
from tests.support.api_requests import audit_flags
from tests.support.live_site import Site
from tests.support.workers import Together, place_of

settings.register_profile("repeatable", derandomize=True, database=None)
settings.register_profile("fuzz", derandomize=False)
settings.load_profile("fuzz" if os.environ.get("PHALANX_FUZZ") else "repeatable")

GROUP = "controlplane"
"""Tests with ``pytest.mark.xdist_group("controlplane")`` talk to it."""
OPERATORS = "operators"
"""Those with ``pytest.mark.xdist_group("operators")`` have one of their own, with real operators beside it."""
VERSIONS = "versions"
"""Those with ``pytest.mark.xdist_group("versions")`` have one for each release of Kubernetes."""

LAST = "test_roles_used_live.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make operators` and `make versions` ask for tests that take too long for `make test`, and pictures be drawn anew."""
    parser.addoption("--operators", action="store_true", help="run all lanes of real operators, and keep their results")
    parser.addoption(
        "--versions", action="store_true", help="run tests on the oldest and the newest Kubernetes, and keep their results"
    )
    parser.addoption("--pictures", metavar="DIR", help="write what tests of the live page see into this folder")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:  # Any: untyped there
    """Keep tests together that share what is slow to start; pytest 9 hides from xdist by itself which group they name."""
    return Together(config, log)


def _needs_programs(item: pytest.Item) -> bool:
    return any(mark.args[0] in (GROUP, OPERATORS, VERSIONS) for mark in item.iter_markers("xdist_group"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Try tests of the control plane again when they fail: a dozen programs share two cores, and some waits are too short then.

    Whoever wants to see each failure says `--reruns 0`.
    """
    for item in items:
        if config.getoption("reruns", None) is None and _needs_programs(item):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))
    items.sort(key=lambda item: place_of(item.nodeid))
    _put_last(config, items)


def _put_last(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the tests come last that look at what all others did on the control plane; without those they are left out."""
    last = [item for item in items if item.path.name == LAST]
    others = [item for item in items if item.path.name != LAST]
    run = {item.path for item in others}
    is_whole = bool(last) and run >= {*last[0].path.parent.glob("test_*.py")} - {last[0].path}
    config.hook.pytest_deselected(items=[] if is_whole else last)
    items[:] = [*others, *(last if is_whole else ())]


def pytest_collection_finish(session: pytest.Session) -> None:
    is_needed = any(_needs_programs(item) for item in session.items)
    if is_needed and not session.config.option.collectonly:
        build()


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real API server with its controllers; kwok plays the nodes that tests make, and nobody schedules."""
    folder = tmp_path_factory.mktemp("plane")
    with ControlPlane(folder, flags={SERVER: audit_flags(folder)}) as plane:
        yield plane


@pytest.fixture(autouse=True)
def nodes_are_played(request: pytest.FixtureRequest) -> None:
    """Start kwok again where it ended by itself: now and then it fails with "concurrent map writes", and all nodes stand still."""
    if "plane" in request.fixturenames:
        plane: ControlPlane = request.getfixturevalue("plane")
        if not plane.process(KWOK).is_running():
            plane.start(KWOK)


@pytest.fixture
def site(plane: ControlPlane) -> Iterator[Site]:
    """A test's own piece of it."""
    with Site(plane) as site:
        yield site
