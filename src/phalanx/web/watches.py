"""Watches as streams: events as they happen, bookmarks every minute, and an end after the requested time."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

from phalanx.errors import Gone
from phalanx.model.kinds import Document, Kind
from phalanx.model.watch_event import ADDED, BOOKMARK, DELETED, MODIFIED
from phalanx.store.memory import MemoryStore
from phalanx.store.selection import Selection
from phalanx.store.status_errors import status_of
from phalanx.store.watch_history import Watch

CHANGES = (ADDED, MODIFIED, DELETED)
LONGEST = 3600.0
BETWEEN_BOOKMARKS = 60.0
BEFORE_THE_END = 2.0
"""The last bookmark comes this many seconds before the watch ends."""


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What to watch, from which version, and for how long."""

    kind: Kind
    chosen: Selection
    since: str = "0"
    """The version after which to begin; "0" begins with what is there."""
    seconds: float = LONGEST
    has_bookmarks: bool = False
    shows_first: bool = False
    """Ends the objects that were there at first with a bookmark that says so."""


class Stream:
    """One watch of the store."""

    def __init__(self, store: MemoryStore, request: WatchRequest) -> None:
        """Prepare the watch; it begins with the first event that is read."""
        self._store, self._request = store, request
        self._wakeup = asyncio.Event()
        self._is_over = False

    def end(self) -> None:
        """End the stream soon."""
        self._is_over = True
        self._wakeup.set()

    async def events(self) -> AsyncIterator[Document]:
        """Yield events from the requested version on, as they are sent."""
        since = self._request.since
        if since == "0":
            page = self._store.page(self._request.kind, self._request.chosen)
            since = page.version
            for item in page.items:
                yield {"type": ADDED, "object": item}
            if self._request.shows_first:
                yield self._bookmark({"annotations": {"k8s.io/initial-events-end": "true"}})
        try:
            watch = self._store.watch(self._request.kind, self._request.chosen, since=since)
        except Gone as problem:
            yield {"type": "ERROR", "object": status_of(problem)}
            return
        async for event in self._followed(watch):
            yield event

    async def _followed(self, watch: Watch) -> AsyncIterator[Document]:
        clock = asyncio.get_running_loop().time
        end = clock() + self._request.seconds
        mark = self._next_mark(clock(), end)
        watch.wake = self._wakeup.set
        try:
            while not self._is_over and clock() < end:
                self._wakeup.clear()
                for event in watch.take():
                    yield {"type": event.type, "object": event.object}
                if clock() >= mark:
                    mark = self._next_mark(clock(), end)
                    yield self._bookmark()
                await self._rest(min(mark, end) - clock())
        finally:
            self._store.history.leave(watch)

    def _next_mark(self, now: float, end: float) -> float:
        last = end - BEFORE_THE_END
        return min(now + BETWEEN_BOOKMARKS, last) if self._request.has_bookmarks and now < last else math.inf

    async def _rest(self, seconds: float) -> None:
        """Wait until there is something to send, but not longer than that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wakeup.wait()

    def _bookmark(self, more: Document | None = None) -> Document:
        kind, version = self._request.kind, str(self._store.history.version)
        mark = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"resourceVersion": version, **(more or {})}}
        return {"type": BOOKMARK, "object": mark}
