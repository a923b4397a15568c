"""The last sessions of a cluster, each with what it was held on, so that one can go through it step by step."""

from collections import deque
from collections.abc import Iterator, Sequence

from phalanx.explain.events import eviction_text
from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.explain.reason_text import counted
from phalanx.model.listing import listed
from phalanx.session.cycle import Profile
from phalanx.session.decision import Decisions
from phalanx.session.shard_decisions import ShardDecisions, as_one
from phalanx.state.snapshot import Snapshot
from phalanx.ui.source import KeptSession, SessionInput

MOST_KEPT = 20
MOST_NAMED = 3


class KeptSessions:
    """Sessions in memory: snapshots share what did not change, so that a few of them cost little more than one."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: deque[tuple[KeptSession, SessionInput]] = deque(maxlen=MOST_KEPT)
        self._count = 0

    def keep(self, snapshot: Snapshot, parts: Sequence[ShardDecisions], profile: Profile) -> None:
        """Keep a session; one that decided what the last one did takes its place, so that quiet ones do not push others out."""
        decisions = as_one(snapshot, parts)[1]
        if self._found and not _changes_anything(decisions) and self._found[-1][0].placed == self._found[-1][0].evicted == 0:
            self._found.pop()
        self._count += 1
        kept = summary(self._count, snapshot.now, decisions)
        self._found.append((kept, SessionInput(snapshot, profile, f"session {self._count}")))

    def kept(self) -> list[KeptSession]:
        """Return them, the latest first."""
        return [kept for kept, _ in reversed(self._found)]

    def take(self, key: str) -> SessionInput | None:
        """Return what one was held on; None if it is not kept any more."""
        return next((given for kept, given in self._found if kept.key == key), None)


def _changes_anything(decisions: Decisions) -> bool:
    return bool(decisions.binds or decisions.evictions or decisions.pipelined)


def summary(number: int, now: float, decisions: Decisions) -> KeptSession:
    """Return a session as a row of a list."""
    waiting = sum(gang_status(outcome.state) in (GangStatus.WAITS, GangStatus.PIPELINED) for outcome in decisions.outcomes)
    return KeptSession(
        number, now, len(decisions.binds), len(decisions.pipelined), len(decisions.evictions), waiting, tuple(_sample(decisions))
    )


def _sample(decisions: Decisions) -> Iterator[str]:
    """Say what it decided, the first of it."""
    states = [outcome.state for outcome in decisions.outcomes]
    by_status: dict[GangStatus, list[str]] = {}
    for state in states:
        by_status.setdefault(gang_status(state), []).append(state.key)
    for status in (GangStatus.STARTS, GangStatus.GROWS, GangStatus.PIPELINED, GangStatus.EVICTED):
        names = by_status.get(status, [])
        if names:
            yield f"{counted(len(names), 'gang')} {status.value.lower()}: {listed(names, MOST_NAMED)}"
    for key, eviction in list(decisions.evictions.items())[:1]:
        yield f"pod {key} is evicted: {eviction_text(eviction)}"
