"""A running scheduler as the page sees it: its own cache, and the reasons that its sessions give.

Nothing is done while nobody looks. While somebody does, looks are taken at what the scheduler knows anyway, so rarely that they
take about one hundredth of a processor; whatever needs a session of its own is asked of another process.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from time import thread_time

from phalanx.errors import SnapshotError
from phalanx.live.app import Live
from phalanx.model.kinds import EVENT, Document
from phalanx.scheduling.cache import Urgency
from phalanx.scheduling.sessions import HeldSession
from phalanx.session.cycle import Profile
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot
from phalanx.store.api_client import ApiClient
from phalanx.ui.board import LookPace
from phalanx.ui.gang_facts import KnownFacts
from phalanx.ui.hearing import Hearing
from phalanx.ui.kept_sessions import KeptSessions
from phalanx.ui.object_events import about
from phalanx.ui.seen import Heard, SeenCluster, seen_by_scheduler
from phalanx.ui.source import Listener, SessionInput

PACE = LookPace(least=1.0, factor=100.0, most=60.0)
LARGE_NODES = 1_000
NOT_LEADING = "this replica does not lead: why gangs wait is known to the one that does"


class SchedulerSource:
    """Looks at the cache of a scheduler."""

    title, kind = "scheduler", "cluster"

    def __init__(self, live: Live, client: ApiClient, schedulers: tuple[str, ...]) -> None:
        """Hear nothing before somebody looks; `client` lists events."""
        self._live, self._client, self.schedulers = live, client, schedulers
        self._heard, self._known, self._hearing = Heard(live.session_events.book), KnownFacts(), Hearing(live.mirror)
        self.sessions = SmallSessions()

    @property
    def profile(self) -> Profile:
        """Who schedules."""
        return self._live.loop.profile

    @property
    def now(self) -> float:
        """The time of the API server."""
        return self._live.clock.now

    @property
    def problem(self) -> str:
        """Why what is seen is not all that could be."""
        return "" if self._live.is_leader else NOT_LEADING

    def follow(self, changed: Callable[[], None]) -> None:
        """Hear changes and sessions; one is held soon, which says what queues have."""
        self._hearing.begin(changed)
        self._live.loop.decided.append(self._decided)
        self._live.loop.held.append(self._keep)
        self._live.loop.wake(Urgency.LATER)

    def leave(self) -> None:
        """Hear nothing more."""
        self._hearing.end()
        self._live.loop.decided.remove(self._decided)
        self._live.loop.held.remove(self._keep)
        self.sessions.forget()

    def _decided(self, snapshot: Snapshot, decisions: Decisions) -> None:
        self._heard.note(decisions)
        self._hearing.tell()

    def _keep(self, session: HeldSession) -> None:
        self.sessions.keep(session.snapshot, session.parts, self.profile)

    async def look(self, version: str) -> SeenCluster:
        """Return the cluster as the scheduler knows it."""
        begun = thread_time()
        cache = self._live.cache
        problems = [found.problem for found in cache.quarantined.values()]
        seen = seen_by_scheduler(version, cache.snapshot(self.now), self._heard, self._known, problems)
        return replace(seen, took=thread_time() - begun)

    def objects(self) -> Iterable[Document]:
        """Return all objects."""
        return list(self._live.mirror.everything())

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with every change."""
        return self._hearing.also(listener)

    async def events(self, namespace: str, names: Collection[str]) -> list[Document]:
        """Return what the API server has; the account that is installed may not list events."""
        return about((await self._client.list(EVENT, namespace)).items, namespace, names)


class SmallSessions(KeptSessions):
    """Sessions of a scheduler: those of a large cluster are not gone through in the process that schedules it."""

    def take(self, key: str) -> SessionInput | None:
        """Return what a session was held on."""
        found = super().take(key)
        if found is not None and len(found.snapshot.nodes) > LARGE_NODES:
            raise SnapshotError(
                f"the scheduler of {len(found.snapshot.nodes)} nodes has no time for that; record it with --record DIR, "
                "and go through its sessions with 'phalanx ui --log DIR'"
            )
        return found
