"""The last sessions of a cluster, each with what it was held on, so that one can go through it step by step."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phalanx.explain.events import eviction_text
from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.explain.reason_text import counted
from phalanx.model.listing import listed
from phalanx.session.cycle import Profile
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.state.snapshot import Snapshot
from phalanx.ui.source import KeptSession, SessionInput

MOST_KEPT = 20
MOST_NAMED = 3
TOLD = (GangStatus.STARTS, GangStatus.GROWS, GangStatus.PIPELINED, GangStatus.EVICTED)


@dataclass(frozen=True, slots=True)
class _Held:
    """A session with what it decided; nothing of it is counted before somebody asks, because sessions may be many."""

    number: int
    snapshot: Snapshot
    parts: Sequence[ShardDecisions]
    profile: Profile
    placed: int
    pipelined: int
    evicted: int

    @property
    def is_quiet(self) -> bool:
        return not (self.placed or self.pipelined or self.evicted)

    def row(self) -> KeptSession:
        return KeptSession(self.number, self.snapshot.now, self.placed, self.pipelined, self.evicted, tuple(self._sample()))

    def _sample(self) -> Iterator[str]:
        """Say what it decided, the first of it."""
        by_status: dict[GangStatus, list[str]] = {}
        for part in self.parts:
            for outcome in part.decisions.outcomes:
                by_status.setdefault(gang_status(outcome.state), []).append(outcome.state.key)
        for status in (status for status in TOLD if status in by_status):
            names = by_status[status]
            yield f"{counted(len(names), 'gang')} {status.value.lower()}: {listed(names, MOST_NAMED)}"
        evictions = (item for part in self.parts for item in part.decisions.evictions.items())
        for key, eviction in list(evictions)[:1]:
            yield f"pod {key} is evicted: {eviction_text(eviction)}"


class KeptSessions:
    """Sessions in memory: snapshots share what did not change, so that a few of them cost little more than one."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: deque[_Held] = deque(maxlen=MOST_KEPT)
        self._count = 0

    def keep(self, snapshot: Snapshot, parts: Sequence[ShardDecisions], profile: Profile) -> None:
        """Keep a session; a quiet one takes the place of a quiet one before it, so that they do not push others out."""
        self._count += 1
        decided = [part.decisions for part in parts]
        placed, pipelined, evicted = (
            sum(map(len, each)) for each in zip(*((one.binds, one.pipelined, one.evictions) for one in decided), strict=True)
        )
        held = _Held(self._count, snapshot, parts, profile, placed, pipelined, evicted)
        if self._found and held.is_quiet and self._found[-1].is_quiet:
            self._found.pop()
        self._found.append(held)

    def forget(self) -> None:
        """Keep none of them any more."""
        self._found.clear()

    def kept(self) -> list[KeptSession]:
        """Return them, the latest first."""
        return [held.row() for held in reversed(self._found)]

    def take(self, key: str) -> SessionInput | None:
        """Return what one was held on; None if it is not kept any more."""
        held = next((held for held in self._found if str(held.number) == key), None)
        return None if held is None else SessionInput(held.snapshot, held.profile, f"session {held.number}")
