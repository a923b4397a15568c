"""A cluster for many readers: looked at once for all of them, no more often than it can afford, and not at all for nobody.

A look is taken when something has changed and a while has passed since the last one. In a scheduler the pause grows with what looks
and documents take of the processor, so that they stay a small part of it; a program that only shows a cluster takes looks sooner.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from secrets import token_hex

from phalanx.errors import PhalanxError
from phalanx.ui.seen import SeenCluster
from phalanx.ui.source import ClusterSource

Report = Callable[[str], None]
CLOSED = "this is not followed any more, as others have looked at much else; ask again"


@dataclass(frozen=True, slots=True)
class LookPace:
    """How often a cluster is looked at; in seconds."""

    least: float = 1.0
    """Between two looks, at least."""
    factor: float = 2.0
    """After a look and the documents made of it, the pause is so many times as long as they took."""
    most: float = 30.0
    linger: float = 30.0
    """So long the cluster is followed after the last reader has gone: pages are loaded again."""
    failing: float = 5.0
    """After a look that failed."""


class Board:
    """The latest look at a cluster."""

    def __init__(self, source: ClusterSource, pace: LookPace, report: Report) -> None:
        """Begin without a look; `report` is called with what goes wrong."""
        self.source, self._pace, self._report = source, pace, report
        self.seen: SeenCluster | None = None
        self.failure = ""
        """Why the last look failed."""
        self.spent = 0.0
        """Seconds of the processor that documents have taken since the last look; whoever makes them adds theirs."""
        self.readers = 0
        self._news = asyncio.Event()
        self._changed = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._closing: asyncio.TimerHandle | None = None
        self._mark, self._numbers = token_hex(4), count(1)

    @property
    def is_followed(self) -> bool:
        """Tell whether somebody looks, or did a moment ago."""
        return self._follower is not None

    @asynccontextmanager
    async def reading(self) -> AsyncIterator["Board"]:
        """Follow the cluster inside the block, and a little longer."""
        self.readers += 1
        self._begin()
        try:
            yield self
        finally:
            self.readers -= 1
            if not self.readers:
                self._closing = asyncio.get_running_loop().call_later(self._pace.linger, self._end)

    async def current(self) -> SeenCluster:
        """Return the latest look; the first reader waits for it."""
        while self.seen is None:
            if self.failure:
                raise PhalanxError(self.failure)
            await self._next()
        return self.seen

    async def after(self, version: str) -> SeenCluster:
        """Return a look that is not the one of a version, when there is one."""
        while self.seen is None or self.seen.version == version:
            await self._next()
        return self.seen

    async def _next(self) -> None:
        await self._news.wait()

    def close(self) -> None:
        """Follow no more; whoever still waits for a look is told, and may ask again."""
        if self._closing is not None:
            self._closing.cancel()
        self._end()
        self.failure = CLOSED
        self._tell()

    def _begin(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        if self._follower is None:
            self.failure = ""
            self.source.follow(self._changed.set)
            self._follower = asyncio.get_running_loop().create_task(self._follow())

    def _end(self) -> None:
        self._closing = None
        if self._follower is not None:
            self._follower.cancel()
            self._follower = None
            self.source.leave()
            self.seen = None  # by the time that somebody comes back it is of the past

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            self.spent = 0.0
            try:
                self.seen, self.failure = await self.source.look(f"{self._mark}-{next(self._numbers)}"), ""
            except PhalanxError as problem:
                await self._fail(str(problem))
            except Exception as problem:  # the next look may go well, and the page stays
                await self._fail(f"a look failed, please report it: {type(problem).__name__}: {problem}")
            else:
                self._tell()
                await self._rest(self.seen.took)

    async def _fail(self, text: str) -> None:
        self.failure = text
        self._report(text)
        self._changed.set()
        self._tell()
        await asyncio.sleep(self._pace.failing)

    def _tell(self) -> None:
        """Wake those who wait for news."""
        self._news.set()
        self._news = asyncio.Event()

    async def _rest(self, took: float) -> None:
        """Wait until the next look is allowed; documents that are made meanwhile make it later."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while (left := begun + self._pause(took + self.spent) - loop.time()) > 0:
            await asyncio.sleep(min(left, self._pace.least))

    def _pause(self, took: float) -> float:
        return min(max(self._pace.least, self._pace.factor * took), self._pace.most)
