"""Simulations as the command line runs them: worlds are made and played one after the other, and shown."""

import gc
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import click

from phalanx.cli import output
from phalanx.cli.progress import clear_progress, show_progress
from phalanx.cli.record_options import Subject, config_typed, recorded
from phalanx.cli.simulate import SOLO_PROFILE, SimulateOptions
from phalanx.cli.simulate_output import ShownSimulation, ending_text, missing_text, never_started, write_comparison, write_one
from phalanx.cli.simulate_trace import SimulationTrace
from phalanx.cli.simulation_load import SimulationInput, load_of
from phalanx.cli.streams import escaped
from phalanx.cli.trace_options import LEVELS
from phalanx.config.policies import DEFAULT_PROFILE, policy_of_gates, policy_of_profile, profile_names, with_gates
from phalanx.controllers.builtin import standard_controllers
from phalanx.errors import ConfigError, PhalanxError, SimulationFault
from phalanx.live.catalogue import connected
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.sim.comparison import Comparison, compared
from phalanx.sim.metrics import short_time
from phalanx.sim.playback import play
from phalanx.sim.result import Run, result
from phalanx.sim.served_results import RUNNING, ResultWriter
from phalanx.sim.settings import Settings
from phalanx.sim.setup import set_stage, set_workload
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.world import World
from phalanx.store.input_files import policy_of_file

FOR_WEEKS: dict[str, Any] = {"removes_finished": True, "settling": 60.0, "parks_up_to": 1800.0, "heartbeat": 600.0}
"""Settings with which weeks of work are simulated: sessions that most likely find nothing to do are rarer."""
GARBAGE = (100_000, 20, 50)
"""Thresholds of Python's garbage collector: a simulation creates many objects, and few of them form cycles."""
COUNTED_EVERY_SECONDS = 600.0
"""How often queues are counted in them."""
SLICE_SECONDS, BETWEEN_LINES_SECONDS = 0.05, 0.1


@dataclass(slots=True)
class SimulationOutcome:
    """The results, and where they differ from what the scenario expects."""

    shown: list[ShownSimulation] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    is_interrupted: bool = False
    missing: list[str] = field(default_factory=list)
    """What was to be compared too; Ctrl-C came first."""


def simulate(asked: SimulateOptions) -> SimulationOutcome:
    """Simulate under every policy that was asked for, and write what came out."""
    gc.set_threshold(*GARBAGE)
    load, policies = load_of(asked), list(asked_policies(asked))
    given = load.input(load.given.seed)
    outcome, pace = SimulationOutcome(), PlaybackPace(asked.factor, shows=asked.verbosity is None)
    with pace.listening():
        for name, policy in policies:
            world = world_of(given, name, policy)
            trace, written = SimulationTrace(asked, name, world), _writer(asked, name, given)
            pace.passing = written.pass_by
            with _recorded(asked, world), told(world, name, is_traced=asked.verbosity == LEVELS[-1]):
                shown = simulated(given, name, world, pace)
            written.end(shown.result)
            outcome.shown.append(replace(shown, result=trace.in_answer(dict(shown.result))))
            outcome.is_interrupted = pace.is_over
            if pace.is_over:
                outcome.missing = [other for other, _ in policies[len(outcome.shown) :]]
                break
    results = [shown.result for shown in outcome.shown]
    if not outcome.is_interrupted:
        outcome.complaints = [text for item in results for check in given.scenario.expect for text in check.complaints(item)]
    _write(asked, outcome)
    return outcome


class WrittenResults:
    """Writes what a simulation comes to, if that was asked for."""

    def __init__(self, writer: ResultWriter | None, name: str, seed: int) -> None:
        """Without a writer nothing is written."""
        self._writer, self._name, self._seed = writer, name, seed

    def pass_by(self, world: World) -> None:
        """Write how far it has got, now and then."""
        if self._writer is not None:
            self._writer.pass_by(world, Run(self._name, self._seed, ending=RUNNING))

    def end(self, found: Mapping[str, Any]) -> None:
        """Write what came out."""
        if self._writer is not None:
            self._writer.write(found)


def _writer(asked: SimulateOptions, name: str, given: SimulationInput) -> WrittenResults:
    if not asked.results:
        return WrittenResults(None, name, given.seed)
    stem = Path(asked.paths[0]).resolve().name if asked.paths else (asked.workload or "").partition(":")[0]
    return WrittenResults(ResultWriter(Path(asked.results), f"{stem}-{name}-{given.seed}", time.monotonic), name, given.seed)


def _recorded(asked: SimulateOptions, world: World) -> AbstractContextManager[object]:
    subject = Subject("simulate", world.cache, world.store.everything, lambda: world.now, world.loop, world.planner)
    return recorded(asked, subject, config_typed(asked.config, asked.profile, asked.gates), report=output.note, is_patient=True)


def _write(asked: SimulateOptions, outcome: SimulationOutcome) -> None:
    results = [shown.result for shown in outcome.shown]
    found = _compared(outcome) if asked.compare else None
    if asked.report:
        write_report(asked.report, results, found)
    if asked.form != "table":
        for shown in outcome.shown:
            for text in (ending_text(shown), *never_started(shown.result)):
                output.note(text)
        for text in missing_text(outcome.missing):
            output.note(text)
        output.write_data({"results": results, "comparison": found.as_data()} if found else results[0], asked.form)
    elif found:
        write_comparison(found, outcome.shown)
    else:
        write_one(outcome.shown[0], output.Terminal.of_stdout())
    for text in outcome.complaints:
        output.complain(f"not as expected: {text}")


def _compared(outcome: SimulationOutcome) -> Comparison:
    """Compare what was simulated, and say what is missing."""
    found = compared({str(shown.result["profile"]): [shown.result] for shown in outcome.shown})
    return replace(found, notes=(*found.notes, *missing_text(outcome.missing)))


def write_report(path: str, results: Sequence[Mapping[str, Any]], found: Comparison | None) -> None:
    """Write the page of some results."""
    from phalanx.sim.report import page

    try:
        Path(path).write_text(escaped(page([dict(result) for result in results], found)), encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"--report: {path}: cannot be written: {problem.strerror}") from problem
    output.note(f"the report is in {path}")


# --- who decides ---------------------------------------------------------------------------------------------------------


def asked_policies(asked: SimulateOptions) -> Iterator[tuple[str, Policy]]:
    """Yield who decides, each with its name: profiles, or configuration files."""
    if asked.config:
        yield asked.config, with_gates(policy_of_file(asked.config), asked.gates)
        return
    names = (asked.compare or asked.profile or DEFAULT_PROFILE).split(",")
    for name in dict.fromkeys(name.strip() for name in names):
        is_file = asked.compare is not None and name not in profile_names() and Path(name).is_file()
        yield name, with_gates(policy_of_file(name) if is_file else policy_of_profile(name), asked.gates)


# --- one simulation ------------------------------------------------------------------------------------------------------


def simulated(given: SimulationInput, name: str, world: World, pace: "PlaybackPace") -> ShownSimulation:
    """Let a world live to its end, and return what came out."""
    ending = play(world, given.until, pace.begin(world, name, given.until))
    pace.finish()
    for text in dict.fromkeys(world.problems):
        output.note(f"{name}: {text}")
    run = Run(name, given.seed, ending.seconds, ending.end.value, ending.is_quiet)
    return ShownSimulation(result(world, run), tuple(world.recorder.node_events), ending)


@contextmanager
def told(world: World, name: str, *, is_traced: bool) -> Iterator[None]:
    """Make a sentence of a fault for which no gang is to blame; how it came about is shown to those who want all details."""
    try:
        yield
    except PhalanxError:
        raise
    except Exception as problem:
        if is_traced:
            click.echo("".join(traceback.format_exception(problem)), err=True, nl=False)
        moment = f"session {world.loop.count}, {short_time(world.now - world.start)} after the start"
        hint = "" if is_traced else f"; '-v {LEVELS[-1]}' shows where"
        fault = f"{type(problem).__name__}: {problem}"
        raise SimulationFault(f"{name}: the simulation failed at {moment}, please report it: {fault}{hint}") from problem


def world_of(given: SimulationInput, name: str, policy: Policy) -> World:
    """Return a world in which a policy decides, before anything happens."""
    profile = connected(policy)
    if given.workload is None:
        world = _served_world(given, name, profile, given.scenario.settings)
    elif given.parts.is_empty:  # groups and pods that are complete: no controller would have anything to do
        world = World(
            profile,
            settings=replace(given.scenario.settings, **FOR_WEEKS, says_why=False),
            seed=given.seed,
            is_solo=name == SOLO_PROFILE,
            isolates=True,
        )
    else:
        world = _served_world(given, name, profile, replace(given.scenario.settings, **FOR_WEEKS))
    if given.workload is not None:
        set_workload(world, given.workload, policy.dialect)
    set_stage(world, given.parts, given.scenario)
    return world


def _served_world(given: SimulationInput, name: str, profile: Profile, settings: Settings) -> World:
    """Return a world with all controllers; those that count do so rarely where weeks are simulated."""
    policy, chosen = profile.policy, replace(given.scenario.controllers, scheduler=(profile.policy, profile.catalogue))
    if given.workload is not None:
        chosen = replace(chosen, queue_status_seconds=COUNTED_EVERY_SECONDS)
    return World(
        profile, settings=settings, seed=given.seed, is_solo=name == SOLO_PROFILE,
        controllers=standard_controllers(pair_for, chosen, has_admission=policy.has_admission),
        gates=connected(policy_of_gates(policy)), schedulers=given.schedulers, isolates=True,
    )  # fmt: skip


class PlaybackPace:
    """Paces a simulation: lets its time pass no faster than asked, shows the progress, and ends it on Ctrl-C."""

    def __init__(self, factor: float | None, *, shows: bool = True) -> None:
        """Let this many seconds of the cluster pass in one real second; None for as fast as possible."""
        self._factor = factor
        self._shows = shows and sys.stderr.isatty()
        self._begun, self._last_line = 0.0, 0.0
        self._world: World | None = None
        self._name = ""
        self._until: float | None = None
        self.is_over = False
        self.passing: Callable[[World], None] = lambda world: None
        """Called again and again while a world lives."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """End a simulation on Ctrl-C; a second one ends the program."""
        before = signal.signal(signal.SIGINT, self._stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.is_over = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def begin(self, world: World, name: str, until: float | None) -> "PlaybackPace":
        """Return itself for a new world."""
        self._world, self._name, self._until = world, name, until
        self._begun = self._last_line = time.monotonic()
        return self

    def __call__(self, moment: float) -> float:
        """Wait until a moment of the cluster has come; return it, or an earlier one if the simulation is over."""
        self._show()
        if self._world is not None:
            self.passing(self._world)
        while not self.is_over and (left := self._seconds_until(moment)) > 0:
            time.sleep(min(left, SLICE_SECONDS))
            self._show()
        return min(moment, self._moment()) if self.is_over else moment

    def _seconds_until(self, moment: float) -> float:
        return 0.0 if self._factor is None else moment / self._factor - (time.monotonic() - self._begun)

    def _moment(self) -> float:
        """Return how far the cluster's time is: as far as the clock says, or as things have happened."""
        passed = 0.0 if self._world is None else self._world.now - self._world.start
        return passed if self._factor is None else max((time.monotonic() - self._begun) * self._factor, passed)

    def _show(self) -> None:
        now = time.monotonic()
        if self._shows and now - self._last_line >= BETWEEN_LINES_SECONDS and self._world is not None:
            self._last_line = now
            records = self._world.recorder.gangs.values()
            finished = sum(record.finished is not None for record in records)
            of = f" of {short_time(self._until)}" if self._until is not None else ""
            text = f"{self._name}: {short_time(self._moment())}{of}, {finished} of {len(records)} gangs finished"
            show_progress(f"{text}, {now - self._begun:.0f} s")

    def finish(self) -> None:
        """Take the line away."""
        if self._shows:
            clear_progress()
