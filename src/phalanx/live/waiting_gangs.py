"""Which gangs wait for what, counted over all of them: a session has only those it looked at."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from phalanx.explain.reason_code import reason_code
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.session.decision import Outcome
from phalanx.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class _Entry:
    queue: str
    cause: str
    """Why it lacks its minimum; empty when only more than that waits."""
    pods: int


@dataclass(slots=True)
class WaitingRoom:
    """Remembers what sessions said, and keeps the counts right."""

    gangs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Gangs without their minimum, by queue and cause."""
    pods: int = 0
    """Members of all gangs that have no place."""
    _entries: dict[GangKey, _Entry] = field(default_factory=dict)

    def note(self, snapshot: Snapshot, outcomes: Iterable[Outcome]) -> None:
        """Take over what a session found, and forget gangs that are gone."""
        for key in [key for key in self._entries if key not in snapshot.gangs]:
            self._leave(key)
        for outcome in outcomes:
            self._note_gang(outcome, snapshot)

    def _note_gang(self, outcome: Outcome, snapshot: Snapshot) -> None:
        gang = outcome.state
        key, waiting = GangKey(gang.key), gang.tally.counts[Status.PENDING] + gang.tally.pipelined
        self._leave(key)
        entry = _Entry(gang.gang.queue, reason_code(outcome, snapshot), waiting)
        if entry.cause or entry.pods:
            self._entries[key] = entry
            self._count(entry, 1)

    def _leave(self, key: GangKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._count(entry, -1)

    def _count(self, entry: _Entry, sign: int) -> None:
        self.pods += sign * entry.pods
        place = entry.queue, entry.cause
        if entry.cause:
            self.gangs[place] += sign
            if not self.gangs[place]:
                del self.gangs[place]
