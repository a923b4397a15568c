"""What `phalanx eta` does: reads the cluster and the history, simulates on with one seed after the other, and shows the starts."""

import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from phalanx.cli import output
from phalanx.cli.cluster_input import read_cluster
from phalanx.cli.eta import EtaOptions
from phalanx.cli.eta_output import Answer, write
from phalanx.cli.eta_simulations import EtaCluster, EtaSettings, eta_cluster, simulated
from phalanx.cli.gang_choice import chosen_gang, owners_by_gang
from phalanx.config.policies import DEFAULT_PROFILE, policy_of_profile
from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.field_values import seconds
from phalanx.errors import ConfigError, Missing
from phalanx.explain.gang_rows import GangRow
from phalanx.session.policy import Policy
from phalanx.sim.eta import estimates
from phalanx.sim.known_durations import FinishedGang, read_history, write_history
from phalanx.sim.settings import span_in
from phalanx.store.input_files import Intake, policy_of_file, read_bytes


def answer(asked: EtaOptions) -> bool:
    """Answer and write; return whether everybody starts who was asked about."""
    end = time.monotonic() + asked.seconds("--timeout", asked.timeout)
    policy = policy_of_file(asked.config) if asked.config else policy_of_profile(asked.profile or DEFAULT_PROFILE)
    intake = _read(asked, policy)
    cluster = eta_cluster(intake, policy, _known(asked, intake.now))
    if asked.written:
        _write_history(asked.written, cluster.durations.history)
    row = None if asked.gang is None else _row(cluster, asked.gang, asked.reach.namespace)
    question = cluster.input.question
    if row is not None:
        question = replace(question, gangs=tuple(key for key in question.gangs if key == row.gang))
    progress = Progress(asked.seeds)
    found = simulated(replace(cluster.input, question=question), asked.seeds, end, progress.show)
    progress.finish()
    answered = Answer(question, cluster.rows, estimates(question, found.runs, found.hopeful), found.runs, asked.seeds, row)
    write(answered, asked.form)
    return answered.is_good


def _read(asked: EtaOptions, policy: Policy) -> Intake:
    """Read the cluster; ends of pods that finished are history, which no session needs."""
    cluster = ObjectCluster(ignored_provisioners=policy.flags.ignored_provisioners, schedulers=our_schedulers(asked.names))
    intake = read_cluster(asked.files, asked.reach, cluster, is_frugal=False)
    for text in (*intake.notes(), *(text for _, text in intake.refused)):
        output.note(text)
    return intake


def _known(asked: EtaOptions, now: float) -> EtaSettings:
    history = tuple(gang for path in asked.histories for gang in read_history(read_bytes(path), path))
    assumed = None if asked.assume is None else span_in(asked.assume)
    if asked.assume is not None and assumed is None:
        raise click.UsageError(f"--assume: {asked.assume!r} is not a duration; write for example 4h or 30m..6h")
    moment = now if asked.now is None else seconds(asked.now, where="--now")
    return EtaSettings(moment, asked.seconds("--horizon", asked.horizon), history, assumed, asked.names)


def _write_history(path: str, gangs: Iterable[FinishedGang]) -> None:
    try:
        Path(path).write_bytes(write_history(gangs))
    except OSError as problem:
        raise ConfigError(f"--write-history: {path}: cannot be written: {problem.strerror}") from problem


def _row(cluster: EtaCluster, name: str, namespace: str | None) -> GangRow:
    """Return the gang that is meant, as `phalanx explain` finds it."""
    key = chosen_gang(name, namespace, owners_by_gang(cluster.snapshot, cluster.documents))
    found = next((row for row in cluster.rows if row.gang == key), None)
    if found is None:
        raise Missing(f"no scheduler here decides about gang {key}")
    return found


class Progress:
    """Shows on a terminal how many simulations have been held."""

    def __init__(self, seeds: int) -> None:
        """Expect so many."""
        self._seeds, self._shows = seeds, sys.stderr.isatty()

    def show(self, done: int) -> None:
        """Write over the last line."""
        if self._shows:
            click.echo(f"\r{done} of {self._seeds} simulations\033[K", err=True, nl=False)

    def finish(self) -> None:
        """Take the line away."""
        if self._shows:
            click.echo("\r\033[K", err=True, nl=False)
