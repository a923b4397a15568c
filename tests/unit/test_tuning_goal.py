"""Goals and bounds of a search, as they are typed."""

import pytest

from phalanx.errors import ConfigError
from phalanx.sim.metrics import METRICS
from phalanx.sim.tuning.goal import read_bound, read_goal
from tests.support import sim_results as results


def test_any_metric_of_the_tables_is_a_goal() -> None:
    for metric in METRICS:
        assert read_goal(metric.label, None).metric == metric
    assert read_goal("P90  Wait", None).metric.label == "p90 wait"
    assert read_goal("p90 wait of queue team-1", None).metric.path == ("waitByQueue", "team-1", "p90")


def test_the_cost_is_the_mean_over_seeds_and_negative_where_more_is_better() -> None:
    seeds = [results.result([results.gang("a")], metrics={"goodputPart": part}) for part in (0.5, 0.7)]
    assert read_goal(None, "goodput of capacity").cost(seeds) == pytest.approx(-0.6)
    assert read_goal("goodput of capacity", None).cost(seeds) == pytest.approx(0.6)


def test_a_metric_that_no_simulation_has_is_no_goal() -> None:
    with pytest.raises(ConfigError, match="'p90 wait of over 32 tasks' has no value in any simulation of this load"):
        read_goal("p90 wait of over 32 tasks", None).cost([results.result([results.gang("a")])])


@pytest.mark.parametrize(
    ("text", "limit", "written"),
    [
        ("fairness >= 0.95", 0.95, "fairness >= 0.950"),
        ("p99 wait<=2h", 7200.0, "p99 wait <= 2h"),
        ("lost work of capacity <= 2%", 0.02, "lost work of capacity <= 2.0%"),
        ("lost work of capacity < 0.02", 0.02, "lost work of capacity < 2.0%"),
        ("lost work <= 100 h", 360000.0, "lost work <= 100 h"),
        ("gangs evicted <= 3", 3.0, "gangs evicted <= 3"),
    ],
)
def test_a_bound_has_the_unit_of_its_metric(text: str, limit: float, written: str) -> None:
    bound = read_bound(text)
    assert bound.limit == pytest.approx(limit)
    assert str(bound) == written


def test_a_bound_is_kept_or_broken_by_the_mean() -> None:
    seeds = [results.result([], metrics={"fairness": value}) for value in (0.9, 1.0)]
    assert read_bound("fairness >= 0.95").violation(seeds) <= 0
    assert read_bound("fairness >= 0.96").violation(seeds) == pytest.approx(0.01)
    assert read_bound("fairness < 0.95").violation(seeds) > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fairness", "--subject-to: 'fairness' is no bound; write a metric, <= or >=, and a number"),
        ("fairnes >= 1", "--subject-to: 'fairnes' is no metric; write one of: gangs, gangs started"),
        ("p99 wait <= x", "--subject-to: p99 wait: 'x' is not a duration such as 90s or 2h"),
        ("fairness >= x", "--subject-to: fairness: 'x' is not a number"),
        ("held <= x%", "--subject-to: held: 'x%' is not a part such as 0.02 or 2%"),
    ],
)
def test_a_wrong_bound_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_bound(text)
    assert message in str(caught.value)


def test_a_wrong_goal_is_refused_with_the_list() -> None:
    with pytest.raises(ConfigError) as caught:
        read_goal("p95 wait", None)
    assert all(metric.label in str(caught.value) for metric in METRICS)
    assert "p90 wait of queue NAME" in str(caught.value)
    with pytest.raises(ConfigError, match="one goal"):
        read_goal(None, None)
