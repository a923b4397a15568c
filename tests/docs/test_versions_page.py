"""The page on versions of Kubernetes says what was found, every release was tried, and the chart agrees."""

from pathlib import Path

import pytest
import yaml

from phalanx.dev.programs import KUBERNETES_RELEASES, OLD_KUBERNETES
from tests.support.kept_results import KNOWN_DEFECT, NOT_APPLICABLE, PASSED, read
from tests.versions.checks import CHECKS, KNOWN_DEFECTS, NATIVE, NOT_SERVED, RULES_SINCE
from tests.versions.page import PAGE, RESULTS, page

CHART = Path(__file__).resolve().parents[2] / "deploy" / "chart"


def test_the_page_is_what_the_results_become() -> None:
    assert PAGE.read_text() == page(read(RESULTS)), "run 'python -m tests.versions.page'"


@pytest.mark.parametrize("release", KUBERNETES_RELEASES)
def test_every_check_has_passed_on_every_release_or_the_page_says_why_not(release: str) -> None:
    absent = {"native": f"{NOT_APPLICABLE}{release} does not serve {NATIVE}"} if NATIVE in NOT_SERVED[release] else {}
    defects = {check: f"{KNOWN_DEFECT}{text}" for check, text in KNOWN_DEFECTS[release].items()}
    assert read(RESULTS)[release] == {check: {**absent, **defects}.get(check, PASSED) for check in CHECKS}


def test_results_are_those_of_the_releases_that_there_are() -> None:
    assert set(read(RESULTS)) == set(KUBERNETES_RELEASES), "run 'make versions', and delete what is no longer there"


def test_a_check_that_failed_is_shown_as_one() -> None:
    text = page({OLD_KUBERNETES: {"binds": "failed", "holds": PASSED}})
    row = next(line for line in text.splitlines() if line.startswith(f"| {OLD_KUBERNETES.removeprefix('v')} "))
    assert row.split(" | ")[2:5] == ["not tested", "**no**", "yes"]


def test_the_chart_asks_for_the_first_version_that_accepts_its_crds() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == f">={RULES_SINCE}.0-0"
