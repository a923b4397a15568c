"""A search from its beginning to its end: batches of values are tried, the best is kept, and what does not matter is put back.

It does not know how values are tried; whoever runs it says. When that is interrupted, everything that was tried until then is
known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from phalanx.sim.metrics import Result
from phalanx.sim.tuning.goal import Bound, Goal
from phalanx.sim.tuning.search import Search
from phalanx.sim.tuning.space import Setting, Values

Evaluate = Callable[[Sequence[Values], Sequence[int]], Sequence[Sequence[Result]]]
"""Returns one result for each seed, for each choice of values."""


@dataclass(frozen=True, slots=True)
class TunePlan:
    """What is searched, for what, and how long."""

    settings: Sequence[Setting]
    goal: Goal
    bounds: Sequence[Bound]
    seeds: Sequence[int]
    trials: int
    batch: int
    """So many values are asked for at a time, wherever they are tried: it decides what is asked for next."""
    seed: int = 0
    """Of the optimiser."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Values that were tried."""

    values: Values
    cost: float
    """What is to be small: the mean of the goal over all seeds, negative where more is better."""
    violations: tuple[float, ...]
    """Of each bound; 0 or less where it is kept."""

    @property
    def is_allowed(self) -> bool:
        """Tell whether every bound is kept."""
        return all(violation <= 0 for violation in self.violations)


@dataclass(slots=True)
class Tuner:
    """One search."""

    plan: TunePlan
    evaluate: Evaluate
    trials: list[Trial] = field(default_factory=list)
    base: Trial | None = None
    """The values that are there already."""
    is_pruning: bool = False
    """The best is found, and what does not matter in it is put back."""

    @property
    def best(self) -> Trial | None:
        """The best values that keep all bounds; the earliest of equals, and none where no values keep them."""
        allowed = [trial for trial in self.trials if trial.is_allowed]
        return min(allowed, key=lambda trial: trial.cost) if allowed else None

    def run(self) -> Trial | None:
        """Search; return the best values, with as few changes as give as much, or None where no values keep the bounds."""
        (self.base,) = self._tried([{}])
        search = Search(self.plan.settings, seed=self.plan.seed, startup=max(self.plan.trials // 4, self.plan.batch))
        while len(self.trials) < self.plan.trials:
            asked = search.ask(min(self.plan.batch, self.plan.trials - len(self.trials)))
            for (number, _), trial in zip(asked, self._tried([values for _, values in asked]), strict=True):
                search.tell(number, trial.cost, trial.violations)
                self.trials.append(trial)
        return None if self.best is None else self._pruned(self.best)

    def _tried(self, values: Sequence[Values]) -> list[Trial]:
        goal, bounds = self.plan.goal, self.plan.bounds
        found = self.evaluate(values, self.plan.seeds)
        return [
            Trial(chosen, goal.cost(results), tuple(bound.violation(results) for bound in bounds))
            for chosen, results in zip(values, found, strict=True)
        ]

    def _pruned(self, best: Trial) -> Trial:
        """Put settings back whose change gives nothing: many at once, and fewer where some of them matter."""
        self.is_pruning = True
        defaults = {setting.name: setting.default for setting in self.plan.settings}
        changed = [name for name, value in best.values.items() if str(value) != str(defaults[name])]
        best = Trial({name: best.values[name] for name in changed}, best.cost, best.violations)
        return self._without(best, changed)

    def _without(self, best: Trial, names: Sequence[str]) -> Trial:
        if not names:
            return best
        (trial,) = self._tried([{name: value for name, value in best.values.items() if name not in names}])
        if trial.is_allowed and trial.cost <= best.cost:
            return trial
        if len(names) == 1:
            return best
        half = len(names) // 2
        return self._without(self._without(best, names[:half]), names[half:])
