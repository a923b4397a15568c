"""The search itself, by Optuna: which values to try next, given what came of those before.

Values are asked for in batches of a fixed size and answered in order, with a fixed seed: the same search gives the same
values, whoever simulates them and in which order they end. The first to be tried are the values that are there already.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from phalanx.errors import ConfigError
from phalanx.model.duration import seconds_of
from phalanx.sim.tuning.space import Setting, Value

EXTRA = "phalanx[tune]"


def refuse_without_optuna() -> None:
    """Refuse to search where the optimiser is missing."""
    missing = [name for name in ("optuna", "joblib") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"tune needs Python packages that are not installed: {', '.join(missing)}; run: pip install '{EXTRA}'")


class Search:
    """Proposes values and is told what came of them."""

    def __init__(self, settings: Sequence[Setting], *, seed: int, startup: int) -> None:
        """Begin with the present values, then with `startup` random ones."""
        optuna = import_module("optuna")
        optuna.logging.disable_default_handler()  # it would write to stderr as it was when Optuna was imported
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup)
        self._settings = settings
        self._study = optuna.create_study(sampler=sampler)
        self._trials: dict[int, Any] = {}  # Any: Optuna's trials
        present = {setting.name: _present(setting) for setting in settings}
        self._study.enqueue_trial({name: value for name, value in present.items() if value is not None})

    def ask(self, count: int) -> list[tuple[int, dict[str, Value]]]:
        """Return the next values to try, each with its number."""
        return [self._asked() for _ in range(count)]

    def _asked(self) -> tuple[int, dict[str, Value]]:
        trial = self._study.ask()
        self._trials[trial.number] = trial
        return trial.number, {setting.name: _suggested(trial, setting) for setting in self._settings}

    def tell(self, number: int, cost: float, violations: Sequence[float]) -> None:
        """Take what came of values: what is to be small, and by how much each bound is broken."""
        trial = self._trials.pop(number)
        for place, violation in enumerate(violations):
            trial.set_constraint(str(place), violation)
        self._study.tell(trial, cost)


def _present(setting: Setting) -> Value | None:
    """Return the value that is there already, as the search knows it; None where it lies outside."""
    if setting.choices:
        return setting.default if setting.default in setting.choices else None
    if setting.is_duration:
        found = None if setting.default is None else seconds_of(str(setting.default))
    else:
        found = float(setting.default) if isinstance(setting.default, int | float) else None
    if found is None or not setting.low <= found <= setting.high:
        return None
    return int(found) if setting.is_whole else found


def _suggested(trial: Any, setting: Setting) -> Value:  # Any: Optuna's trial
    if setting.choices:
        chosen: Value = trial.suggest_categorical(setting.name, list(setting.choices))
    elif setting.is_whole:
        chosen = trial.suggest_int(setting.name, int(setting.low), int(setting.high), log=setting.is_log)
    else:
        chosen = round(trial.suggest_float(setting.name, setting.low, setting.high, log=setting.is_log), 3)
    return chosen
