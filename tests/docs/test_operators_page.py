"""The page on operators says what lanes found, and lanes were run for every mode."""

from pathlib import Path
from typing import Any, Literal

import pytest

from phalanx.dev.programs import ALL_OPERATORS
from tests.operators import autoscaler_lanes
from tests.operators.modes import MODES
from tests.operators.page import PAGE, RESULTS, page
from tests.operators.pages import BESIDE, BY_MODE, FOLDER, WITHOUT
from tests.support.kept_results import FAILED, KNOWN_DEFECT, NOT_APPLICABLE, PASSED, Results, read, write
from tests.support.operator_mode import LANES, OperatorMode


def test_the_page_is_what_the_results_of_lanes_become() -> None:
    assert PAGE.read_text() == page(read(RESULTS)), "run 'python -m tests.operators.page'"


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.label)
def test_every_lane_of_a_mode_has_passed_or_its_page_says_why_not(mode: OperatorMode) -> None:
    said = {
        **{lane: f"{NOT_APPLICABLE}{text}" for lane, text in mode.not_applicable.items()},
        **{lane: f"{KNOWN_DEFECT}{text}" for lane, text in mode.known_defects.items()},
    }
    assert read(RESULTS)[mode.key] == {lane: said.get(lane, PASSED) for lane in LANES}


def test_every_lane_of_the_autoscaler_has_passed() -> None:
    assert read(RESULTS)[autoscaler_lanes.KEY] == dict.fromkeys(autoscaler_lanes.LANES, PASSED)


def test_every_mode_has_lanes_that_are_known_and_an_operator_that_is_built() -> None:
    assert {mode.operator for mode in MODES} <= set(ALL_OPERATORS)
    assert {lane for mode in MODES for lane in (*mode.not_applicable, *mode.known_defects, *mode.in_make_test)} <= set(LANES)
    assert len({mode.label for mode in MODES}) == len(MODES)


def test_results_are_those_of_the_modes_and_versions_that_there_are() -> None:
    assert set(read(RESULTS)) == {autoscaler_lanes.KEY, *(mode.key for mode in MODES)}, (
        "run 'make operators', and delete what is no longer there from results.json"
    )


def report(outcome: Literal["passed", "failed", "skipped"], longrepr: Any = None, when: Any = "call") -> pytest.TestReport:
    named: list[tuple[str, object]] = [("mode", "a b"), ("lane", "fits")]
    return pytest.TestReport("test", ("file", 1, "test"), {}, outcome, longrepr, when, user_properties=named)


def test_what_becomes_of_a_lane_is_kept_and_its_last_try_counts(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.json", "mode", "lane")
    for item, expected in (
        (report("failed", when="setup"), FAILED),
        (report("passed"), PASSED),
        (report("passed", when="teardown"), PASSED),
        (report("skipped", ("file", 1, "Skipped: it has no priorities")), f"{NOT_APPLICABLE}it has no priorities"),
        (report("failed"), FAILED),
    ):
        results.pytest_runtest_logreport(item)
        assert results.found == {"a b": {"fits": expected}}


def test_results_of_some_lanes_replace_those_and_leave_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    write({"a b": {"fits": "failed", "idle": "passed"}}, file)
    write({"a b": {"fits": "passed"}, "c d": {"idle": "failed"}}, file)
    assert read(file) == {"a b": {"fits": "passed", "idle": "passed"}, "c d": {"idle": "failed"}}


def test_a_lane_that_failed_is_shown_as_one() -> None:
    mode = MODES[0]
    results = {
        mode.key: {"idle": "failed", "fits": "passed", "waits": f"{KNOWN_DEFECT}it is mute", "room": f"{NOT_APPLICABLE}no rooms"}
    }
    text = page(results)
    row = next(line for line in text.splitlines() if f"| `{mode.name}` |" in line)
    assert row.split(" | ")[3:8] == ["**no**", "yes", "**no**", "not tested", "does not apply"]
    assert f"- {mode.title}, `{mode.name}`, `waits`: it is mute." in text


def test_the_commands_of_every_page_on_an_operator_are_typed_by_a_test() -> None:
    typed = {page for _, page in BY_MODE}
    assert typed == set(BESIDE), "a page is typed beside a mode that there is not"
    assert typed | set(WITHOUT) == {page.stem for page in FOLDER.glob("*.md")}
