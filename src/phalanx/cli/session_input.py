"""What a command holds its session on: the cluster that was read, with groups as controllers would make them, a policy, a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import click

from phalanx.cli.cluster_input import RecordedSource, read_cluster
from phalanx.cli.grouping import grouped
from phalanx.cli.policy_options import SessionOptions
from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.field_values import seconds
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document
from phalanx.session.policy import Policy
from phalanx.state.snapshot import Snapshot
from phalanx.store.input_files import Intake


@dataclass(frozen=True, slots=True)
class SessionInput:
    """A cluster that was read, ready to be decided about."""

    intake: Intake
    policy: Policy
    names: tuple[str, ...]
    now: float
    documents: list[Document]
    """Everything in it, as the API server would store it."""
    notes: Sequence[str] = ()
    """Why some of its pods have no group."""

    @property
    def cluster(self) -> ObjectCluster:
        """The cluster that the objects make."""
        return self.intake.cluster

    def snapshot(self) -> Snapshot:
        """Return the cluster as a session sees it."""
        return self.cluster.snapshot(self.now)


def read_input(asked: SessionOptions, paths: Sequence[str], policy: Policy, *, is_frugal: bool = True) -> SessionInput:
    """Read what was named; see `read_cluster`."""
    at = None if asked.now is None else _typed_time(asked.now)
    source = asked.reach if asked.log is None else RecordedSource(asked.log, asked.at)
    intake = read_cluster(paths, source, cluster_for(policy, asked.names), is_frugal=is_frugal)
    return input_of(intake, policy, asked.names, intake.now if at is None else at)


def cluster_for(policy: Policy, names: Sequence[str]) -> ObjectCluster:
    """Return an empty cluster of which schedulers with these names take pods."""
    return ObjectCluster(attach=policy.attach_rules, schedulers=our_schedulers(names))


def input_of(intake: Intake, policy: Policy, names: tuple[str, ...], now: float) -> SessionInput:
    """Group the pods of what was read that name no group."""
    return SessionInput(intake, policy, names, now, *grouped(intake, names, now))


def _typed_time(text: str) -> float:
    try:
        return seconds(text, where="--now")
    except SnapshotError as problem:
        raise click.UsageError(str(problem)) from problem
