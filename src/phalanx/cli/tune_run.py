"""`phalanx tune`: the search, simulated here or on a cluster, and what is written at its end."""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from phalanx import __version__
from phalanx.cli import output
from phalanx.cli.parallel_jobs import Place, Workers, workers_at
from phalanx.cli.policy_options import asked_policy
from phalanx.cli.progress import clear_progress, show_progress
from phalanx.cli.simulate import SOLO_PROFILE
from phalanx.cli.simulate_seeds import refuse_equal_seeds
from phalanx.cli.simulation_jobs import SimulationJob, held
from phalanx.cli.simulation_load import SimulationLoad, load_of
from phalanx.cli.tune import TuneOptions
from phalanx.cli.tune_output import Tuned, write_tuned
from phalanx.cli.tune_state import TuneState, key_of
from phalanx.cli.written_file import WrittenFile
from phalanx.config.policies import DEFAULT_PROFILE, policy_of
from phalanx.config.reference import in_full
from phalanx.dialects.documents import parse_text
from phalanx.errors import ConfigError
from phalanx.explain.reason_text import counted
from phalanx.session.policy import Policy
from phalanx.sim.metrics import Result
from phalanx.sim.tuning.gains import differences
from phalanx.sim.tuning.goal import read_bound, read_goal
from phalanx.sim.tuning.search import refuse_without_optuna
from phalanx.sim.tuning.space import Setting, Values, configuration, derived, of_queues, read_space, weights_of_queues
from phalanx.sim.tuning.tuner import Trial, TunePlan, Tuner
from phalanx.store.input_files import read_bytes

COMMAND, TUNED = "tune", "tuned"


@dataclass(slots=True)
class TuneOutcome:
    """How a search ended."""

    is_interrupted: bool = False
    is_better: bool = False


def tune(asked: TuneOptions) -> TuneOutcome:
    """Search, compare the best with the present configuration on other seeds, and write what came out."""
    refuse_without_optuna()
    place, file = Place(asked.processes, asked.on), WrittenFile("--to", Path(asked.to), COMMAND)
    place.refuse()
    file.refuse()
    goal, bounds = read_goal(asked.minimise, asked.maximise), [read_bound(text) for text in asked.bounds]
    policy = _present_policy(asked)
    load = load_of(asked)
    refuse_equal_seeds(load, asked.held_out)
    settings = _settings(asked, policy, load)
    plan = TunePlan(settings, goal, bounds, asked.seeds, asked.trials, asked.batch, asked.search_seed)
    trying = Trying(load, policy, settings, TuneState(_path(asked.state), _question(asked, plan, policy, load)))
    _tell_begin(plan, trying)
    tuner = Tuner(plan, trying.evaluate)
    trying.shown = partial(_shown, tuner)
    with workers_at(place) as trying.workers:
        return _searched(asked, tuner, trying, file)


def _searched(asked: TuneOptions, tuner: Tuner, trying: "Trying", file: WrittenFile) -> TuneOutcome:
    name = asked.config or asked.profile or DEFAULT_PROFILE
    try:
        _refuse_equal_results(trying.evaluate([{}], asked.held_out)[0])
        best = tuner.run()
        results = trying.evaluate([{}, best.values], asked.held_out) if best is not None else []
    except KeyboardInterrupt:
        trying.finish()
        write_tuned(asked, Tuned(tuner, name, trying.count, is_interrupted=True), file)
        return TuneOutcome(is_interrupted=True)
    trying.finish()
    found = Tuned(tuner, name, trying.count, best, results, _differences(results), trying.configuration(best))
    write_tuned(asked, found, file)
    return TuneOutcome(is_better=found.is_better)


def _refuse_equal_results(results: Sequence[Result]) -> None:
    """Refuse a load in which nothing is random: a difference in it is one sample, and has no interval."""
    if len({json.dumps(result["metrics"], sort_keys=True) for result in results}) == 1:
        raise ConfigError("every seed gives the same: nothing in this load is random; let it vary with --jitter 0.1")


def _differences(results: Sequence[Sequence[Result]]) -> list[Any]:
    return differences(results[0], results[1]) if results else []


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _present_policy(asked: TuneOptions) -> Policy:
    if asked.profile == SOLO_PROFILE:
        raise ConfigError(f"--profile: {SOLO_PROFILE} schedules no gangs and has nothing to tune; name another one")
    return asked_policy(asked.config, asked.profile)


def _settings(asked: TuneOptions, policy: Policy, load: SimulationLoad) -> list[Setting]:
    if asked.space is None:
        found = derived(policy)
    else:
        documents = parse_text(read_bytes(asked.space), asked.space)
        found = read_space(documents[0] if documents else None, policy, asked.space)
    weights = load.own_weights()
    if asked.queues_to and not any(setting.section == "queues" for setting in found):
        found += of_queues(weights)
    _refuse_queues(asked, found, weights)
    if not found:
        raise ConfigError("there is nothing to search: the configuration has no numbers or durations; name settings with --space")
    policy_of(configuration(policy, found, {setting.name: _first(setting) for setting in found}))
    return found


def _refuse_queues(asked: TuneOptions, settings: Sequence[Setting], weights: Mapping[str, float]) -> None:
    queues = [setting.owner for setting in settings if setting.section == "queues"]
    if queues and not asked.queues_to:
        raise ConfigError("--space: weights of queues are no part of a configuration; name a file for them with --queues-to")
    for name in queues:
        if name not in weights:
            raise ConfigError(f"--space: queues.{name}: no such queue in the load; it has: {', '.join(sorted(weights)) or 'none'}")
    if asked.queues_to and not queues:
        raise ConfigError("--queues-to: the load has no queues with weights; leave it out")


def _first(setting: Setting) -> Any:  # a value of any form
    return setting.choices[0] if setting.choices else int(setting.low) if setting.is_whole else setting.low


def _question(asked: TuneOptions, plan: TunePlan, policy: Policy, load: SimulationLoad) -> dict[str, Any]:
    """Return all that decides what is found, except where it runs."""
    return {
        "version": __version__, "load": _digest(load), "jitter": asked.jitter,
        "goal": str(plan.goal), "bounds": list(map(str, plan.bounds)),
        "configuration": in_full(policy), "settings": [setting.as_data() for setting in plan.settings],
        "seeds": list(plan.seeds), "held-out seeds": list(asked.held_out), "number of trials": plan.trials,
        "batch": plan.batch, "search seed": plan.seed,
    }  # fmt: skip


def _digest(load: SimulationLoad) -> str:
    """Return a digest of what is simulated; sets have no order, and are left out."""
    scenario = [
        (item.name, str(getattr(load.given.scenario, item.name)))
        for item in fields(load.given.scenario)
        if item.name != "controllers"
    ]
    recorded = None if load.work is None or load.is_made_up else repr(load.work.workload)
    parts = [load.given.parts.there, load.given.parts.gangs, load.given.parts.late, load.given.parts.nodes]
    text = json.dumps([load.text, load.given.until, recorded, scenario, parts], sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()


# --- trying --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Trying:
    """Tries values by simulation, and keeps what came out."""

    load: SimulationLoad
    policy: Policy
    settings: Sequence[Setting]
    state: TuneState
    workers: Workers = field(default_factory=Workers)
    shown: Callable[[], str] = str
    """What progress says besides the number of simulations."""
    count: int = 0
    """Simulations that were held now."""
    _begun: float = field(default_factory=time.monotonic)
    _is_terminal: bool = field(default_factory=lambda: sys.stderr.isatty())

    def configuration(self, trial: Trial | None) -> dict[str, Any]:
        """Return the configuration with the values of a trial."""
        return configuration(self.policy, self.settings, {} if trial is None else trial.values)

    def evaluate(self, values: Sequence[Values], seeds: Sequence[int]) -> list[list[Result]]:
        """Return one result for each seed, for each choice of values; those that are known are not simulated again."""
        keys = {(place, seed): key_of(chosen, seed) for place, chosen in enumerate(values) for seed in seeds}
        wanted = {name: self._job(values[place], seed) for (place, seed), name in keys.items() if name not in self.state.results}
        self._show()
        for number, item in self.workers.all_done(list(wanted.values()), held):
            self.state.keep(list(wanted)[number], item.result)
            self.count += 1
            self._show()
        self.state.write()
        return [[self.state.results[keys[place, seed]] for seed in seeds] for place in range(len(values))]

    def _job(self, values: Values, seed: int) -> SimulationJob:
        policy = policy_of(configuration(self.policy, self.settings, values)) if values else self.policy
        weights = weights_of_queues(self.settings, values)
        return SimulationJob(self.load.to_send(), TUNED, replace(policy, flags=self.policy.flags), seed, weights or None)

    def _show(self) -> None:
        if self._is_terminal:
            show_progress(f"{self.shown()}{counted(self.count, 'simulation')}, {time.monotonic() - self._begun:.0f} s")

    def finish(self) -> None:
        """Keep what is known, and take the line of progress away."""
        self.state.write()
        if self._is_terminal:
            clear_progress()


def _tell_begin(plan: TunePlan, trying: Trying) -> None:
    known = trying.state.load()
    if known:
        output.note(f"goes on with {counted(known, 'simulation')} of {trying.state.path}")
    output.note(f"searches {counted(len(plan.settings), 'setting')} in {counted(plan.trials, 'configuration')}: {plan.goal}")


def _shown(tuner: Tuner) -> str:
    tried = f"{len(tuner.trials)} of {tuner.plan.trials} configurations tried, "
    if tuner.best is None:
        return tried
    cost = -tuner.best.cost if tuner.plan.goal.is_maximised else tuner.best.cost
    best = f"{tried}best {tuner.plan.goal.metric.label} {tuner.plan.goal.metric.written(cost)}, "
    return f"{best}putting back what does not matter, " if tuner.is_pruning else best
