"""A browser for all tests here; without Chromium they are not collected (`make browser` installs it)."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from phalanx.dev.processes import launch
from phalanx.sim.report import page
from phalanx.sim.report_text import Result
from tests.support.browser import Browser, Tab, browser_of, chromium, chromium_command

collect_ignore_glob = [] if chromium() else ["test_*.py"]


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
