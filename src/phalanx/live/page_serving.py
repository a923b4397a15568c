"""The page at an address of its own: with the certificate that is in its files meanwhile, and its names."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from phalanx.live.serving_certificate import ServingCertificate
from phalanx.web.server import serving


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Where a page is served."""

    host: str
    port: int
    certificate: ServingCertificate | None = None


@asynccontextmanager
async def page_served(application: web.Application, address: PageAddress, report: Callable[[str], None]) -> AsyncIterator[str]:
    """Serve inside the block; yields the URL of the server."""
    certificate, follower = address.certificate, None
    if certificate is not None:
        certificate.on_reload.append(lambda is_applied, message: report(message))
        follower = asyncio.create_task(certificate.follow())
    tls = None if certificate is None else certificate.context
    try:
        async with serving(application, host=address.host, port=address.port, tls=tls) as place:
            yield place
    finally:
        if follower is not None:
            follower.cancel()
