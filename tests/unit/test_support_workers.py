"""Tests that share what is slow to start go to one process, and the longest begin first."""

from pathlib import Path

import pytest

from tests.support.workers import BROWSER, DIVIDED, OTHER_PLANES, PLANE, group_of, place_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/integration/test_plane.py::test_a", PLANE),
        ("tests/integration/test_kai_live.py::test_b[x::y]", PLANE),
        ("tests/contract/test_pods.py::test_a[real-1]", OTHER_PLANES),
        ("tests/contract/test_pods.py::test_a[memory-1]", "tests/contract/test_pods.py"),
        ("tests/chaos/test_storm.py::test_a", OTHER_PLANES),
        ("tests/chaos/test_judges.py::test_a", "tests/chaos/test_judges.py"),
        ("tests/operators/test_lanes.py::test_a[kuberay]", OTHER_PLANES),
        ("tests/browser/test_report.py::test_a", BROWSER),
        ("tests/unit/test_operators.py::test_a", "tests/unit/test_operators.py"),
        ("tests/docs/test_commands.py::test_a[README.md]", "tests/docs/test_commands.py::test_a[README.md]"),
    ],
)
def test_a_test_stays_with_those_that_need_the_same(test: str, group: str) -> None:
    assert group_of(test) == group


def test_what_is_named_is_there() -> None:
    assert [place for place in (PLANE, BROWSER, *DIVIDED) if not (ROOT / place).exists()] == []


def test_control_planes_begin_before_what_has_more_tests_and_ends_sooner() -> None:
    tests = [
        "tests/browser/test_report.py::test_a", "tests/contract/test_pods.py::test_a[memory]",
        "tests/contract/test_pods.py::test_a[real]", "tests/docs/test_commands.py::test_a[README.md]",
        "tests/integration/test_plane.py::test_a", "tests/operators/test_lanes.py::test_a", "tests/unit/test_model.py::test_a",
    ]  # fmt: skip
    assert sorted(tests, key=place_of) == [tests[place] for place in (4, 2, 5, 3, 0, 1, 6)]
