"""The embedded cluster as the page sees it: its world as it is, with the reasons that its scheduler has given."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from time import thread_time

from phalanx.explain.gangs import GangBook
from phalanx.model.kinds import EVENT, Document
from phalanx.scheduling.sessions import HeldSession
from phalanx.session.cycle import Profile
from phalanx.session.decision import Decisions
from phalanx.sim.world import World
from phalanx.state.snapshot import Snapshot
from phalanx.ui.gang_facts import KnownFacts
from phalanx.ui.hearing import Hearing
from phalanx.ui.kept_sessions import KeptSessions
from phalanx.ui.object_events import about
from phalanx.ui.seen import Heard, SeenCluster, seen_by_scheduler
from phalanx.ui.source import Listener

TITLE = "embedded cluster"


class WorldSource:
    """Looks at a world that goes on."""

    title, kind = TITLE, "cluster"
    problem = ""

    def __init__(self, world: World, book: GangBook, schedulers: tuple[str, ...] = ()) -> None:
        """Hear sessions from now on; an embedded cluster is small, and its last sessions are kept."""
        self._world, self.schedulers = world, schedulers
        self._heard, self._known, self._hearing = Heard(book), KnownFacts(), Hearing(world.store)
        self.sessions = KeptSessions()
        world.loop.decided.append(self._decided)
        world.loop.held.append(self._keep)

    def _decided(self, snapshot: Snapshot, decisions: Decisions) -> None:
        self._heard.note(decisions)
        self._hearing.tell()

    def _keep(self, session: HeldSession) -> None:
        self.sessions.keep(session.snapshot, session.parts, self.profile)

    @property
    def profile(self) -> Profile:
        """Who schedules."""
        return self._world.loop.profile

    @property
    def now(self) -> float:
        """The time of the world."""
        return self._world.now

    def follow(self, changed: Callable[[], None]) -> None:
        """Hear what changes."""
        self._hearing.begin(changed)

    def leave(self) -> None:
        """Hear nothing more."""
        self._hearing.end()

    async def look(self, version: str) -> SeenCluster:
        """Return the world as it is."""
        begun = thread_time()
        problems = [found.problem for found in self._world.cache.quarantined.values()]
        seen = seen_by_scheduler(version, self._world.cluster.snapshot(self._world.now), self._heard, self._known, problems)
        return replace(seen, took=thread_time() - begun)

    def objects(self) -> Iterable[Document]:
        """Return all objects."""
        return list(self._world.store.everything())

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with every change."""
        return self._hearing.also(listener)

    async def events(self, namespace: str, names: Collection[str]) -> list[Document]:
        """Return the events of the store."""
        return about(self._world.store.items(EVENT), namespace, names)
