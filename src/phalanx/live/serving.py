"""Where a process answers about itself: an address, a certificate that may change, and who may ask."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from logging import Logger
from typing import TYPE_CHECKING

from phalanx.live.logs import Line, log_line

if TYPE_CHECKING:  # what serves takes a while to import, and is needed where something is served
    from aiohttp.web import Application

    from phalanx.live.access_review import AccessReview
    from phalanx.live.health import Health
    from phalanx.live.serving_certificate import ServingCertificate


@dataclass(frozen=True, slots=True)
class Address:
    """Where health and metrics are served."""

    host: str
    port: int
    certificate: "ServingCertificate | None" = None
    """None: without TLS."""
    access: "AccessReview | None" = None
    """Who may see more than probes; None: everybody."""
    prepare: "Callable[[Application], None]" = lambda application: None
    """Adds what else is served, such as the page."""


@asynccontextmanager
async def served(health: "Health", address: Address, log: Logger) -> AsyncIterator[None]:
    """Serve inside the block, with the certificate that is in its files meanwhile."""
    from phalanx.web.server import serving

    certificate, guards = address.certificate, [] if address.access is None else [address.access.middleware]
    application, tls = health.application(*guards, prepare=address.prepare), None if certificate is None else certificate.context
    follower = None
    if certificate is not None:
        certificate.on_reload.append(lambda is_applied, message: log.log(20 if is_applied else 30, "%s", message))
        follower = asyncio.create_task(certificate.follow())
    try:
        async with serving(application, host=address.host, port=address.port, tls=tls) as place:
            log_line(log, Line(0, f"health and metrics at {place}"))
            yield
    finally:
        if follower is not None:
            follower.cancel()
