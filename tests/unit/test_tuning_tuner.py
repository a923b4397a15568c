"""A search from its beginning to its end, on made-up results: what is tried, what is kept, what is put back."""

from collections.abc import Callable, Sequence

import pytest

from phalanx.sim.metrics import Result
from phalanx.sim.tuning.goal import read_bound, read_goal
from phalanx.sim.tuning.space import Setting, Values
from phalanx.sim.tuning.tuner import TunePlan, Tuner
from tests.support import sim_results as results

pytest.importorskip("optuna", reason="searches need the extra tune")

SETTINGS = [Setting("plugins", "p", name, 1, 0, 10) for name in ("good", "bad", "idle", "other")]
Measure = Callable[[Values], tuple[float, float]]


def measured(values: Values) -> tuple[float, float]:
    """Return fragmentation and fairness: one setting makes things better, another worse, and two do not matter."""
    good, bad = int(values.get("p: good", 1)), int(values.get("p: bad", 1))
    return 0.5 - 0.04 * good + 0.03 * bad, 1.0 - 0.05 * good


def tuner(*bounds: str, measure: Measure = measured, trials: int = 24, batch: int = 4) -> Tuner:
    def evaluate(values: Sequence[Values], seeds: Sequence[int]) -> list[list[Result]]:
        pairs = [measure(chosen) for chosen in values]
        return [
            [results.result([], seed=seed, metrics={"fragmentation": one, "fairness": two}) for seed in seeds] for one, two in pairs
        ]

    goal = read_goal("fragmentation", None)
    return Tuner(TunePlan(SETTINGS, goal, [read_bound(text) for text in bounds], (1, 2), trials, batch), evaluate)


def test_the_present_values_are_tried_first() -> None:
    search = tuner(trials=1, batch=1)
    search.run()
    assert search.trials[0].values == {f"p: {name}": 1 for name in ("good", "bad", "idle", "other")}
    assert search.base is not None
    assert (search.base.values, round(search.base.cost, 6)) == ({}, 0.49)


def test_better_values_are_found_and_what_does_not_matter_is_put_back() -> None:
    best = tuner().run()
    assert best is not None
    assert best.cost < 0.25
    assert set(best.values) == {"p: good", "p: bad"}


def test_values_that_break_a_bound_are_not_chosen() -> None:
    search = tuner("fairness >= 0.8")
    best = search.run()
    assert best is not None
    assert int(best.values.get("p: good", 1)) <= 4
    assert any(not trial.is_allowed for trial in search.trials)


def test_no_values_may_keep_a_bound() -> None:
    assert tuner("fairness >= 2", trials=4).run() is None


def test_the_same_search_tries_the_same_values() -> None:
    first, second = tuner(), tuner()
    assert first.run() == second.run()
    assert first.trials == second.trials


def test_what_was_tried_before_an_interruption_is_known() -> None:
    tried = []

    def interrupted(values: Values) -> tuple[float, float]:
        tried.append(values)
        if len(tried) > 10:
            raise KeyboardInterrupt
        return measured(values)

    search = tuner(measure=interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    assert len(search.trials) == 8
    assert search.best is not None
