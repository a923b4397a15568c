"""The rules of WCAG that a program can check, with axe-core, in every view of the live page, light and dark."""

import hashlib
from pathlib import Path

import pytest

from tests.browser.conftest import Look
from tests.browser.test_page_rules import VIEWS, Token, opened
from tests.support import sim_results, ui_clusters
from tests.support.browser import Tab
from tests.support.ui_pages import open_page, setup_of, simulations_setup, still

AXE = Path(__file__).parent / "axe"
PROGRAM = (AXE / "axe.min.js").read_bytes()
SCHEMES = ("light", "dark")
BESIDE = {"ours": sim_results.crowd(60), "kai": sim_results.crowd(60) | {"profile": "kai"}}


def violations(tab: Tab) -> list[str]:
    """Return what axe-core finds, each with the elements that it is about."""
    tab.value(PROGRAM.decode() + "; true")
    found = tab.value(
        """axe.run(document, {resultTypes: ['violations']}).then(({violations, passes}) => ({
            checked: passes.length,
            wrong: violations.map(each => each.id + ': ' + each.nodes.slice(0, 5)
                .map(node => `${node.html.slice(0, 200)} ${node.failureSummary}`).join(' | ')),
        }))"""
    )
    assert found["checked"] > 10, "axe-core has looked at something"
    return list(found["wrong"])


def test_axe_is_what_was_published() -> None:
    assert f"sha256-{hashlib.sha256(PROGRAM).hexdigest()}" in (AXE / "README.md").read_text()


def test_axe_finds_what_is_wrong(look: Look, lively: str) -> None:
    tab = opened(look, lively, "overview")
    tab.value("document.querySelector('#content').append(document.createElement('button'))")
    assert [text.partition(":")[0] for text in violations(tab)] == ["button-name"]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_cluster_has_no_violations(look: Look, lively: str, view: str, scheme: str) -> None:
    tab = opened(look, lively, view)
    tab.colours(scheme)
    assert violations(tab) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_phone_has_no_violations(look: Look, lively: str, scheme: str) -> None:
    tab = opened(look, lively, "gang/research/mixtral", width=390, height=844)
    tab.colours(scheme)
    assert violations(tab) == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("view", ["overview", "worlds", "sessions"])
def test_a_recording_has_no_violations(look: Look, yesterday: str, view: str, scheme: str) -> None:
    tab = look(yesterday, view)
    tab.colours(scheme)
    tab.wait_text(".yesterday output", "UTC")
    tab.wait("document.querySelector('h1')")
    if view == "worlds":
        tab.click("[data-key=compare]")
        tab.wait_text("#content", "Mean wait, ours")
    assert violations(tab) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_simulations_beside_each_other_have_no_violations(look: Look, tmp_path: Path, scheme: str) -> None:
    with open_page(lambda: simulations_setup(tmp_path, **BESIDE)) as address:
        tab = look(address, "simulations")
        tab.wait("document.querySelectorAll('.result').length === 2")
        tab.colours(scheme)
        assert violations(tab) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_question_for_a_token_and_the_help_have_no_violations(look: Look, lively: str, scheme: str) -> None:
    with open_page(lambda: setup_of(still(ui_clusters.lively()), access=Token())) as address:
        tab = look(address)
        tab.colours(scheme)
        tab.wait_text("h1", "Show who you are")
        assert violations(tab) == []
    tab = opened(look, lively, "overview")
    tab.colours(scheme)
    tab.press("?")
    tab.wait_text("#help", "Keys")
    assert violations(tab) == []
