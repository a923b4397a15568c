"""A proxy between a scheduler and a real API server that fails where a test tells it to, and passes on everything else.

    with Proxy(connection_to(str(plane.kubeconfig))) as proxy:
        Replica(plane.folder, "a", ["--kubeconfig", str(proxy.write_kubeconfig(folder / "proxied"))])
        proxy.fail(503, r"^/apis/scheduling.volcano.sh/", times=1)

Faults may also be drawn by chance: `proxy.draw` is asked about every request. It listens without TLS and asks as whoever the
connection names. A thread serves it, so a test may do what it likes meanwhile.
"""

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Self

import aiohttp
import yaml
from aiohttp import web

from phalanx.web.server import serving
from tests.support.http_api import PATIENCE_SECONDS, Connection

KEPT = ("Content-Type", "Accept")
RETURNED = ("Content-Type", "Date", "Retry-After")
REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
HALF_A_LINE = b'{"type":"MODIFIED","object":{"apiVersion":"v1","metadata":{"na'
AGGREGATED = "apidiscovery.k8s.io"
PIECES = 10
"""In so many a slow answer comes."""
LOST = 502
"""What we answer if the server behind cannot be reached."""


class Harm(Enum):
    """What happens to a request, or to a watch after a while."""

    LATE = "late"
    """It is passed on after some seconds."""
    REFUSED = "refused"
    """It is answered with a code instead of being passed on."""
    REFUSED_AFTER = "refused after the effect"
    """It is passed on, and answered with a code all the same."""
    RESET = "reset"
    RESET_AFTER = "reset after the effect"
    MUTE = "mute"
    """It is not passed on and never answered; the connection stays open."""
    MUTE_AFTER = "mute after the effect"
    SLOW = "slow body"
    """Its answer comes bit by bit, over some seconds."""
    HALF = "half a body"
    """It takes effect, and its answer ends in the middle."""
    CUT = "watch cut"
    TRUNCATED = "watch truncated"
    """It ends in the middle of an event."""
    GONE = "watch gone"
    """It says 410 and ends."""
    REPEATED = "watch repeated"
    """It tells its last events once more and goes on."""
    SILENT = "watch silent"
    """It stays open and tells nothing any more."""


@dataclass(frozen=True, slots=True)
class Blow:
    """One harm, with its numbers."""

    harm: Harm
    code: int = 0
    seconds: float = 0.0
    """For how long a request is held up, or after how long something happens to a watch."""

    @property
    def name(self) -> str:
        """How it is counted."""
        return f"{self.harm.value} {self.code}" if self.code else self.harm.value


Draw = Callable[[web.Request], Blow | None]
"""Says what happens to a request."""


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
    blow: Blow
    left: float
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
        self._is_open, self._is_over, self._is_calm = threading.Event(), asyncio.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()), daemon=True)
        self._faults: list[Fault] = []
        self._watches: dict[str, list[asyncio.Event]] = {}
        """The watches that are open, by path; an event that is set says that nothing is passed on any more."""
        self.draw: Draw = lambda request: None
        self.aggregates = True
        """False: as servers that do not know aggregated discovery."""
        self.stale = frozenset[str]()
        """Groups of which aggregated discovery says that it may be out of date."""
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
        return self._add(Fault(re.compile(pattern), method, Blow(Harm.REFUSED, code), times))

    def delay(self, seconds: float, pattern: str, *, method: str = "") -> Fault:
        """Pass requests to paths of a pattern on a while later."""
        return self._add(Fault(re.compile(pattern), method, Blow(Harm.LATE, seconds=seconds), float("inf")))

    def strike(self, blow: Blow, pattern: str, *, method: str = "", times: float = float("inf")) -> Fault:
        """Let something happen to requests to paths of a pattern, so many times."""
        return self._add(Fault(re.compile(pattern), method, blow, times))

    def _add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def silence_watches(self, path: str) -> int:
        """Let the watches of a path that are open now stay open and tell nothing any more; return how many there are."""
        silenced = list(self._watches.get(path, ()))
        for watch in silenced:
            self._loop.call_soon_threadsafe(watch.set)
        return len(silenced)

    def calm(self) -> None:
        """Let nothing go wrong any more: cut what is mute, and draw nothing."""
        self.draw = lambda request: None
        for fault in self._faults:
            fault.lift()
        self._loop.call_soon_threadsafe(self._is_calm.set)

    def storm(self, draw: Draw) -> None:
        """Let chance decide what happens to requests from now on."""
        self._loop.call_soon_threadsafe(self._is_calm.clear)
        self.draw = draw

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
        blow = self.draw(request) if fault is None else fault.blow
        try:
            return await self._struck(request, blow)
        except aiohttp.ClientError:
            return _refusal(LOST)  # the server behind is away

    async def _struck(self, request: web.Request, blow: Blow | None) -> web.StreamResponse:
        """Let it happen to a request."""
        match None if blow is None else blow.harm:
            case Harm.LATE if blow is not None:
                await asyncio.sleep(blow.seconds)
            case Harm.REFUSED | Harm.REFUSED_AFTER if blow is not None:
                return await self._refuse(request, blow)
            case Harm.RESET | Harm.RESET_AFTER if blow is not None:
                await self._perhaps_pass_on(request, is_passed=blow.harm is Harm.RESET_AFTER)
                return _reset(request)
            case Harm.MUTE | Harm.MUTE_AFTER if blow is not None:
                await self._perhaps_pass_on(request, is_passed=blow.harm is Harm.MUTE_AFTER)
                await self._is_calm.wait()
                return _reset(request)
        return await self._pass_on(request, blow)

    async def _perhaps_pass_on(self, request: web.Request, *, is_passed: bool) -> None:
        if is_passed and "watch" not in request.query:
            await self._pass_on(request)

    async def _refuse(self, request: web.Request, blow: Blow) -> web.Response:
        await self._perhaps_pass_on(request, is_passed=blow.harm is Harm.REFUSED_AFTER)
        return _refusal(blow.code)

    async def _pass_on(self, request: web.Request, blow: Blow | None = None) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in KEPT if name in request.headers} | {"Accept-Encoding": "identity"}
        if not self.aggregates and AGGREGATED in headers.get("Accept", ""):
            headers["Accept"] = "application/json"
        tls = True if self._behind.tls is None else self._behind.tls
        asked = self._session.request(
            request.method, f"{self._behind.server}{request.path_qs}", data=await request.read() or None,
            headers={**headers, **self._behind.headers}, ssl=tls,
        )  # fmt: skip
        async with asked as found:
            kept = {name: found.headers[name] for name in RETURNED if name in found.headers}
            if "watch" not in request.query:
                body = await found.read()
                is_aggregated = AGGREGATED in found.headers.get("Content-Type", "")
                body = self._aged(body) if is_aggregated else body
                if blow is not None and blow.harm in (Harm.SLOW, Harm.HALF):
                    return await _bit_by_bit(request, web.StreamResponse(status=found.status, headers=kept), body, blow)
                return web.Response(status=found.status, body=body, headers=kept)
            answer = web.StreamResponse(status=found.status, headers=kept)
            await answer.prepare(request)
            return await self._tell_on(request, found, answer, blow)

    def _aged(self, body: bytes) -> bytes:
        """Return an aggregated discovery in which some groups are stale."""
        found = json.loads(body)
        for group in found["items"]:
            if group["metadata"].get("name") in self.stale:
                group["versions"] = [{**version, "freshness": "Stale"} for version in group["versions"]]
        return json.dumps(found).encode()

    async def _tell_on(
        self, request: web.Request, found: aiohttp.ClientResponse, answer: web.StreamResponse, blow: Blow | None
    ) -> web.StreamResponse:
        """Pass on what a watch tells, unless it is to be silent, or something happens to it."""
        stream, is_silent = _Lines(found, answer), asyncio.Event()
        self._watches.setdefault(request.path, []).append(is_silent)
        try:
            async with asyncio.timeout(blow.seconds if blow is not None else None):
                await stream.pass_on(is_silent)
        except TimeoutError:
            assert blow is not None
            await self._strike_watch(request, stream, blow)
        except (aiohttp.ClientError, ConnectionError):
            _reset(request)  # the server has gone, and so does the watch
        finally:
            self._watches[request.path].remove(is_silent)
        return answer

    async def _strike_watch(self, request: web.Request, stream: "_Lines", blow: Blow) -> None:
        match blow.harm:
            case Harm.TRUNCATED:
                await stream.answer.write(HALF_A_LINE)
            case Harm.GONE:
                await stream.answer.write(json.dumps({"type": "ERROR", "object": _status(410)}).encode() + b"\n")
                return
            case Harm.REPEATED:
                await stream.answer.write(stream.last)
                await stream.pass_on(asyncio.Event())
                return
            case Harm.SILENT:
                await self._is_calm.wait()
        _reset(request)


class _Lines:
    """Passes on whole lines of a watch, so that a line of ours may follow."""

    def __init__(self, found: aiohttp.ClientResponse, answer: web.StreamResponse) -> None:
        self._found, self.answer = found, answer
        self._rest, self.last = b"", b""

    async def pass_on(self, is_silent: asyncio.Event) -> None:
        """Do so until the server ends it."""
        async for chunk in self._found.content.iter_any():
            whole, end, self._rest = (self._rest + chunk).rpartition(b"\n")
            self.last = whole + end or self.last
            if end and not is_silent.is_set():
                await self.answer.write(whole + end)


async def _bit_by_bit(request: web.Request, answer: web.StreamResponse, body: bytes, blow: Blow) -> web.StreamResponse:
    """Answer slowly, or with the first half alone."""
    answer.content_length, step = len(body), len(body) // PIECES + 1
    await answer.prepare(request)
    for place in range(0, len(body), step):
        if blow.harm is Harm.HALF and place >= len(body) / 2:
            return _reset(request)
        await asyncio.sleep(blow.seconds / PIECES)
        await answer.write(body[place : place + step])
    return answer


def _reset(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _refusal(code: int) -> web.Response:
    retry = {"Retry-After": "1"} if code == 429 else {}
    return web.json_response(_status(code), status=code, headers=retry)


def _status(code: int) -> dict[str, object]:
    reason, message = REASONS.get(code, ""), "the proxy was told to fail"
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
