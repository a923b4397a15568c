"""The traces of a simulation's sessions: written to stderr as they happen, or kept for an answer as data."""

from typing import Any

import click

from phalanx.cli.output import complain, write_trace
from phalanx.cli.simulate import SimulateOptions
from phalanx.cli.trace_options import LEVELS
from phalanx.explain.answer import trace
from phalanx.model.task import GangKey
from phalanx.session.decision import Decisions, Fault
from phalanx.sim.metrics import short_time
from phalanx.sim.world import World
from phalanx.state.snapshot import Snapshot


class SimulationTrace:
    """Follows the sessions of one simulation; nothing is recorded without -v."""

    def __init__(self, asked: SimulateOptions, name: str, world: World) -> None:
        """Begin to follow a world, whose scheduler is called by the name of its profile."""
        self._asked, self._name, self._world = asked, name, world
        self._steps: list[dict[str, Any]] = []
        self._faults: dict[GangKey, Fault] = {}
        if asked.verbosity:
            world.loop.trace_level, world.loop.traced_gangs = int(asked.verbosity), asked.gangs
            world.loop.decided.append(self._note)
        if asked.verbosity == LEVELS[-1]:
            world.loop.decided.append(self._note_faults)

    def _note(self, snapshot: Snapshot, decisions: Decisions) -> None:
        gangs = set(self._asked.gangs)
        if not decisions.trace or (gangs and not any(gangs & set(step.gangs) for step in decisions.trace)):
            return
        seconds, number = self._world.now - self._world.start, self._world.loop.count
        if self._asked.form == "table":
            complain(f"session {number} of {self._name} at {short_time(seconds)}")
            write_trace(decisions)
        else:
            self._steps += [{"session": number, "seconds": seconds, **step} for step in trace(decisions)]

    def _note_faults(self, snapshot: Snapshot, decisions: Decisions) -> None:
        """Show where sessions fail on gangs, each once for as long as they do."""
        for key, fault in decisions.faults.items():
            if self._faults.get(key) != fault:
                click.echo(f"gang {key}: {fault.traceback}", err=True, nl=False)
        self._faults = decisions.faults

    def in_answer(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result with the steps of all sessions in it, if they were asked for."""
        is_wanted = self._asked.verbosity and self._asked.form != "table"
        return {**result, "trace": self._steps} if is_wanted else result
