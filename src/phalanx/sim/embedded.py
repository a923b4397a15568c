"""The embedded cluster kept running: a world in real time, or faster, behind its HTTP API.

One event loop does everything: it advances the world to the present before a request is answered and whenever something is due,
and sleeps in between. State is written now and then and at the end, if a file was named.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from phalanx.errors import PhalanxError
from phalanx.explain.events import gang_events
from phalanx.explain.gangs import GangBook
from phalanx.model.kinds import Document
from phalanx.session.decision import Decisions
from phalanx.sim.embedded_events import EventWriter
from phalanx.sim.statefile import FORMAT, State, write_state
from phalanx.sim.world import World
from phalanx.state.snapshot import Snapshot
from phalanx.store.kube.client import GANGS
from phalanx.web.api import Api
from phalanx.web.server import serving

BETWEEN_SAVES_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cluster is served and kept."""

    host: str
    port: int
    state: Path | None = None


class Embedded:
    """One world, its book of gangs and its events, driven by the clock."""

    def __init__(self, world: World, *, speed: float = 1.0, complain: Callable[[str], None]) -> None:
        """Begin at the moment of the world; `complain` is told what goes wrong."""
        self.world, self._speed, self._complain = world, speed, complain
        self._book, self._events = GangBook(), EventWriter(world.store)
        self._bell = asyncio.Event()
        self._begun_at, self._begun = world.now, asyncio.get_running_loop().time()
        self._saved = -1
        self._problems = 0
        world.scheduling.decided.append(self._note)
        world.scheduling.evicted.append(self._events.evicted)
        world.controllers.pen.told.append(self._events.tell)

    def _note(self, snapshot: Snapshot, decisions: Decisions) -> None:
        behind_gates = self.world.gates.waits if self.world.gates is not None else {}
        for key, text in self._book.note(snapshot, decisions, behind_gates).items():
            self._events.waits(snapshot.gangs[key], text)
        for item in gang_events(decisions):
            self._events.happened(item)

    def gangs(self) -> Document:
        """Return the gangs as they are."""
        return self._book.documents(self.world.cluster.snapshot(self.world.now))

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

    async def run(self, place: Place, announce: Callable[[str], None], is_over: asyncio.Event) -> None:
        """Serve the cluster until it is over."""
        api = Api(self.world.store, before=self.advance, after=self._bell.set, own={GANGS: self.gangs})
        async with serving(api.application(), host=place.host, port=place.port) as address, asyncio.TaskGroup() as tasks:
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
