"""The work of a recording, read from its folder and simulated under one policy after the other."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from phalanx.cli import output
from phalanx.cli.embedded_objects import served_documents
from phalanx.cli.progress import clear_progress, show_progress
from phalanx.cli.simulate_run import PlaybackPace, simulated, told, world_of
from phalanx.cli.simulation_load import SimulationInput
from phalanx.cli.yaml_text import yaml_text
from phalanx.errors import RecordingError
from phalanx.recording.entries import AnyEntry, Moment
from phalanx.recording.load import Load
from phalanx.recording.moment import time_text
from phalanx.recording.observed_work import ObservedWork
from phalanx.recording.other_outcome import GangOutcome
from phalanx.recording.reading import Recording
from phalanx.session.policy import Policy
from phalanx.sim.scenario import find_scenarios
from phalanx.sim.setup import cast

PLACE = "the load of the recording"
BETWEEN_LINES = 5_000
"""Entries from one line of progress to the next."""


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """What a recording shows, and the load that is made of it."""

    work: ObservedWork
    load: Load


def feed(recording: Recording, enter: Callable[[AnyEntry], None]) -> None:
    """Hand every entry of a recording over, with progress on a terminal."""
    is_shown, moment = sys.stderr.isatty(), 0.0
    for number, (_, entry) in enumerate(recording.entries()):
        enter(entry)
        moment = entry.now if isinstance(entry, Moment) else moment
        if is_shown and number % BETWEEN_LINES == 0:
            show_progress(f"read {number:,} entries, until {time_text(moment)}")
    if is_shown:
        clear_progress()


def refuse_empty(work: ObservedWork, folder: str) -> None:
    """Refuse a recording of which nothing can be read."""
    if work.header is None:
        raise RecordingError(f"{folder}: the recording is empty: nothing of it can be read, so there is nothing to simulate")


def recording_of(folder: str) -> Recording:
    """Return the recording in a folder; what cannot be read of it is told."""
    return Recording(Path(folder), tell=output.note)


def simulations(found: RecordedLoad, policies: Sequence[tuple[str, Policy]]) -> list[Mapping[str, Any]]:
    """Return what comes out under each policy, by name; fewer on Ctrl-C."""
    given, pace, results = _input(found), PlaybackPace(None), []
    with pace.listening():
        for name, policy in policies:
            world = world_of(given, name, policy)
            with told(world, name, is_traced=False):
                shown = simulated(given, name, world, pace)
            if pace.is_over:
                break
            results.append(shown.result)
    return results


def _input(found: RecordedLoad) -> SimulationInput:
    served = served_documents(found.load.documents, PLACE)
    (scenario,) = find_scenarios(yaml_text(found.load.scenario).encode(), PLACE)
    # What has ended only makes controllers slower, more and more so in a recording of days.
    scenario = replace(scenario, settings=replace(scenario.settings, removes_finished=True))
    until = float(ceil(found.load.seconds)) or 1.0
    return SimulationInput(cast(served.documents, served.cluster), scenario, None, 0, until, found.work.schedulers)


def outcomes(result: Mapping[str, Any]) -> dict[str, GangOutcome]:
    """Return what became of every gang of a simulation."""
    return {
        gang["name"]: GangOutcome(
            gang["wait"], gang["started"] is not None, gang["finished"] is not None, gang["evicted"],
            None if gang["finished"] is None else gang["finished"] - gang["submitted"],
        )
        for gang in result["gangs"]
    }  # fmt: skip
