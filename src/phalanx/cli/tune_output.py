"""What a search has found: the settings, what they gain and what they cost; and the files that are written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx.cli import output
from phalanx.cli.seeds import seeds_text
from phalanx.cli.simulate_output import aligned
from phalanx.cli.tune import TuneOptions
from phalanx.cli.written_file import WrittenFile, first_line
from phalanx.cli.yaml_text import yaml_text
from phalanx.explain.reason_text import counted
from phalanx.sim.metrics import Result
from phalanx.sim.tuning.gains import Difference
from phalanx.sim.tuning.space import Setting, weights_of_queues
from phalanx.sim.tuning.tuner import Trial, Tuner

COMMAND = "tune"
NOTE = "differences with half of their 95 % interval by Student's t, seed by seed; other metrics differ by no more than chance"


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search has found."""

    tuner: Tuner
    name: str
    """Of the present configuration."""
    simulations: int
    best: Trial | None = None
    results: Sequence[Sequence[Result]] = ()
    """Of the present configuration and the best one, on seeds that the search has not seen."""
    differences: Sequence[Difference] = ()
    configuration: Mapping[str, Any] = field(default_factory=dict)
    is_interrupted: bool = False

    @property
    def goal(self) -> Difference | None:
        """The difference in what the search was for."""
        return next((item for item in self.differences if item.metric == self.tuner.plan.goal.metric), None)

    @property
    def broken(self) -> list[str]:
        """The bounds that are not kept on other seeds."""
        if not self.results:
            return []
        return [str(bound) for bound in self.tuner.plan.bounds if bound.violation(self.results[1]) > 0]

    @property
    def is_better(self) -> bool:
        """Tell whether it serves the goal better by more than chance, and keeps all bounds."""
        found = self.goal
        if found is None or self.broken or not found.found.is_real:
            return False
        return (found.found.mean > 0) == self.tuner.plan.goal.is_maximised

    def changed(self) -> Iterator[tuple[Setting, Any]]:
        """Yield the settings that the best values change, each with its new value."""
        values = {} if self.best is None else self.best.values
        for setting in self.tuner.plan.settings:
            if setting.name in values:
                yield setting, setting.written(values[setting.name])


def write_tuned(asked: TuneOptions, found: Tuned, file: WrittenFile) -> None:
    """Write the files, and say what was found."""
    if found.is_better:
        file.write(_config_text(asked, found))
        if asked.queues_to:
            WrittenFile("--queues-to", Path(asked.queues_to), COMMAND).write(_queues_text(found))
    if asked.form != "table":
        output.write_data(_data(asked, found), asked.form)
        return
    output.write_lines(_interrupted(asked, found) if found.is_interrupted else _lines(asked, found))


def _interrupted(asked: TuneOptions, found: Tuned) -> Iterator[str]:
    plan, best = found.tuner.plan, found.tuner.best
    yield f"interrupted after {len(found.tuner.trials)} of {counted(plan.trials, 'configuration')}"
    if best is not None:
        cost = -best.cost if plan.goal.is_maximised else best.cost
        yield f"the best until then has {plan.goal.metric.label} {plan.goal.metric.written(cost)}, on the seeds of the search:"
        names = {setting.name: setting for setting in plan.settings}
        yield from aligned(
            [(name, _change(names[name], names[name].written(value))) for name, value in best.values.items()], numbers=False
        )
    yield (
        f"the same command goes on with {asked.state}"
        if asked.state
        else "with --state FILE, the same command would go on from here"
    )


def _lines(asked: TuneOptions, found: Tuned) -> Iterator[str]:
    plan = found.tuner.plan
    yield f"{plan.goal}{''.join(f', subject to {bound}' for bound in plan.bounds)}"
    tried = counted(len(found.tuner.trials), "configuration")
    yield f"tried {tried} on seeds {seeds_text(plan.seeds)}, in {counted(found.simulations, 'simulation')}"
    if found.best is None:
        yield f"no configuration keeps on these seeds: {', '.join(map(str, plan.bounds))}; nothing is written"
        return
    changed = [(setting.name, _change(setting, value)) for setting, value in found.changed()]
    yield from ("", "SETTINGS", *(aligned(changed, numbers=False) if changed else ["no change is better"]))
    yield from _gains_and_costs(asked, found)
    yield from ("", _verdict(asked, found))


def _change(setting: Setting, value: object) -> str:
    return f"{setting.default if setting.default is not None else 'not set'} -> {value}"


def _gains_and_costs(asked: TuneOptions, found: Tuned) -> Iterator[str]:
    header = ("", found.name, "tuned", "difference")
    seeds = f"on seeds {seeds_text(asked.held_out)}, which the search has not seen"
    goal = [found.goal] if found.goal is not None else []
    gains = [item for item in found.differences if item.is_gain and item not in goal]
    costs = [item for item in found.differences if item.is_cost and item not in goal]
    for title, items in (("GOAL", goal), ("GAINS", gains), ("COSTS", costs)):
        rows = [_row(item) for item in items] or [("none", "", "", "")]
        yield from ("", f"{title}, {seeds}", *aligned([header, *rows]))
    yield NOTE


def _row(item: Difference) -> tuple[str, ...]:
    return item.metric.label, item.metric.written(item.base), item.metric.written(item.tuned), item.text


def _verdict(asked: TuneOptions, found: Tuned) -> str:
    if found.is_better:
        queues = f", the weights of queues in {asked.queues_to}" if asked.queues_to else ""
        return f"better than {found.name}; the configuration is in {asked.to}{queues}"
    if found.broken:
        return f"not kept on other seeds: {', '.join(found.broken)}; nothing is written"
    better = f"not better than {found.name} by more than chance on other seeds; nothing is written"
    return f"{better}. Try more --trials, --seeds or --held-out"


def _config_text(asked: TuneOptions, found: Tuned) -> str:
    plan, goal = found.tuner.plan, found.goal
    assert goal is not None, "it is better in it"
    lines = [
        f"{first_line('--to', COMMAND)}: {plan.goal}{''.join(f', subject to {bound}' for bound in plan.bounds)}.",
        f"# {goal.metric.label} on seeds {seeds_text(asked.held_out)}: {goal.metric.written(goal.base)} with {found.name},",
        f"# {goal.metric.written(goal.tuned)} with this one, a difference of {goal.text}.",
        *(f"# {setting.name}: {_change(setting, value)}" for setting, value in found.changed()),
    ]
    return "\n".join([*lines, yaml_text(dict(found.configuration))])


def _queues_text(found: Tuned) -> str:
    values = {} if found.best is None else found.best.values
    documents = [
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": weight}}
        for name, weight in weights_of_queues(found.tuner.plan.settings, values).items()
    ]
    head = f"{first_line('--queues-to', COMMAND)}: weights that go with the configuration.\n"
    return head + "---\n".join(map(yaml_text, documents))


def _data(asked: TuneOptions, found: Tuned) -> dict[str, Any]:
    plan, best = found.tuner.plan, found.best or found.tuner.best
    sign = -1 if plan.goal.is_maximised else 1
    return {
        "goal": str(plan.goal), "bounds": list(map(str, plan.bounds)), "seeds": list(plan.seeds), "heldOut": list(asked.held_out),
        "searched": [setting.as_data() for setting in plan.settings],
        "trials": [_trial_data(trial, sign) for trial in found.tuner.trials],
        "settings": {} if best is None else dict(best.values),
        "differences": [item.as_data() for item in found.differences], "broken": found.broken, "isBetter": found.is_better,
        "isInterrupted": found.is_interrupted, "configuration": dict(found.configuration) or None,
    }  # fmt: skip


def _trial_data(trial: Trial, sign: int) -> dict[str, Any]:
    return {"settings": dict(trial.values), "goal": sign * trial.cost, "isAllowed": trial.is_allowed}
