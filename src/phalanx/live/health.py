"""What a running scheduler answers about itself over HTTP: whether it is well, its metrics, its configuration.

The paths and words are those of Kubernetes' own components, so probes and people find what they know. What is asked is handed
in: a check is a function that returns why not, or None when all is well. What may be secret in the configuration is not shown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from phalanx.model.redaction import redacted

Check = Callable[[], str | None]
"""Returns what is wrong, or None."""


@dataclass(frozen=True, slots=True)
class Health:
    """Everything that can be asked."""

    metrics: Callable[[], bytes]
    metrics_type: str
    config: Callable[[], object]
    """The configuration in force, as plain data."""
    live: Mapping[str, Check] = field(default_factory=dict)
    """What must hold, or the process is to be started anew; by name."""
    ready: Mapping[str, Check] = field(default_factory=dict)
    """What must hold before the process counts as one that could decide."""

    def application(
        self, *guards: Middleware, prepare: Callable[[web.Application], None] = lambda application: None
    ) -> web.Application:
        """Return the HTTP application; guards see every request first, and `prepare` may add paths of its own."""
        application = web.Application(middlewares=guards)
        prepare(application)
        application.router.add_get("/livez", self._livez)
        application.router.add_get("/healthz", self._livez)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/configz", self._configz)
        return application

    async def _livez(self, request: web.Request) -> web.Response:
        return _answer(request, self.live)

    async def _readyz(self, request: web.Request) -> web.Response:
        return _answer(request, self.ready)

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self.metrics(), headers={"Content-Type": self.metrics_type})

    async def _configz(self, request: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode({"phalanx": redacted(self.config())}), content_type="application/json")


def _answer(request: web.Request, checks: Mapping[str, Check]) -> web.Response:
    """Say ok, or which check failed; each check has a line if somebody asks for that, or if one failed."""
    reasons = {name: check() for name, check in {"ping": _always, **checks}.items()}
    is_well = not any(reasons.values())
    if is_well and "verbose" not in request.query:
        return web.Response(text="ok")
    lines = [f"[+]{name} ok" if reason is None else f"[-]{name} failed: {reason}" for name, reason in reasons.items()]
    lines.append(f"{request.path.strip('/')} check {'passed' if is_well else 'failed'}")
    return web.Response(text="\n".join(lines) + "\n", status=200 if is_well else 500)


def _always() -> None:
    """Hold whenever anybody can ask."""
