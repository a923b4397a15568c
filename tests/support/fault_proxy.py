"""A proxy between a scheduler and a real API server that fails where a test tells it to, and passes on everything else.

    with Proxy(connection_to(str(plane.kubeconfig))) as proxy:
        Replica(plane.folder, "a", ["--kubeconfig", str(proxy.write_kubeconfig(folder / "proxied"))])
        proxy.fail(503, r"^/apis/scheduling.volcano.sh/", times=1)

It listens without TLS and asks as whoever the connection names. A thread serves it, so a test may do what it likes meanwhile.
"""

import asyncio
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import aiohttp
import yaml
from aiohttp import web

from phalanx.web.server import serving
from tests.support.http_api import PATIENCE_SECONDS, Connection

RESET = 0
"""Instead of a code: the connection is cut, and nothing is answered."""
KEPT = ("Content-Type", "Accept")
RETURNED = ("Content-Type", "Date", "Retry-After")


class Seen(NamedTuple):
    """A request that came, and when by the monotonic clock."""

    moment: float
    method: str
    path: str


@dataclass(slots=True)
class Fault:
    """What goes wrong with some requests, until it is lifted or has happened often enough."""

    pattern: re.Pattern[str]
    method: str
    code: int
    left: float
    delay: float = 0.0
    """Requests are passed on after so many seconds instead."""
    hits: int = 0

    def lift(self) -> None:
        """Let it happen no more."""
        self.left = 0

    def strikes(self, request: web.Request) -> bool:
        """Tell whether it happens to a request, and count that."""
        is_hit = self.left > 0 and self.method in ("", request.method) and self.pattern.search(request.path) is not None
        self.left, self.hits = (self.left - 1, self.hits + 1) if is_hit else (self.left, self.hits)
        return is_hit


class Proxy:
    """Use it in ``with``."""

    def __init__(self, behind: Connection) -> None:
        """Stand before an API server."""
        self._behind, self._loop = behind, asyncio.new_event_loop()
        self._is_open, self._is_over = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()), daemon=True)
        self._faults: list[Fault] = []
        self._watches: dict[str, list[asyncio.Event]] = {}
        """The watches that are open, by path; an event that is set says that nothing is passed on any more."""
        self.address = ""
        self.seen: list[Seen] = []
        """The requests that came, in their order."""

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        assert self._is_open.wait(PATIENCE_SECONDS), "the proxy did not start"
        return self

    def __exit__(self, *problem: object) -> None:
        """End, and cut what is open."""
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads here, and return its path."""
        context = {"name": "proxied", "context": {"cluster": "proxied"}}
        cluster = {"name": "proxied", "cluster": {"server": self.address}}
        document = {"kind": "Config", "current-context": "proxied", "contexts": [context], "clusters": [cluster], "users": []}
        path.write_text(yaml.safe_dump(document))
        return path

    # --- what goes wrong ---------------------------------------------------------------------------------------------

    def fail(self, code: int, pattern: str, *, method: str = "", times: float = float("inf")) -> Fault:
        """Answer requests to paths of a pattern with a code, so many times, instead of passing them on."""
        return self._add(Fault(re.compile(pattern), method, code, times))

    def delay(self, seconds: float, pattern: str, *, method: str = "") -> Fault:
        """Pass requests to paths of a pattern on a while later."""
        return self._add(Fault(re.compile(pattern), method, RESET, float("inf"), seconds))

    def _add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def silence_watches(self, path: str) -> int:
        """Let the watches of a path that are open now stay open and tell nothing any more; return how many there are."""
        silenced = list(self._watches.get(path, ()))
        for watch in silenced:
            self._loop.call_soon_threadsafe(watch.set)
        return len(silenced)

    def count(self, pattern: str, *, method: str = "", since: float = 0.0) -> int:
        """Return how many requests to paths of a pattern have come since a moment."""
        found = [item for item in list(self.seen) if item.moment >= since and method in ("", item.method)]
        return sum(re.search(pattern, item.path) is not None for item in found)

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{path:.*}", self._answer)
        endless = aiohttp.ClientTimeout(total=None)
        self._session = aiohttp.ClientSession(timeout=endless, connector=aiohttp.TCPConnector(limit=0))
        async with self._session, serving(application) as self.address:
            self._is_open.set()
            await self._is_over.wait()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(Seen(time.monotonic(), request.method, request.path))
        fault = next((fault for fault in self._faults if fault.strikes(request)), None)
        if fault is not None and fault.delay:
            await asyncio.sleep(fault.delay)
        elif fault is not None:
            return self._refuse(request, fault.code)
        return await self._pass_on(request)

    def _refuse(self, request: web.Request, code: int) -> web.Response:
        if code == RESET and request.transport is not None:
            request.transport.close()
        return web.Response(status=code or 500, text="the proxy was told to fail")

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in KEPT if name in request.headers} | {"Accept-Encoding": "identity"}
        tls = True if self._behind.tls is None else self._behind.tls
        asked = self._session.request(
            request.method, f"{self._behind.server}{request.path_qs}", data=await request.read() or None,
            headers={**headers, **self._behind.headers}, ssl=tls,
        )  # fmt: skip
        async with asked as found:
            kept = {name: found.headers[name] for name in RETURNED if name in found.headers}
            if "watch" not in request.query:
                return web.Response(status=found.status, body=await found.read(), headers=kept)
            answer = web.StreamResponse(status=found.status, headers=kept)
            await answer.prepare(request)
            return await self._tell_on(request.path, found, answer)

    async def _tell_on(self, path: str, found: aiohttp.ClientResponse, answer: web.StreamResponse) -> web.StreamResponse:
        """Pass on what a watch tells, unless it is to be silent."""
        is_silent = asyncio.Event()
        self._watches.setdefault(path, []).append(is_silent)
        try:
            async for chunk in found.content.iter_any():
                if not is_silent.is_set():
                    await answer.write(chunk)
        finally:
            self._watches[path].remove(is_silent)
        return answer
