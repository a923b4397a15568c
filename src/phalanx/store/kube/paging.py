"""The pages of a list, requested ahead of whoever reads them: the server makes the next ones while we decode."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from phalanx.errors import ClusterError
from phalanx.store.kube.fields_read import read_continuation

USUAL = 1
AT_START = 16
"""Pages that may wait to be read; at the start of a process more, as it has other things to do first."""
Get = Callable[[Mapping[str, str]], Awaitable[bytes]]


class PagesAhead:
    """Requests pages from now on; all of them show the version of the first."""

    def __init__(self, get: Get, query: Mapping[str, str], *, ahead: int = USUAL) -> None:
        """`get` requests a page by its query; so many at most wait to be read."""
        self._get, self._query = get, dict(query)
        self.begun = asyncio.get_running_loop().time()
        """When the first page was requested."""
        self._found: asyncio.Queue[bytes | ClusterError | None] = asyncio.Queue(ahead)
        self._task = asyncio.get_running_loop().create_task(self._request())

    async def _request(self) -> None:
        problem: ClusterError | None = None
        try:
            while True:
                body = await self._get(self._query)
                self._query["continue"] = read_continuation(body)
                await self._found.put(body)
                if not self._query["continue"]:
                    break
        except ClusterError as refusal:
            problem = refusal
        await self._found.put(problem)

    async def bodies(self) -> AsyncGenerator[bytes, None]:
        """Yield the pages, each as it came; a refusal is raised when its turn has come."""
        try:
            while (found := await self._found.get()) is not None:
                if isinstance(found, ClusterError):
                    raise found
                yield found
        finally:
            self.close()

    def close(self) -> None:
        """Request no more."""
        self._task.cancel()
