"""The application: the files of the page, and what it asks for, below one path of whatever server it is part of.

What is behind it is loaded by the first request that needs it: a scheduler that could show the page starts as fast as one that
could not.
"""

from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from phalanx import __version__
from phalanx.errors import ClusterError, Missing, NotAllowed, PhalanxError, SnapshotError
from phalanx.ui.serving.feed import Feed
from phalanx.ui.serving.files import answer_file
from phalanx.ui.serving.guard import guarding
from phalanx.ui.serving.reader import Reader, Served

if TYPE_CHECKING:  # as in reader.py
    from phalanx.ui.scope import Scope
    from phalanx.ui.showing import Showing

JSON = "application/json"


class Page:
    """Serves one page."""

    def __init__(self, load: Callable[[], Served], names: Collection[str] = ()) -> None:
        """`load` is called when somebody asks first; `names` are what this server is called, besides its addresses."""
        self._load, self._names, self._feed = load, names, Feed()

    @cached_property
    def _served(self) -> Served:
        return self._load()

    def application(self) -> web.Application:
        """Return what is mounted under ``/ui``."""
        application = web.Application(middlewares=[guarding(self._names)])
        application.router.add_route("*", "/api/{path:.*}", self._answered)
        application.router.add_get("/{path:.*}", _file)
        application.router.add_route("*", "/{path:.*}", _not_allowed)
        application.on_shutdown.append(self._end)
        return application

    async def _end(self, _: web.Application) -> None:
        self._feed.end()
        if "_served" not in self.__dict__:
            return
        for showing in self._served.showings():
            showing.close()
        if self._served.setup.moments is not None:
            self._served.setup.moments.close()

    # --- requests ----------------------------------------------------------------------------------------------------

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request, request.match_info["path"])
        except PhalanxError as problem:
            return failed(problem)

    async def _answer(self, request: web.Request, path: str) -> web.StreamResponse:
        if path == "about" and request.method == "GET":
            return self._about()
        asked, served = f"{request.method} {path}", self._served
        if asked in served.others:
            return await served.others[asked](Reader(request, served.setup, await self._scope_of_others(request)))
        if asked != "GET events" and asked not in served.answers:
            raise Missing(f"there is no {request.method} {request.path}")
        showing = await self._showing(request)
        async with showing.board.reading():
            scope = await self._scope(request, showing)
            if asked == "GET events":
                return await self._feed.serve(request, showing.board)
            return await served.answers[asked](Reader(request, served.setup, scope, showing))

    async def _showing(self, request: web.Request) -> "Showing":
        """Return the cluster that a request is about: as it was at a moment, or as it is."""
        at, setup = request.query.get("at"), self._served.setup
        if at is None and setup.showing is not None:
            return setup.showing
        if setup.moments is None:
            raise Missing("at: there is no recording here" if at is not None else "there is no cluster here")
        return await setup.moments.at(at or "")

    async def _scope_of_others(self, request: web.Request) -> "Scope":
        """Return what somebody may see of what is about no cluster; he is known by the one that is shown beside it."""
        access, showing = self._served.setup.access, self._served.setup.showing
        if showing is None or not access.needs_token:
            return await access.scope(request.headers.get("Authorization", ""), None)
        async with showing.board.reading():
            return await self._scope(request, showing)

    async def _scope(self, request: web.Request, showing: "Showing") -> "Scope":
        access = self._served.setup.access
        seen = await showing.board.current() if access.needs_token else None
        return await access.scope(request.headers.get("Authorization", ""), seen)

    def _about(self) -> web.Response:
        """Say what is shown here; that is no secret, and whoever has no token yet has to know that one is needed."""
        setup = self._served.setup
        return web.json_response({
            "title": "" if setup.access.needs_token else setup.title, "version": __version__,
            "needsToken": setup.access.needs_token,
            "kind": "" if setup.showing is None else setup.showing.source.kind,
            "hasCluster": setup.showing is not None, "hasRecording": setup.moments is not None,
            "hasSimulations": setup.simulations is not None, "questions": sorted(setup.extra),
        })  # fmt: skip


async def _file(request: web.Request) -> web.Response:
    return answer_file(request)


async def _not_allowed(request: web.Request) -> web.Response:
    return failed(NotAllowed(f"{request.method} is not allowed here"))


def failed(problem: PhalanxError) -> web.Response:
    """Return what is answered where something cannot be done."""
    code = problem.code if isinstance(problem, ClusterError) else 404 if isinstance(problem, SnapshotError) else 400
    headers = {"WWW-Authenticate": "Bearer"} if code == 401 else {}
    return web.json_response({"error": str(problem)}, status=code, headers=headers)


def plain(data: object) -> web.Response:
    """Return data that is asked for once."""
    return web.Response(body=msgspec.json.encode(data), content_type=JSON, headers={"Cache-Control": "no-store"})
