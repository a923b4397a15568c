"""What an explanation is read from: the outcome of a session for one gang, the snapshot, and the trace of the gang."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from phalanx.model.task import GangKey
from phalanx.session.decision import Decisions, Outcome
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.session.trace import TraceEvent
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

Event = TypeVar("Event", bound=TraceEvent)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whoever makes the pods of a gang."""

    kind: str
    name: str
    """With its namespace."""
    wanted: int | None = None
    """How many pods it makes at the same time; None where it does not say."""
    is_suspended: bool = False
    is_known: bool = True
    """It is among the objects at hand."""

    @property
    def title(self) -> str:
        """The owner as people call it: ``Job ml/train``."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Reading:
    """One gang after a session whose trace has every step about it (level 5). Nothing is decided again."""

    outcome: Outcome
    snapshot: Snapshot
    decisions: Decisions
    policy: Policy
    owner: Owner | None = None
    """Who makes its pods; None where nobody says so."""
    contested: Mapping[str, str] = field(default_factory=dict)
    """Pods that are in no gang because they name several, each with what is wrong."""

    @property
    def gang(self) -> GangState:
        """The gang as the session left it."""
        return self.outcome.state

    def events(self, kind: type[Event]) -> Iterator[Event]:
        """Return the steps of a kind that concern the gang."""
        for step in self.decisions.trace:
            if isinstance(step, kind) and self.gang.key in step.gangs:
                yield step


def reading_of(parts: list[ShardDecisions], key: str, policy: Policy) -> Reading | None:
    """Return the reading of a gang; None where there is no such gang."""
    for part in parts:
        for outcome in part.decisions.outcomes:
            if outcome.state.key == key:
                return Reading(outcome, part.snapshot, part.decisions, policy)
    known = next((part for part in parts if key in part.snapshot.gangs), None)
    return None if known is None else Reading(_as_it_is(known, GangKey(key)), known.snapshot, known.decisions, policy)


def _as_it_is(part: ShardDecisions, key: GangKey) -> Outcome:
    """Return the outcome of a gang that is complete, so that the session had no need to look at it."""
    numbers, snapshot = part.snapshot.nodes.number_by_name, part.snapshot
    members = ((task, numbers.get(task.node, -1)) for task in snapshot.members_of(key).values())
    return Outcome(GangState(snapshot.gangs[key], members), part.decisions.is_guarded, snapshot.now)
