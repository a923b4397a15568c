"""The reference of the metrics of simulations has every metric, with the constants of the code."""

from pathlib import Path

import pytest

from phalanx.sim.fairness import TOLERANCE
from phalanx.sim.intervals import CONFIDENCE
from phalanx.sim.metrics import METRICS, MOST_QUEUES, Metric
from phalanx.sim.size_classes import SIZE_CLASSES, size_words
from phalanx.sim.work_done import BOUND_SECONDS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "simulation-metrics.md").read_text()
TABLE = [line for line in PAGE.partition("## All metrics")[2].partition("## Fairness")[0].splitlines() if line.startswith("| ")]
ROWS = {name.strip(): row for row in TABLE for name in row.split("|")[1].split(",")}


@pytest.mark.parametrize(
    "metric", [metric for metric in METRICS if metric.path[0] != "waitBySize"], ids=lambda metric: metric.label
)
def test_a_metric_is_defined_with_which_way_is_better(metric: Metric) -> None:
    assert ROWS[metric.label].split("|")[2].strip() == (metric.better or "")


def test_waits_are_defined_for_every_class_of_sizes() -> None:
    (row,) = [row for row in TABLE if "of 1 task" in row]
    assert all(f"of {size_words(name)}" in row for name in SIZE_CLASSES)


def test_constants_are_those_of_the_code() -> None:
    assert f"max(run, {BOUND_SECONDS:g} s)" in PAGE
    assert f"more than {TOLERANCE:.0%}".replace("%", " %") in PAGE
    assert f"the {MOST_QUEUES} queues with the most gangs" in PAGE
    assert f"{CONFIDENCE:.0%}".replace("%", " %") in PAGE
