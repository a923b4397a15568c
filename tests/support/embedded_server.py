"""An embedded cluster behind real sockets in the event loop of a test, for what talks to an API server.

The test may touch the store directly, between two requests. Requests can be made to fail, and a test waits for what it expects
instead of sleeping.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from time import time
from typing import Any

from phalanx.errors import ClusterError
from phalanx.store.kube.client import Client
from phalanx.store.memory import MemoryStore
from phalanx.web.api import Api
from phalanx.web.server import serving

PATIENCE_SECONDS = 5.0
STEP_SECONDS = 0.002


class Server:
    """An embedded cluster that can be made to fail."""

    def __init__(self, clock: Callable[[], float] = time) -> None:
        """Begin with an empty cluster that works."""
        self.store = MemoryStore(clock)
        self.refusals: deque[ClusterError] = deque()
        """The requests that come next are answered with these, one each."""
        self.requests = 0
        """How many requests have come."""
        self._api = Api(self.store, before=self._look)

    def _look(self) -> None:
        self.requests += 1
        if self.refusals:
            raise self.refusals.popleft()

    def end_watches(self) -> None:
        """End the watches that are under way."""
        self._api.end_watches()

    @asynccontextmanager
    async def opened(self, port: int = 0) -> AsyncIterator[Client]:
        """Serve inside the block, at a free port unless one is named; yields a client."""
        async with serving(self._api.application(), port=port) as address, Client(address, is_frugal=True) as client:
            yield client


async def until(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():
            await asyncio.sleep(STEP_SECONDS)


@asynccontextmanager
async def going_on(*works: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Let endless work go on inside the block; afterwards it is cancelled, and what it raised is raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and (problem := task.exception()) is not None:
            raise problem
