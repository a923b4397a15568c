"""The benchmark of explanations, on a small cluster: every gang gets a remedy, and the page has what was measured."""

from collections.abc import Iterator

import pytest
from benchmarks import explain
from benchmarks.explain import Row


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [*explain.measure(*explain.load(nodes=60, pods=300))]


def first_remedies(rows: list[Row]) -> Iterator[tuple[str, str]]:
    return ((row.lack, row.cells()[-1]) for row in rows)


def test_every_gang_gets_what_it_lacks(rows: list[Row]) -> None:
    found = dict(first_remedies(rows))
    assert found["a toleration"] == "would start with a toleration of dedicated=research:NoSchedule"
    assert found["members"] == "would start with 2 more pods"
    assert "zone=zone-" in found["a label"]
    assert "more nodes like" in found["whole nodes"]
    assert found["quota"].startswith("would start with ")


def test_a_job_that_has_room_is_tried() -> None:
    cluster, _ = explain.load(nodes=60, pods=300)
    assert explain.measure_try(cluster).remedies == ["starts"]


def test_the_section_has_a_line_for_each_gang(rows: list[Row]) -> None:
    lines = explain.section("20 nodes", rows).splitlines()
    assert lines[0].startswith("By `python benchmarks/explain.py`")
    assert "20 nodes." in lines
    assert len([line for line in lines if line.startswith("| ")]) == len(rows) + 2


def test_a_row_that_takes_too_long_is_slow() -> None:
    assert not Row("label", 1.0, 5.0, 1, []).is_slow
    assert Row("label", 1.1, 0.0, 1, []).is_slow
    assert Row("label", 0.0, 5.1, 1, []).is_slow
