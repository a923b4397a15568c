"""How a simulated cluster behaves: delays, durations, and what becomes of pods that were lost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from phalanx.model.duration import range_in
from phalanx.model.task import GangKey
from phalanx.sim.node_pools import AutoscalerSettings
from phalanx.sim.spans import Span as Span

FOREVER = float("inf")


def span_in(text: str) -> Span | None:
    """Return a duration as a range of one value, or a range such as 30m..2h; None when it is neither."""
    found = range_in(text)
    return None if found is None else Span(*found)


AT_ONCE, ONE_SECOND, NEVER_ENDS = Span(0.0, 0.0), Span(1.0, 1.0), Span(FOREVER, FOREVER)


@dataclass(frozen=True, slots=True)
class Delays:
    """How long things take."""

    bind: Span = AT_ONCE
    pull: Span = AT_ONCE
    start: Span = ONE_SECOND
    stop: Span = ONE_SECOND
    """From an eviction to the moment the pod is gone; never longer than its grace period."""


@dataclass(frozen=True, slots=True)
class Duration:
    """How long the gangs of some names run."""

    match: str
    seconds: Span


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """How long the gangs of some names work from one checkpoint to the next."""

    match: str
    every: float


@dataclass(frozen=True, slots=True)
class Settings:
    """What a scenario may set."""

    delays: Delays = field(default_factory=Delays)
    period: float = 1.0
    """Between two sessions, at least."""
    heartbeat: float = 60.0
    """Between two sessions, at most, while gangs wait: some decisions depend on time alone."""
    settling: float = 1.0
    """From changes that leave room as it was, such as a pod that starts, to the session that writes them down."""
    parks_up_to: float = 0.0
    """A gang that found no room is tried again when there is room for it, and at the latest after so many seconds; 0: always."""
    restart_after: float | None = 1.0
    """After which a pod that was evicted, failed or lost its node comes back and waits; None: never."""
    keeps_progress: bool = False
    """A gang that was interrupted goes on where it was; otherwise at its last checkpoint, or anew if it has none."""
    removes_finished: bool = False
    """Finished gangs are removed at once, as their controllers would do after a while."""
    durations: tuple[Duration, ...] = ()
    duration_by_gang: Mapping[GangKey, float] = field(default_factory=dict)
    """How long these gangs run, whatever they or `durations` say."""
    done_by_gang: Mapping[GangKey, float] = field(default_factory=dict)
    """For how long gangs that run at the start have worked already."""
    checkpoints: tuple[Checkpoints, ...] = ()
    says_why: bool = True
    """Groups say why they wait. Nobody reads it while weeks pass; why gangs wait at the end is found out then."""
    has_binder: bool = False
    """Sessions ask for binds by BindRequests, and the binder carries them out; otherwise pods are bound at once."""
    autoscaler: AutoscalerSettings | None = None
    """Adds nodes for pods that wait, and removes those that nobody uses; None: nodes are as the scenario says."""

    def span_of(self, gang: str) -> Span:
        """Return how long a gang runs that does not say so itself."""
        return next((duration.seconds for duration in self.durations if fnmatchcase(gang, duration.match)), NEVER_ENDS)

    def checkpoint_every(self, gang: str) -> float:
        """Return how long a gang that does not say so itself works from one checkpoint to the next; 0 if it saves nothing."""
        return next((item.every for item in self.checkpoints if fnmatchcase(gang, item.match)), 0.0)
