"""Opening and closing a port for an application."""

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from phalanx.errors import ConfigError

LOCALHOST = "127.0.0.1"
SHUTDOWN_SECONDS = 1.0
"""How long clients may go on reading when the port closes."""
LOGGER, TRACED = logging.getLogger("phalanx.web.connections"), logging.INFO - 5
"""What goes wrong with connections; at the second level, with tracebacks."""


class Plain(logging.Filter):
    """Tells failures of connections without tracebacks, and nothing of those who send what is no HTTP: they have an answer."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take the traceback out of a record, and tell whether it is to be written."""
        problem = record.exc_info[1] if record.exc_info else None
        if problem is None or LOGGER.isEnabledFor(TRACED):
            return True
        if not isinstance(problem, HttpProcessingError):
            record.msg = f"{record.getMessage()}, please report it: {type(problem).__name__}: {problem}"
            record.args = record.exc_info = None
        return record.exc_info is None


LOGGER.addFilter(Plain())


@asynccontextmanager
async def serving(
    application: web.Application, *, host: str = LOCALHOST, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve an application inside the block; yields its URL. Port 0 is any free one; with `tls` nothing is said in the clear."""
    runner = web.AppRunner(
        application, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS, access_log=None, logger=LOGGER
    )
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
