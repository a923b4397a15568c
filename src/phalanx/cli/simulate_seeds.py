"""`phalanx simulate --seeds`: the same load with many seeds under every policy, in parallel, as means with intervals."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from phalanx.cli import output
from phalanx.cli.parallel_jobs import EXTRA, Place, Workers, workers_at
from phalanx.cli.progress import clear_progress, show_progress
from phalanx.cli.seeds import seeds_text
from phalanx.cli.simulate import SimulateOptions
from phalanx.cli.simulate_output import comparison_lines
from phalanx.cli.simulate_run import asked_policies, write_report
from phalanx.cli.simulation_jobs import JobOutcome, SimulationJob, held
from phalanx.cli.simulation_load import SimulationLoad, load_of
from phalanx.errors import ConfigError
from phalanx.explain.reason_text import counted
from phalanx.sim.comparison import Comparison, compared


@dataclass(slots=True)
class SeedsOutcome:
    """What was simulated until the end, or until Ctrl-C."""

    names: Sequence[str]
    """Who decides, in the order of the columns."""
    seeds: Sequence[int]
    """All that were asked for."""
    done: dict[tuple[str, int], JobOutcome] = field(default_factory=dict)
    is_interrupted: bool = False

    @property
    def complete(self) -> list[int]:
        """The seeds that were simulated under every policy."""
        return [seed for seed in self.seeds if all((name, seed) in self.done for name in self.names)]

    def compared(self) -> Comparison:
        """Compare what is complete, and say what is missing."""
        found = compared({name: [self.done[name, seed].result for seed in self.complete] for name in self.names})
        return replace(found, notes=(*found.notes, *self.missing()))

    def ordered(self) -> Iterator[JobOutcome]:
        """Yield all that was simulated, in the order of seeds and columns."""
        return (self.done[name, seed] for seed in self.seeds for name in self.names if (name, seed) in self.done)

    @property
    def complaints(self) -> list[str]:
        """Where the simulations differ from what the scenario expects."""
        return [f"seed {item.seed}: {text}" for item in self.ordered() for text in item.complaints]

    def missing(self) -> Iterator[str]:
        """Say what Ctrl-C has left undone."""
        for name in self.names:
            seeds = [seed for seed in self.seeds if (name, seed) not in self.done]
            if seeds:
                yield f"interrupted: {name} is missing for {counted(len(seeds), 'seed')} of {len(self.seeds)}: {seeds_text(seeds)}"


def simulate_seeds(asked: SimulateOptions) -> SeedsOutcome:
    """Simulate every seed under every policy, and write what came out."""
    assert asked.seeds is not None, "somebody asked for several"
    place = Place(asked.processes, asked.on)
    place.refuse()
    load, policies = load_of(asked), list(asked_policies(asked))
    refuse_equal_seeds(load, asked.seeds)
    if place.is_here_alone and place.processes > 1:
        output.note(f"simulated one after the other; for several at a time, run: pip install '{EXTRA}'")
    first = asked.seeds[0]
    jobs = [
        SimulationJob(load.to_send(), name, policy, seed, is_whole=bool(asked.report) and seed == first)
        for seed in asked.seeds
        for name, policy in policies
    ]
    outcome = SeedsOutcome([name for name, _ in policies], asked.seeds)
    with workers_at(place) as workers:
        outcome.is_interrupted = not hold_all(jobs, workers, outcome.done)
    _write(asked, outcome)
    return outcome


def refuse_equal_seeds(load: SimulationLoad, seeds: Sequence[int]) -> None:
    """Refuse several seeds where all of them would be the same."""
    if load.work is None or load.work.is_random or len(seeds) == 1:
        return
    name, _, rest = (load.text or "").partition(":")
    where, remedy = (
        ("seed", "leave out its own seed=") if "seed=" in rest else ("trace", f"add jitter=0.1, as in {name}:PATH,jitter=0.1")
    )
    raise ConfigError(f"--seeds: the work is the same for every seed, as its {where} is fixed; {remedy}, or leave out --seeds")


def hold_all(jobs: Sequence[SimulationJob], workers: Workers, done: dict[tuple[str, int], JobOutcome]) -> bool:
    """Hold simulations and keep what comes out, with progress on a terminal; tell whether all were held before Ctrl-C."""
    begun, is_shown, count = time.monotonic(), sys.stderr.isatty(), 0
    if is_shown:
        show_progress(f"0 of {counted(len(jobs), 'simulation')}")
    try:
        for _, item in workers.all_done(jobs, held):
            done[item.name, item.seed] = item
            count += 1
            if is_shown:
                show_progress(f"{count} of {counted(len(jobs), 'simulation')}, {time.monotonic() - begun:.0f} s")
    except KeyboardInterrupt:
        return False
    finally:
        if is_shown:
            clear_progress()
    return True


def _write(asked: SimulateOptions, outcome: SeedsOutcome) -> None:
    for text in dict.fromkeys(f"{item.name}: {text}" for item in outcome.ordered() for text in item.notes):
        output.note(text)
    found = outcome.compared() if outcome.complete else None
    wholes = [item.whole for item in outcome.ordered() if item.whole is not None]
    if asked.report and found:
        write_report(asked.report, wholes, found)
    if asked.form != "table":
        for text in outcome.missing():
            output.note(text)
        output.write_data(_data(outcome, found), asked.form)
    elif found:
        output.write_lines(comparison_lines(found))
    else:
        output.note("no seed was simulated to its end, so there is nothing to show")
    for text in outcome.complaints:
        output.complain(f"not as expected: {text}")


def _data(outcome: SeedsOutcome, found: Comparison | None) -> Mapping[str, Any]:
    kept = ("profile", "seed", "seconds", "ending", "resource", "metrics", "deadlocks")
    runs = [{key: item.result[key] for key in kept} for item in outcome.ordered()]
    return {"runs": runs, "comparison": found.as_data() if found else None, "missing": list(outcome.missing())}
