"""Looks at a cluster that others schedule: who is half-started, who is in a deadlock, who waits although there is room.

A look is a dry session on the cluster as it is: nothing of it is carried out. The same looks are taken at a live cluster and at a
recording of one, so both say the same. Between two looks everything is taken to be as at the first of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from phalanx.controllers.controller import View
from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.model.task import GangKey
from phalanx.recording.deadlocks import DeadlockSearch
from phalanx.recording.half_starts import GRACE_SECONDS, HalfStart, HalfStarts
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.sessions import HeldSession, Scope, Sessions
from phalanx.session.cycle import Profile


@dataclass(slots=True)
class RoomSpan:
    """A gang that waited although a dry session had room for it, in seconds since 1970."""

    gang: GangKey
    since: float
    seen: float

    @property
    def seconds(self) -> float:
        """How long it was so."""
        return self.seen - self.since

    @property
    def is_lasting(self) -> bool:
        """Tell whether that is no matter of a moment, which every scheduler needs."""
        return self.seconds >= GRACE_SECONDS


@dataclass(slots=True)
class Deadlock:
    """Half-started gangs that kept each other from starting, in seconds since 1970."""

    gangs: dict[GangKey, None]
    since: float
    """When the last of the gangs that were in it first had begun to hold nodes."""
    seen: float
    is_over: bool = False


class ClusterWatch:
    """Takes looks at one cluster, and keeps what it saw."""

    def __init__(self, profile: Profile, *, keeps: bool = True) -> None:
        """Decide by a profile; one that does not keep what is over can look for ever."""
        self._profile, self._keeps = profile, keeps
        self._search = DeadlockSearch(profile.policy)
        self._sessions: tuple[SchedulerCache, Sessions] | None = None
        self.half_starts = HalfStarts()
        self.past_half_starts: list[HalfStart] = []
        self.room: dict[GangKey, RoomSpan] = {}
        self.past_room: list[RoomSpan] = []
        self.deadlocks: list[Deadlock] = []
        self.looks = 0

    def look(self, cache: SchedulerCache, view: View, now: float) -> HeldSession:
        """Hold a dry session and note what it shows."""
        session = self._sessions_on(cache, view).hold(self._profile, now, asks_all=True)
        over = [half for half in self.half_starts.look(session.whole) if half.seconds >= GRACE_SECONDS]
        self._note_room(session, now)
        self._note_deadlock(cache, now)
        self.looks += 1
        if self._keeps:
            self.past_half_starts += over
        return session

    @property
    def deadlock(self) -> Deadlock | None:
        """The one that is there now."""
        return self.deadlocks[-1] if self.deadlocks and not self.deadlocks[-1].is_over else None

    def all_half_starts(self) -> list[HalfStart]:
        """Return all that were no matter of a moment, over or not, in the order in which they began."""
        now = [half for half in self.half_starts.current.values() if half.seconds >= GRACE_SECONDS]
        return sorted([*self.past_half_starts, *now], key=lambda half: (half.since, half.gang))

    def all_room(self) -> list[RoomSpan]:
        """Return the gangs that had room for longer than a moment, over or not, in the order of time."""
        spans = [span for span in (*self.past_room, *self.room.values()) if span.is_lasting]
        return sorted(spans, key=lambda span: (span.since, span.gang))

    def _sessions_on(self, cache: SchedulerCache, view: View) -> Sessions:
        if self._sessions is None or self._sessions[0] is not cache:
            self._sessions = cache, Sessions(cache, view, Scope())
        return self._sessions[1]

    # --- room --------------------------------------------------------------------------------------------------------

    def _note_room(self, session: HeldSession, now: float) -> None:
        starting = {
            GangKey(outcome.state.key)
            for part in session.parts
            for outcome in part.decisions.outcomes
            if gang_status(outcome.state) is GangStatus.STARTS
        }
        for key, span in list(self.room.items()):
            span.seen = now
            if key not in starting:
                self._end_room(self.room.pop(key))
        for key in sorted(starting - self.room.keys()):
            self.room[key] = RoomSpan(key, now, now)

    def _end_room(self, span: RoomSpan) -> None:
        if self._keeps:
            self.past_room.append(span)

    # --- deadlocks ---------------------------------------------------------------------------------------------------

    def _note_deadlock(self, cache: SchedulerCache, now: float) -> None:
        halves = {half.gang: half for half in self.half_starts.lasting(now)}
        stuck = self._search.stuck(cache, list(halves), now)
        known = self.deadlock
        if known is not None:
            known.seen = now
            known.is_over = not known.gangs.keys() & set(stuck)
        if stuck and self.deadlock is None:
            self._begin_deadlock(stuck, max(halves[gang].since for gang in stuck), now)
        elif known is not None and not known.is_over:
            known.gangs |= dict.fromkeys(stuck)

    def _begin_deadlock(self, gangs: Iterable[GangKey], since: float, now: float) -> None:
        if not self._keeps:
            self.deadlocks.clear()
        self.deadlocks.append(Deadlock(dict.fromkeys(gangs), since, now))
