"""Small API servers behind a door for tests: they say who asked, over TLS or not, and let in whom a test lets in."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from phalanx.web.server import LOCALHOST


@dataclass(slots=True)
class Door:
    """Answers /version with the name of who asked; whom `lets_in` does not know gets a 401."""

    lets_in: Callable[[str], bool] = lambda header: True
    seen: list[str] = field(default_factory=list)
    """The Authorization headers of all requests; of one without, the name in its certificate."""

    async def answer(self, request: web.Request) -> web.Response:
        """Note who asks, and let them in or not."""
        who = request.headers.get("Authorization") or _certified(request)
        self.seen.append(who)
        if not self.lets_in(who):
            return web.json_response(
                {"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized", "code": 401}, status=401
            )
        return web.json_response({"who": who})


@asynccontextmanager
async def opened(door: Door, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve a door inside the block; yields its port."""
    application = web.Application()
    application.router.add_get("/version", door.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOCALHOST, 0, ssl_context=tls).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _certified(request: web.Request) -> str:
    certificate = request.get_extra_info("peercert") or {}
    names = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return f"certificate of {names['commonName']}" if "commonName" in names else ""
