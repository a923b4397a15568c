"""A cluster as it was read at one moment: what all views are made from.

Where sessions are held for it, as on files, a gang has the status that a session gives it. Where a scheduler runs, a gang has the
status that it has, and waits for the reason that the last session that looked at it gave.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from phalanx.explain.gang_rows import GangRow, all_rows
from phalanx.explain.gang_status import GangStatus
from phalanx.explain.gangs import GangBook
from phalanx.explain.missing_groups import missing_groups
from phalanx.explain.queue_figures import Figures
from phalanx.explain.reason_code import reason_code
from phalanx.model.resources import CPU, GPU
from phalanx.model.task import GangKey
from phalanx.session.decision import Decisions
from phalanx.session.reservation import ReservedStart
from phalanx.session.shard_decisions import ShardDecisions, as_one
from phalanx.state.snapshot import Snapshot
from phalanx.ui.gang_facts import GangFacts, KnownFacts


@dataclass(frozen=True, slots=True)
class SeenGang:
    """One gang: how it stands, and why it waits."""

    key: str
    queue: str
    status: GangStatus
    minimum: int
    placed: int
    running: int
    why: str
    code: str
    facts: GangFacts

    @property
    def waits(self) -> bool:
        """Tell whether it has not started."""
        return not self.status.has_minimum and self.status is not GangStatus.EMPTY


@dataclass(frozen=True)
class SeenCluster:
    """Everything that views read."""

    version: str
    """Another one when something has changed."""
    snapshot: Snapshot
    gangs: Mapping[str, SeenGang]
    figures: Figures = field(default_factory=dict)
    """What plugins said of queues in the last session."""
    reservations: Mapping[str, ReservedStart] = field(default_factory=dict)
    problems: Sequence[str] = ()
    """What is wrong with objects, and what could not be read."""
    took: float = 0.0
    """Seconds of the processor."""

    @property
    def now(self) -> float:
        """The time of the cluster, in seconds since 1970."""
        return self.snapshot.now

    @cached_property
    def resource(self) -> str:
        """The resource that is counted: GPUs where there are any."""
        return counted_resource(self.snapshot)


def counted_resource(snapshot: Snapshot) -> str:
    """Return the resource by which people measure a cluster."""
    row = snapshot.space.row_by_name.get(GPU)
    return GPU if row is not None and np.any(snapshot.nodes.allocatable[row]) else CPU


@dataclass(frozen=True, slots=True)
class DrySession:
    """A session that nobody carries out, and what its rows need besides."""

    snapshot: Snapshot
    parts: Sequence[ShardDecisions]
    gated: Sequence[GangRow] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    """Groups that cannot be read, each with what is wrong."""
    problems: Sequence[str] = ()


def seen_by_session(version: str, session: DrySession, known: KnownFacts) -> SeenCluster:
    """Return a cluster with what a session would make of its gangs."""
    snapshot, facts = session.snapshot, known.of(session.snapshot, counted_resource(session.snapshot))
    codes = {
        outcome.state.key: reason_code(outcome, part.snapshot) for part in session.parts for outcome in part.decisions.outcomes
    }
    rows = all_rows(session.parts, session.gated, session.refused)
    gangs = {row.gang: _of_row(row, codes.get(row.gang, ""), facts.get(GangKey(row.gang), GangFacts())) for row in rows}
    decisions = as_one(snapshot, session.parts)[1]
    return SeenCluster(version, snapshot, gangs, decisions.queues, _reserved(decisions), session.problems)


@dataclass(slots=True)
class Heard:
    """What a running scheduler has said in its sessions."""

    book: GangBook
    figures: Figures = field(default_factory=dict)
    reservations: Mapping[str, ReservedStart] = field(default_factory=dict)

    def note(self, decisions: Decisions) -> None:
        """Remember a session; a quiet one counts no queues, and what the last one counted stands."""
        self.figures, self.reservations = decisions.queues or self.figures, _reserved(decisions)


def seen_by_scheduler(
    version: str, snapshot: Snapshot, heard: Heard, known: KnownFacts, problems: Sequence[str] = ()
) -> SeenCluster:  # fmt: skip
    """Return a cluster as it is, with the reasons that a running scheduler has given."""
    facts = known.of(snapshot, counted_resource(snapshot))
    gangs = {str(key): _booked(key, facts[key], snapshot, heard.book) for key in snapshot.gangs}
    gangs |= {str(key): _as_it_is(key, facts[key], text, "") for key, text in missing_groups(snapshot).items()}
    return SeenCluster(version, snapshot, gangs, heard.figures, heard.reservations, problems)


def _booked(key: GangKey, facts: GangFacts, snapshot: Snapshot, book: GangBook) -> SeenGang:
    return _as_it_is(key, facts, book.reason(key, snapshot), book.code(key)) if facts.waits else _as_it_is(key, facts, "", "")


def _as_it_is(key: GangKey, facts: GangFacts, why: str, code: str) -> SeenGang:
    return SeenGang(key, facts.queue, facts.status, facts.minimum, facts.placed, facts.running, why, code, facts)


def _of_row(row: GangRow, code: str, facts: GangFacts) -> SeenGang:
    return SeenGang(row.gang, row.queue, row.status, row.minimum, row.placed, row.running, row.why, code, facts)


def _reserved(decisions: Decisions) -> dict[str, ReservedStart]:
    return {str(each.gang): each for each in decisions.reservations}
