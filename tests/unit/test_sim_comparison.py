"""Results side by side: intervals, stars, and one source for tables, pages and JSON."""

from math import inf
from typing import Any

import pytest

from phalanx.cli.simulate_output import comparison_lines
from phalanx.sim.comparison import Comparison, compared, outline
from phalanx.sim.intervals import Interval, interval, paired, student_quantile
from phalanx.sim.report import page
from phalanx.sim.report_text import Result
from tests.support import sim_results as results


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.7062), (2, 4.3027), (9, 2.2622), (10, 2.2281), (19, 2.0930), (120, 1.9799)]
)
def test_quantiles_are_those_of_the_tables_of_student(degrees: int, quantile: float) -> None:
    assert student_quantile(degrees) == pytest.approx(quantile, abs=5e-5)


def test_an_interval_is_the_mean_with_student_times_the_standard_error() -> None:
    found = interval([1.0, 2.0, 3.0])
    assert found is not None
    assert [found.mean, found.half] == pytest.approx([2.0, 4.3027 / 3**0.5], abs=1e-3)
    assert interval([5.0]) == Interval(5.0, inf, 1)
    assert interval([]) is None
    assert interval([0.25] * 7) == Interval(0.25, 0.0, 7)


def test_differences_are_taken_seed_by_seed() -> None:
    easy_and_hard = [10.0, 1000.0, 100.0]
    found = paired([value + 1 for value in easy_and_hard], easy_and_hard)
    assert found == Interval(1.0, 0.0, 3)
    assert found.is_real
    assert paired([1.0, None], [None, 1.0]) is None


def seeded(values: list[float], **other: Any) -> list[Result]:
    gangs = [results.gang("a/one"), results.gang("a/two", wait=30.0)]
    return [results.result(gangs, seed=seed, metrics={"goodputPart": value}, **other) for seed, value in enumerate(values)]


def stars(label: str, **columns: list[Result]) -> list[str]:
    line = next(line for line in compared(columns).lines if line.metric.label == label)
    return [value.profile for value in line.values if value.is_best]


def test_a_star_needs_a_difference_that_is_more_than_chance() -> None:
    low, noise, high = [0.50, 0.52, 0.51], [0.52, 0.50, 0.52], [0.60, 0.62, 0.61]
    assert stars("goodput of capacity", low=seeded(low), high=seeded(high)) == ["high"]
    assert stars("goodput of capacity", low=seeded(low), noise=seeded(noise)) == []


def test_a_star_says_better_than_every_other_and_not_only_than_the_next_one() -> None:
    best, next_one, wild = seeded([0.60, 0.62, 0.61]), seeded([0.55, 0.57, 0.56]), seeded([0.9, 0.0, 0.3])
    assert stars("goodput of capacity", best=best, next_one=next_one) == ["best"]
    assert stars("goodput of capacity", best=best, next_one=next_one, wild=wild) == []


def test_profiles_that_are_equal_in_every_seed_share_a_star() -> None:
    low, high = [0.50, 0.52, 0.51], [0.60, 0.62, 0.61]
    assert stars("goodput of capacity", one=seeded(high), low=seeded(low), other=seeded(high)) == ["one", "other"]


def test_a_profile_that_left_gangs_undone_in_one_seed_has_no_star() -> None:
    lazy = seeded([0.60, 0.62, 0.61])
    lazy[1] = lazy[1] | {"gangs": [results.gang("a/one"), results.gang("a/two", wait=None)]}
    assert stars("goodput of capacity", low=seeded([0.50, 0.52, 0.51]), lazy=lazy) == []


def test_simulations_that_were_asked_to_be_equally_long_are_compared_whatever_they_left_undone() -> None:
    lazy = seeded([0.60, 0.62, 0.61], ending="reached")
    lazy[1] = lazy[1] | {"gangs": [results.gang("a/one"), results.gang("a/two", wait=None)]}
    assert stars("goodput of capacity", low=seeded([0.50, 0.52, 0.51], ending="reached"), lazy=lazy) == ["lazy"]


def test_what_is_left_of_a_result_is_compared_as_the_whole_would_be() -> None:
    columns = {"low": seeded([0.50, 0.52, 0.51]), "high": seeded([0.60, 0.62, 0.61])}
    short = {name: [outline(result) for result in column] for name, column in columns.items()}
    assert compared(short) == compared(columns)


def many() -> Comparison:
    return compared({"low": seeded([0.50, 0.52, 0.51]), "high": seeded([0.60, 0.62, 0.61])})


def test_table_page_and_data_have_the_same_words_numbers_and_stars() -> None:
    found = many()
    table, html, data = "\n".join(comparison_lines(found)), page([], found), found.as_data()
    assert data["seeds"] == [0, 1, 2]
    for line in data["metrics"]:
        row = next(text for text in table.splitlines() if text.startswith(line["metric"] + " "))
        cells = html.partition(f">{line['metric']}</th>")[2].partition("</tr>")[0]
        for value in line["values"]:
            assert value["text"] in row
            assert value["text"] in cells
        assert row.count("*") == cells.count("★") == sum(value["isBest"] for value in line["values"])
    for note in data["notes"]:
        assert note in table


def test_values_have_their_interval() -> None:
    line = next(line for line in many().as_data()["metrics"] if line["metric"] == "goodput of capacity")
    assert line["values"][1]["text"] == "61.0% ±2.5%"
    assert line["values"][1]["low"] == pytest.approx(0.61 - 0.0248, abs=1e-4)
    assert line["better"] == "more"
    assert [value["isBest"] for value in line["values"]] == [False, True]


def test_the_queues_that_are_left_out_are_counted() -> None:
    gangs = [results.gang(f"a/{number}", queue=f"team-{number:02}") for number in range(11)]
    found = compared({"one": [results.result(gangs)], "other": [results.result(gangs)]})
    assert any("3 more queues" in note for note in found.notes)
    assert sum("of queue" in line.metric.label for line in found.lines) == 8 * 3
