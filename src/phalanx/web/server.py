"""Opening and closing a port for an application."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from phalanx.errors import ConfigError

LOCALHOST = "127.0.0.1"
SHUTDOWN_SECONDS = 1.0
"""How long clients may go on reading when the port closes."""


@asynccontextmanager
async def serving(
    application: web.Application, *, host: str = LOCALHOST, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve an application inside the block; yields its URL. Port 0 is any free one; with `tls` nothing is said in the clear."""
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS, access_log=None)
    await runner.setup()
    try:
        await _open(web.TCPSite(runner, host, port, ssl_context=tls), host, port)
        yield f"{'http' if tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _open(site: web.TCPSite, host: str, port: int) -> None:
    try:
        await site.start()
    except OSError as problem:
        reason = (problem.strerror or str(problem)).rpartition(": ")[2]
        raise ConfigError(f"port {port} of {host} cannot be opened: {reason}; port 0 takes any free one") from problem
