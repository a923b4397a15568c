"""What `phalanx eta` does: reads the cluster and the history, simulates on with one seed after the other, and shows the starts."""

import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from phalanx.cli.eta import RECENT, EtaOptions
from phalanx.cli.eta_output import Answer, write
from phalanx.cli.eta_simulations import EtaCluster, EtaSettings, SimulationPlan, eta_cluster, simulated
from phalanx.cli.gang_choice import chosen_gang, owners_by_gang
from phalanx.cli.intake_notes import write_absences, write_notes
from phalanx.cli.progress import clear_progress, show_progress
from phalanx.cli.session_input import SessionInput, read_input
from phalanx.errors import ConfigError, SnapshotError
from phalanx.explain.gang_rows import GangRow
from phalanx.sim.eta import EtaQuestion, estimates
from phalanx.sim.gang_history import FinishedGang, read_history, write_history
from phalanx.sim.overdue import moment_of_input
from phalanx.sim.settings import span_in
from phalanx.store.input_files import read_bytes


def answer(asked: EtaOptions) -> bool:
    """Answer and write; return whether everybody starts who was asked about."""
    end = time.monotonic() + asked.timeout
    given = read_input(asked, asked.files, asked.policy, is_frugal=False)  # when pods ended is history
    cluster = eta_cluster(given, _known(asked))
    notes = write_notes(given, cluster.snapshot, given.intake.missing(cluster.snapshot))
    if asked.written:
        _write_history(asked.written, cluster.durations.history)
    key = None if asked.gang is None else chosen_gang(asked.gang, asked.reach.namespace, owners_by_gang(given, cluster.snapshot))
    notes += write_absences(given, cluster.snapshot, but=key)
    row = None if key is None else _row(key, given, cluster)
    question = cluster.input.question
    if row is not None:
        question = replace(question, gangs=tuple(key for key in question.gangs if key == row.gang))
    progress = Progress()
    found = simulated(replace(cluster.input, question=question), SimulationPlan.of(asked.seeds), end, progress.show)
    progress.finish()
    answered = Answer(
        question, cluster.rows, estimates(question, found.runs, found.hopeful), found.runs, asked.seeds, row,
        cluster.arrivals if asked.arrivals == RECENT else None, None if asked.now else _moment_of_files(asked, given, question),
    )  # fmt: skip
    write(answered, asked.form, notes)
    return answered.is_good


def _moment_of_files(asked: EtaOptions, given: SessionInput, question: EtaQuestion) -> float | None:
    """Return the moment at which files were written, if gangs are overdue only because that was long ago."""
    return moment_of_input(question, given.documents) if asked.files else None


def _row(key: str, given: SessionInput, cluster: EtaCluster) -> GangRow:
    """Return the gang that is meant."""
    if key in given.intake.refused_groups:
        raise SnapshotError(given.intake.refused_groups[key])
    return next(row for row in cluster.rows if row.gang == key)


def _known(asked: EtaOptions) -> EtaSettings:
    history = tuple(gang for path in asked.histories for gang in read_history(read_bytes(path), path))
    assumed = None if asked.assume is None else span_in(asked.assume)
    if asked.assume is not None and assumed is None:
        raise click.UsageError(f"--assume: {asked.assume!r} is not a duration; write for example 4h or 30m..6h")
    return EtaSettings(asked.horizon, history, assumed, has_arrivals=asked.arrivals == RECENT)


def _write_history(path: str, gangs: Iterable[FinishedGang]) -> None:
    try:
        Path(path).write_bytes(write_history(gangs))
    except OSError as problem:
        raise ConfigError(f"--write-history: {path}: cannot be written: {problem.strerror}") from problem


class Progress:
    """Shows on a terminal how many simulations have been held."""

    def __init__(self) -> None:
        """Look whether there is a terminal."""
        self._shows = sys.stderr.isatty()

    def show(self, done: int, planned: int) -> None:
        """Write over the last line."""
        if self._shows:
            show_progress(f"{done} of {planned} simulations")

    def finish(self) -> None:
        """Take the line away."""
        if self._shows:
            clear_progress()
