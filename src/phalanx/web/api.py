"""The Kubernetes API of an embedded cluster: a store under the paths that kubectl and other clients know.

Everything is answered in the event loop, one request at a time, so the store needs no locks; watches are streamed beside them.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from email.utils import formatdate
from typing import Any

import msgspec
from aiohttp import web

from phalanx.errors import Busy, ClusterError, Missing, ServerError
from phalanx.model.bounds import BODY_BYTES, WATCHES
from phalanx.model.kinds import Document
from phalanx.store.memory import MemoryStore
from phalanx.store.paths import NOWHERE
from phalanx.store.status_errors import status_of
from phalanx.store.warning_headers import warning_header
from phalanx.web.containers import answer_for_kubelet
from phalanx.web.discovery import GROUP_LIST, documents, with_used_first
from phalanx.web.openapi import PROTOBUF, WHOLE, WHOLE_IN_PROTOBUF, openapi_documents
from phalanx.web.request import ApiRequest, body_of, refuse_strangers
from phalanx.web.reviews import ANSWERS, reviewed
from phalanx.web.scale import scale_of
from phalanx.web.tables import table_of
from phalanx.web.watches import CHANGES, Stream
from phalanx.web.writes import Answer, warnings_about, write

HEALTH = ("/livez", "/readyz", "/healthz")
LOGGER, TRACED = logging.getLogger("phalanx.web"), logging.INFO - 5
"""Tracebacks are logged at -v 5."""
NOT_UNDERSTOOD = (TypeError, AttributeError, LookupError, ValueError, OverflowError, RecursionError)
Hook = Callable[[], None]


def _nothing() -> None:
    """The hook that does nothing."""


class Api:
    """Serves one store."""

    def __init__(
        self,
        store: MemoryStore,
        *,
        before: Hook = _nothing,
        after: Hook = _nothing,
        own: Mapping[str, Callable[[], Document]] | None = None,
        warnings: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Call `before` before every request and `after` after every write; `own` are further documents, by path.

        `warnings` go with these documents.
        """
        self._store, self._before, self._after, self._own, self._warnings = store, before, after, own or {}, warnings
        self._discovery = documents()
        self._streams: set[Stream] = set()

    def application(self, prepare: Callable[[web.Application], None] = lambda application: None) -> web.Application:
        """Return what an aiohttp server runs; `prepare` may add paths of its own, which come before those of the API."""
        application = web.Application(client_max_size=BODY_BYTES.most)
        prepare(application)
        application.router.add_route("*", "/{path:.*}", self.answer)
        application.on_shutdown.append(self._end_streams)
        return application

    async def _end_streams(self, _: web.Application) -> None:
        self.end_watches()

    def end_watches(self) -> None:
        """End the open watches; clients begin new ones."""
        for stream in self._streams:
            stream.end()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; whatever is wrong with it becomes a Status."""
        try:
            refuse_strangers(request)
            self._before()
            return await self._served(request)
        except ClusterError as problem:
            return self._json(status_of(problem), problem.code)
        except NOT_UNDERSTOOD as problem:  # a document of an unexpected shape
            return self._json(status_of(ClusterError(f"the object cannot be understood: {type(problem).__name__}: {problem}")), 400)
        except Exception as problem:  # a request that we fail on is answered too, and the next one as well
            LOGGER.log(TRACED, "%s %s failed", request.method, request.path, exc_info=problem)
            text = f"internal error, please report it: {type(problem).__name__}: {problem}"
            return self._json(status_of(ServerError(text)), ServerError.code)

    async def _served(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path in HEALTH:
            return web.Response(text="ok")
        if path in self._discovery and request.method == "GET":
            found = self._discovery[path]
            return self._json(with_used_first(found, self._store.has_any) if path == GROUP_LIST else found)
        if request.method == "GET" and (schemas := openapi_documents().get(path)) is not None:
            return self._described(path, schemas, request.headers.get("Accept", ""))
        if path in self._own and request.method == "GET":
            return self._json(self._own[path](), warnings=self._warnings())
        if path in ANSWERS and request.method == "POST":
            return self._json(reviewed(path, await body_of(request) or {}), 201)
        asked = ApiRequest(request, await body_of(request))
        if asked.verb == "connect":
            return answer_for_kubelet(self._store, asked.target)
        if request.method == "GET":
            return await self._shown(request, asked)
        answer, code = self._changed(asked)
        return self._json(answer, code, warnings=warnings_about(asked))

    def _described(self, path: str, schemas: bytes, accept: str) -> web.Response:
        if path == WHOLE and "protobuf" in accept and "json" not in accept:
            return web.Response(body=WHOLE_IN_PROTOBUF, content_type=PROTOBUF, headers=self._headers())
        return web.Response(body=schemas, content_type="application/json", headers=self._headers())

    def _json(self, body: Document, code: int = 200, *, warnings: Iterable[str] = ()) -> web.Response:
        content = msgspec.json.encode(body)
        response = web.Response(body=content, status=code, content_type="application/json", headers=self._headers())
        for text in warnings:
            response.headers.add("Warning", warning_header(text))
        return response

    def _headers(self) -> dict[str, str]:
        """Return the header with the time of the cluster, by which clients show ages; it may not be that of the machine."""
        return {"Date": formatdate(self._store.now, usegmt=True)}

    # --- reading -----------------------------------------------------------------------------------------------------

    async def _shown(self, request: web.Request, asked: ApiRequest) -> web.StreamResponse:
        target = asked.target
        if target.name and target.subresource in ("", "status", "scale"):
            found = self._store.get(target.kind, target.namespace, target.name)
            if target.subresource == "scale":
                return self._json(scale_of(found))
            return self._json(self._table(asked, [found], {}) if asked.is_table else found)
        if target.subresource:
            raise Missing(NOWHERE)
        if asked.is_watch:
            return await self._streamed(request, asked)
        return self._json(self._list(asked))

    def _list(self, asked: ApiRequest) -> Document:
        kind = asked.target.kind
        page = self._store.page(kind, asked.chosen, limit=asked.number("limit"), continue_token=asked.query.get("continue", ""))
        meta: dict[str, Any] = {"resourceVersion": page.version}
        if page.continue_token:
            meta |= {"continue": page.continue_token, "remainingItemCount": page.remaining}
        if asked.is_table:
            return self._table(asked, page.items, meta)
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": page.items}

    def _table(self, asked: ApiRequest, items: list[Document], meta: Document) -> Document:
        return table_of(asked.target.kind, items, meta, self._store.now, asked.included)

    async def _streamed(self, request: web.Request, asked: ApiRequest) -> web.StreamResponse:
        if len(self._streams) >= WATCHES.most:
            raise Busy(f"too many watches are open: {WATCHES.text}")
        stream = Stream(self._store, asked.watch)
        response = web.StreamResponse(headers={**self._headers(), "Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        self._streams.add(stream)
        try:
            with suppress(ConnectionError):
                async for event in stream.events():
                    if asked.is_table and event["type"] in CHANGES:
                        event = {**event, "object": self._table(asked, [event["object"]], {})}
                    await response.write(msgspec.json.encode(event) + b"\n")
        finally:
            self._streams.discard(stream)
        return response

    # --- writing -----------------------------------------------------------------------------------------------------

    def _changed(self, asked: ApiRequest) -> Answer:
        """Carry out a write, or a dry run of it on a copy of the store."""
        if asked.is_trial:
            return write(self._store.trial(), asked)
        answer = write(self._store, asked)
        self._after()
        return answer
