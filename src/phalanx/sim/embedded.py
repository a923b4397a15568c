"""The embedded cluster kept running: a world in real time, or faster, behind its HTTP API.

One event loop does everything: it advances the world to the present before a request is answered and whenever something is due,
and sleeps in between. State is written now and then and at the end, if a file was named.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from phalanx.controllers.pod_makers import MADE_ELSEWHERE
from phalanx.controllers.unmade_pods import is_without_pods, no_pods_text
from phalanx.errors import PhalanxError
from phalanx.explain.queue_figures import Figures, queue_list
from phalanx.model.kinds import EVENT, Document, object_key
from phalanx.model.listing import listed
from phalanx.model.task import GangKey
from phalanx.model.watch_event import ADDED, WatchEvent
from phalanx.scheduling.events import EventRecorder, SessionEvents
from phalanx.session.decision import Decisions
from phalanx.sim.page_source import WorldSource
from phalanx.sim.statefile import FORMAT, State, write_state
from phalanx.sim.world import World
from phalanx.state.snapshot import Snapshot
from phalanx.store.kube.client import GANGS, QUEUES
from phalanx.store.memory import MemoryStore
from phalanx.ui.serving.mounted import mount
from phalanx.ui.serving.page import Page
from phalanx.web.api import Api
from phalanx.web.server import serving

BETWEEN_SAVES_SECONDS = 30.0
MOST_NAMED = 3
EVENTS_KEPT_SECONDS = 3600.0
"""As long as a real API server keeps them."""


@dataclass(frozen=True, slots=True)
class ServingPlace:
    """Where a cluster is served and kept."""

    host: str
    port: int
    state: Path | None = None


class Embedded:
    """One world, its book of gangs and its events, driven by the clock."""

    def __init__(self, world: World, *, speed: float = 1.0, complain: Callable[[str], None]) -> None:
        """Begin at the moment of the world; `complain` is told what goes wrong."""
        self.world, self._speed, self._complain = world, speed, complain
        self._events = SessionEvents(world.port, world.loop, behind_gates=self._waits_behind_gates)
        self._events.record_binds(world.loop)
        world.on_event(EventRecorder(world.port, instance="phalanx").record)
        self._figures: Figures = {}
        world.loop.decided.append(self._note_figures)
        self._expiry = _EventExpiry(world.store)
        self._bell = asyncio.Event()
        self._begun_at, self._begun = world.now, asyncio.get_running_loop().time()
        self._saved = -1
        self._problems = 0

    def _waits_behind_gates(self) -> Mapping[GangKey, str]:
        return self.world.gates.planner.waits if self.world.gates is not None else {}

    def gangs(self) -> Document:
        """Return the gangs as they are."""
        return self._events.book.documents(self.world.cluster.snapshot(self.world.now))

    def queues(self) -> Document:
        """Return the figures of all queues, with those that the last session counted."""
        return queue_list(self.world.cluster.snapshot(self.world.now), self._figures)

    def _note_figures(self, snapshot: Snapshot, decisions: Decisions) -> None:
        self._figures = decisions.queues or self._figures  # a quiet session counts none, and the last ones stand

    def warnings(self) -> list[str]:
        """Say which owners have no pods, because nobody creates them here."""
        store, found = self.world.store, list[str]()
        for kind in MADE_ELSEWHERE:
            names = [object_key(item) for item in store.items(kind) if is_without_pods(store, kind, item)]
            if names:
                found.append(f"{kind.kind} {listed(names, MOST_NAMED)}: no pods; {no_pods_text(kind)}")
        return found

    # --- time --------------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Let everything happen that is due; a fault in it is told, and the rest goes on."""
        elapsed = asyncio.get_running_loop().time() - self._begun
        try:
            self.world.advance(self._begun_at + elapsed * self._speed)
        except PhalanxError as problem:
            self._complain(str(problem))
        except Exception as problem:  # the cluster stays up, whatever one session or one pod ran into
            self._complain(f"internal error, please report it: {type(problem).__name__}: {problem}")
        self._expiry.remove_old()
        self._tell_problems()

    def _tell_problems(self) -> None:
        for text in self.world.problems[self._problems :]:
            self._complain(text)
        self._problems = len(self.world.problems)

    async def _drive(self) -> None:
        while True:
            self._bell.clear()
            self.advance()
            due = self.world.next_time()
            wait = None if due is None else max((due - self.world.now) / self._speed, 0.0)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._bell.wait()

    # --- service -----------------------------------------------------------------------------------------------------

    def page_source(self, schedulers: tuple[str, ...] = ()) -> WorldSource:
        """Return the cluster as a page shows it."""
        return WorldSource(self.world, self._events.book, schedulers)

    async def run(
        self, place: ServingPlace, announce: Callable[[str], None], is_over: asyncio.Event, page: Page | None = None
    ) -> None:
        """Serve the cluster until it is over, and a page beside it if there is one."""
        own = {GANGS: self.gangs, QUEUES: self.queues}
        api = Api(self.world.store, before=self.advance, after=self._bell.set, own=own, warnings=self.warnings)
        application = api.application(lambda application: None if page is None else mount(application, page))
        async with serving(application, host=place.host, port=place.port) as address, asyncio.TaskGroup() as tasks:
            jobs = [tasks.create_task(self._drive()), tasks.create_task(self._save_often(place.state))]
            announce(address)
            await is_over.wait()
            for job in jobs:
                job.cancel()
        self.save(place.state)

    async def _save_often(self, path: Path | None) -> None:
        while True:
            await asyncio.sleep(BETWEEN_SAVES_SECONDS)
            try:
                self.save(path)
            except PhalanxError as problem:
                self._complain(str(problem))

    def save(self, path: Path | None) -> None:
        """Write the state, if there is a file for it and anything changed."""
        store = self.world.store
        if path is not None and store.history.version != self._saved:
            write_state(
                path,
                State(FORMAT, self.world.now, store.history.version, store.numbers, [dict(item) for item in store.everything()]),
            )
            self._saved = store.history.version


class _EventExpiry:
    """Removes old events, as etcd does by their leases."""

    def __init__(self, store: MemoryStore) -> None:
        """Follow the events of a store; those that are there count from now on."""
        self._store = store
        self._made: deque[tuple[float, str, str]] = deque()
        for item in store.items(EVENT):
            self._note(item)
        store.listen(self._notice)

    def _notice(self, event: WatchEvent) -> None:
        if event.kind is EVENT and event.type == ADDED:
            self._note(event.object)

    def _note(self, document: Document) -> None:
        self._made.append((self._store.now, document["metadata"]["namespace"], document["metadata"]["name"]))

    def remove_old(self) -> None:
        """Remove what has been kept long enough."""
        while self._made and self._made[0][0] < self._store.now - EVENTS_KEPT_SECONDS:
            _, namespace, name = self._made.popleft()
            if self._store.find(EVENT, namespace, name) is not None:
                self._store.delete(EVENT, namespace, name)
