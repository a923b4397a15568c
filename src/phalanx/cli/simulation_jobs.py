"""Simulations held apart from each other, in any process on any machine: each is given all it needs, and returns plain data."""

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx import __version__
from phalanx.cli.simulate_run import GARBAGE, told, world_of
from phalanx.cli.simulation_load import SimulationLoad, Weights
from phalanx.errors import ConfigError
from phalanx.session.policy import Policy
from phalanx.sim.comparison import outline
from phalanx.sim.playback import play
from phalanx.sim.result import Run, result


@dataclass(frozen=True, slots=True)
class SimulationJob:
    """One simulation."""

    load: SimulationLoad
    name: str
    policy: Policy
    seed: int
    weights: Weights | None = None
    """Of queues, instead of those of the load; what is fair is still measured by those of the load."""
    is_whole: bool = False
    """The whole result is wanted, and not only what can be compared."""
    version: str = __version__
    """Of the program that asks."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What came out of a simulation."""

    name: str
    seed: int
    result: Mapping[str, Any]
    """What can be compared."""
    whole: Mapping[str, Any] | None
    notes: Sequence[str]
    """What was wrong with objects."""
    complaints: Sequence[str]
    """Where it differs from what the scenario expects."""


def held(job: SimulationJob) -> JobOutcome:
    """Simulate to the end."""
    if job.version != __version__:
        raise ConfigError(f"--on: a worker runs phalanx {__version__}, and this is {job.version}; install the same version there")
    gc.set_threshold(*GARBAGE)
    given = job.load.input(job.seed, job.weights)
    world = world_of(given, job.name, job.policy)
    with told(world, f"{job.name}, seed {job.seed}", is_traced=False):
        ending = play(world, given.until, lambda moment: moment)
        fair = job.load.own_weights() if job.weights else None
        found = result(world, Run(job.name, job.seed, ending.seconds, ending.end.value, ending.is_quiet, fair))
    complaints = [text for check in given.scenario.expect for text in check.complaints(found)]
    return JobOutcome(
        job.name, job.seed, outline(found), found if job.is_whole else None, tuple(dict.fromkeys(world.problems)), complaints
    )
