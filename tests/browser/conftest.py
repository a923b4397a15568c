"""A browser for all tests here; without Chromium they are not collected (`make browser` installs it)."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from phalanx.dev.processes import launch
from phalanx.sim.report import page
from phalanx.sim.report_text import Result
from tests.support import ui_clusters
from tests.support.browser import Browser, Tab, browser_of, chromium, chromium_command
from tests.support.ui_pages import open_page, setup_of, still
from tests.support.ui_programs import night, page_of_program

collect_ignore_glob = [] if chromium() else ["test_*.py"]

PICTURE = (1100, 700)
"""Width and height of those in the documentation."""


class Look(Protocol):
    """Opens a view of a page that is served."""

    def __call__(self, address: str, view: str = "overview", *, width: int = 1280, height: int = 900) -> Tab:
        """Return the tab when the page has started."""
        ...


class Keep(Protocol):
    """Keeps a picture for the documentation, if that is asked for."""

    def __call__(self, tab: Tab, name: str) -> None:
        """Write what the window shows."""
        ...


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    process = launch(chromium_command(tmp_path_factory.mktemp("chromium")), stderr=subprocess.PIPE)
    with browser_of(process) as browser:
        yield browser


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Callable[..., Tab]:
    """Open the report page of some results."""

    def open_page(*results: Result, width: int = 1200) -> Tab:
        file = tmp_path / "report.html"
        file.write_text(page(list(results)), encoding="utf-8")
        return browser.open(file.as_uri(), width)

    return open_page


# --- the live page -------------------------------------------------------------------------------------------------------


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """Open views; in the end nothing may have gone wrong in any of them, and none may have asked another host for anything."""
    opened: list[tuple[Tab, str]] = []

    def open_tab(address: str, view: str = "overview", *, width: int = 1280, height: int = 900) -> Tab:
        tab = browser.open(f"{address}#/{view}", width, height)
        opened.append((tab, address))
        tab.wait("document.documentElement.dataset.ready")
        return tab

    yield open_tab
    for tab, address in opened:
        problems, strangers = tab.problems, [asked for asked in tab.requests if not asked.startswith((address, "data:"))]
        tab.close()
        assert (problems, strangers) == ([], [])


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Keep:
    folder = request.config.getoption("pictures")

    def write(tab: Tab, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            tab.resize(*PICTURE)
            (Path(folder) / f"{name}.png").write_bytes(tab.picture())

    return write


@pytest.fixture(scope="session")
def lively() -> Iterator[str]:
    """A cluster in which there is something to see everywhere."""
    with open_page(lambda: setup_of(still(ui_clusters.lively()))) as address:
        yield address


@pytest.fixture(scope="session")
def vast() -> Iterator[str]:
    """10,000 nodes and 5,000 gangs."""
    with open_page(lambda: setup_of(still(ui_clusters.vast()))) as address:
        yield address


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A night in which one cluster was recorded under Volcano's rules."""
    return night(tmp_path_factory.mktemp("night") / "recording")


@pytest.fixture(scope="session")
def yesterday(recording: Path) -> Iterator[str]:
    """The page of that recording, as `phalanx ui --log` shows it."""
    with page_of_program("ui", "--log", str(recording)) as address:
        yield address
