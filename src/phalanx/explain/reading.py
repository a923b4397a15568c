"""What an explanation is read from: the outcome of a session for one gang, the snapshot, and the trace of the gang."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from phalanx.session.decision import Decisions, Outcome
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.session.trace import TraceEvent
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

Event = TypeVar("Event", bound=TraceEvent)


@dataclass(frozen=True, slots=True)
class Reading:
    """One gang after a session whose trace has every step about it (level 5). Nothing is decided again."""

    outcome: Outcome
    snapshot: Snapshot
    decisions: Decisions
    policy: Policy

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
    """Return the reading of a gang; None where no scheduler has looked at it."""
    for part in parts:
        for outcome in part.decisions.outcomes:
            if outcome.state.key == key:
                return Reading(outcome, part.snapshot, part.decisions, policy)
    return None
