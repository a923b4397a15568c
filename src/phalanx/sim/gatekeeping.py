"""Plans for gangs that our gate holds back, made in virtual time: a session after every change, with a gap between them."""

from phalanx.errors import ClusterError
from phalanx.model.task import GangKey
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.scheduling.gates import GatePlanner
from phalanx.session.cycle import Profile
from phalanx.sim.virtual_time import Rank, VirtualTime
from phalanx.store.memory import MemoryStore

BETWEEN_SESSIONS_SECONDS, AFTER_REFUSAL_SECONDS = 1.0, 5.0


class Gatekeeping:
    """Watches a store and writes plans."""

    def __init__(self, store: MemoryStore, time: VirtualTime, profile: Profile) -> None:
        """Begin to listen."""
        self._store, self._time = store, time
        self._planner = GatePlanner(profile.policy, profile.catalogue, store.everything)
        self._is_planned = False
        self._last = -1e18
        store.listen(self._hear)

    @property
    def waits(self) -> dict[GangKey, str]:
        """Why gangs that our gate holds back had no room when a session last looked."""
        return self._planner.waits

    def reasons(self) -> dict[GangKey, str]:
        """Return why gangs that our gate holds back have no room, as a session would find it now."""
        return self._planner.reasons(self._time.now)

    def _hear(self, event: WatchEvent) -> None:
        if self._planner.hear(event.kind, event.object, is_gone=event.type == DELETED):
            self._wake(max(self._time.now, self._last + BETWEEN_SESSIONS_SECONDS))

    def _wake(self, moment: float) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._time.at(moment, Rank.SESSION, self._decide)

    def _decide(self) -> None:
        self._is_planned, self._last = False, self._time.now
        try:
            for write in self._planner.plan(self._time.now):
                self._store.patch(write.kind, write.namespace, write.name, write.patch)
        except ClusterError:
            self._wake(self._time.now + AFTER_REFUSAL_SECONDS)
