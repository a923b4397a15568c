"""The application: the files of the page, and what it asks for, below one path of whatever server it is part of."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from phalanx import __version__
from phalanx.errors import ClusterError, ConfigError, Missing, PhalanxError
from phalanx.model.bounds import NESTING, is_too_deep
from phalanx.ui.moments import RecordedMoments
from phalanx.ui.questions.desk import Question
from phalanx.ui.scope import Scope
from phalanx.ui.serving.access import Access, Open
from phalanx.ui.serving.documents import JSON
from phalanx.ui.serving.feed import Feed
from phalanx.ui.serving.files import answer_file
from phalanx.ui.serving.guard import guarding
from phalanx.ui.showing import Showing
from phalanx.ui.simulations import Simulations
from phalanx.ui.views import Json

PATH = "/ui"
MOST_BYTES = 64 * 1024
Answer = Callable[["Reader"], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class PageSetup:
    """What is shown, and to whom."""

    title: str
    showing: Showing | None = None
    """The cluster as it is; None where only a recording or simulations are shown."""
    moments: RecordedMoments | None = None
    simulations: Simulations | None = None
    extra: Mapping[str, Callable[..., Question]] = field(default_factory=dict)
    """Questions that are answered by what lies above this package: ``eta``, ``worlds``."""
    access: Access = field(default_factory=Open)
    names: Collection[str] = ()
    """What this server is called, besides its addresses."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One request: what it is about, and what whoever asks may see."""

    request: web.Request
    page: PageSetup
    scope: Scope
    about: Showing | None = None
    """The cluster that it is about."""

    @property
    def showing(self) -> Showing:
        """The cluster that it is about, where it has to be about one."""
        if self.about is None:
            raise Missing("there is no cluster here")
        return self.about

    def asked(self, name: str) -> str:
        """Return a parameter that has to be there."""
        found = self.request.query.get(name, "")
        if not found:
            raise ConfigError(f"{name}: missing; write ?{name}=...")
        return found

    def number(self, name: str, default: int) -> int:
        """Return a parameter that is a whole number."""
        text = self.request.query.get(name, str(default))
        if not text.isdecimal() or len(text) > 9:
            raise ConfigError(f"{name}: {text!r} is not a whole number")
        return int(text)

    async def body(self) -> Json:
        """Return the body of the request, a JSON object."""
        try:
            found: Any = msgspec.json.decode(await self.request.read())
        except (msgspec.DecodeError, RecursionError) as problem:
            raise ConfigError(f"the body is not JSON: {problem}") from problem
        if not isinstance(found, dict) or is_too_deep(found):
            raise ConfigError(f"the body is no JSON object; it is one with {NESTING.text}")
        return found


class Page:
    """Serves one page."""

    def __init__(self, setup: PageSetup, answers: Mapping[str, Answer], others: Mapping[str, Answer]) -> None:
        """`answers` are what can be asked about a cluster, by method and path: ``GET overview``; `others` are about none."""
        self._setup, self._answers, self._others, self._feed = setup, answers, others, Feed()

    def application(self) -> web.Application:
        """Return what is mounted under ``/ui``."""
        application = web.Application(middlewares=[guarding(self._setup.names)], client_max_size=MOST_BYTES)
        application.router.add_get("/api/events", self._events)
        application.router.add_get("/api/about", self._about)
        for name, answer in self._answers.items():
            method, _, path = name.partition(" ")
            application.router.add_route(method, f"/api/{path}", self._handler(answer))
        for name, answer in self._others.items():
            method, _, path = name.partition(" ")
            application.router.add_route(method, f"/api/{path}", self._other(answer))
        application.router.add_route("*", "/api/{path:.*}", self._unknown)
        application.router.add_get("/{path:.*}", _file)
        application.router.add_route("*", "/{path:.*}", self._unknown)
        application.on_shutdown.append(self._end)
        return application

    async def _end(self, _: web.Application) -> None:
        self._feed.end()
        if self._setup.showing is not None:
            self._setup.showing.close()
        if self._setup.moments is not None:
            self._setup.moments.close()

    # --- requests ----------------------------------------------------------------------------------------------------

    def _handler(self, answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                showing = await self._showing(request)
                async with showing.board.reading():
                    scope = await self._scope(request, showing)
                    return await answer(Reader(request, self._setup, scope, showing))
            except PhalanxError as problem:
                return failed(problem)

        return handle

    def _other(self, answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                scope = await self._setup.access.scope(request.headers.get("Authorization", ""), None)
                return await answer(Reader(request, self._setup, scope))
            except PhalanxError as problem:
                return failed(problem)

        return handle

    async def _events(self, request: web.Request) -> web.StreamResponse:
        try:
            showing = await self._showing(request)
            async with showing.board.reading():
                await self._scope(request, showing)
                return await self._feed.serve(request, showing.board)
        except PhalanxError as problem:
            return failed(problem)

    async def _showing(self, request: web.Request) -> Showing:
        """Return the cluster that a request is about: as it was at a moment, or as it is."""
        at, setup = request.query.get("at"), self._setup
        if at is None and setup.showing is not None:
            return setup.showing
        if setup.moments is None:
            raise Missing("at: there is no recording here" if at is not None else "there is no cluster here")
        return await setup.moments.at(at or "")

    async def _scope(self, request: web.Request, showing: Showing) -> Scope:
        access = self._setup.access
        seen = await showing.board.current() if access.needs_token else None
        return await access.scope(request.headers.get("Authorization", ""), seen)

    async def _about(self, request: web.Request) -> web.StreamResponse:
        """Say what is shown here; that is no secret, and whoever has no token yet has to know that one is needed."""
        setup = self._setup
        return web.json_response({
            "title": "" if setup.access.needs_token else setup.title, "version": __version__,
            "needsToken": setup.access.needs_token,
            "hasCluster": setup.showing is not None, "hasRecording": setup.moments is not None,
            "hasSimulations": setup.simulations is not None, "questions": sorted(setup.extra),
        })  # fmt: skip

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        return failed(Missing(f"there is no {request.method} {request.path}"))


async def _file(request: web.Request) -> web.Response:
    return answer_file(request)


def failed(problem: PhalanxError) -> web.Response:
    """Return what is answered where something cannot be done."""
    code = problem.code if isinstance(problem, ClusterError) else 400
    headers = {"WWW-Authenticate": "Bearer"} if code == 401 else {}
    return web.json_response({"error": str(problem)}, status=code, headers=headers)


def plain(data: object) -> web.Response:
    """Return data that is asked for once."""
    return web.Response(body=msgspec.json.encode(data), content_type=JSON, headers={"Cache-Control": "no-store"})
