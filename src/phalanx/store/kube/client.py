"""A client of the Kubernetes API: a few verbs, answers as plain documents, refusals as errors of our own tree.

It serves for embedded clusters and real API servers; the latter need credentials.

Requests go over plain connections of our own (`plain_http.py`), since a gang is as many requests as it has pods. A frugal client,
which runs beside the server, lets it compress nothing: packing a list takes a server longer than sending it.

Two things are checked at the last moment before a request is sent. The credential is asked for each time, since tokens expire. And
requests that change something are fenced: a scheduler whose lease has run out while it waited for a connection, or was stopped by
the machine, must not write any more, since another one may lead by then.

A server that moved cannot be asked where it is. When nobody has answered for a while, whoever configured the client is asked again
for the address and the authority (`again`), as kubeconfigs are written anew when a control plane is rebuilt.
"""

import asyncio
import os
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from ssl import SSLError
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import msgspec

from phalanx.errors import Unreachable
from phalanx.model.kinds import EVENT, POD, Document, Kind, kind_at, kind_of
from phalanx.store import patches
from phalanx.store.api_client import JSON, Change, Listing, ListingPage
from phalanx.store.kube import fields_read as needed
from phalanx.store.kube.api_request import ApiRequest, Way
from phalanx.store.kube.credentials import Credential, Credentials, FixedCredentials
from phalanx.store.kube.http_answer import Answer
from phalanx.store.kube.paging import AT_START, USUAL, PagesAhead
from phalanx.store.kube.plain_http import AnswerStream, Connections, let_pass
from phalanx.store.paths import ResourcePath
from phalanx.store.status_errors import problem_of
from phalanx.store.warning_headers import warning_text

PAGE = 500
GANGS, QUEUES = "/apis/phalanx.dev/v1alpha1/gangs", "/apis/phalanx.dev/v1alpha1/queues"
ANSWER_SECONDS = 30.0
SILENCE_SECONDS = 150.0
"""A watch that is silent for so long is taken for dead; a server sends a bookmark every minute, and may leave one out."""
LOST_SECONDS = 10.0
"""After so long without any answer the address is looked up again, and every so often from then on."""
LONGEST_ASKED_SECONDS = 60.0
"""For so long we leave a server alone that asks for it, whatever it says: somebody in between may say anything."""
UNAUTHORIZED = 401
FREE = frozenset({EVENT, kind_at("coordination.k8s.io", "leases")})
"""Kinds that are written whether or not we lead: the lease is how a leader is elected, and an event changes nothing."""
NOT_SENT = "not sent: another scheduler may have taken over"
FIRST_REFUSAL = 400
T = TypeVar("T")
GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is, and as whom it is asked."""

    server: str
    credentials: Credentials
    server_name: str = ""


class Client:
    """One API server; use it in ``async with``."""

    def __init__(
        self, server: str, *, credentials: Credentials | None = None, server_name: str = "", is_frugal: bool = False,
        answer_seconds: float = ANSWER_SECONDS, again: Callable[[], Endpoint | None] | None = None,
    ) -> None:  # fmt: skip
        """Name the server by its URL, who asks, and the name in the server's certificate if it is not that of the URL.

        A frugal client decodes only the fields of objects that the scheduler and its controllers need. A request that is not
        answered as a whole after `answer_seconds` fails; watches go on. `again` returns where the server is if that has changed.
        """
        self._is_frugal, self._again = is_frugal, again
        self.server = server.rstrip("/")
        self._lost_since: float | None = None
        self.credentials = credentials or FixedCredentials()
        self._server_name = server_name or None
        self._answer_seconds = answer_seconds
        self.served: Mapping[Kind, Kind] = {}
        """Kinds that are served in another version than that of `model.kinds`, or without a status subresource."""
        self.may_write: Callable[[], bool] = lambda: True
        """Asked at the last moment before a request is sent that changes something; False refuses it."""
        self.warned: Callable[[str], None] = lambda text: None
        """Called with every warning that the server sends beside an answer."""
        self.heard: Callable[[float, float], None] = lambda date, seconds: None
        """Called with the clock of the server at every answer, in whole seconds since 1970, and how many seconds that took."""
        self.now = 0.0
        """The server's clock at its last answer, in seconds since 1970."""
        self._date = ""
        self._connections = Connections()
        self._ahead: dict[Kind, PagesAhead] = {}
        """Lists that were requested before anybody asked for them."""
        self._way: Way | None = None

    def note_date(self, date: str, seconds: float) -> None:
        """Note the server's clock at an answer that took so long; what is no date is ignored."""
        with suppress(ValueError):
            if date != self._date:  # many answers come in a second
                self.now = parsedate_to_datetime(date).timestamp()
                self._date = date
            self.heard(self.now, seconds)

    def note_answer(self) -> None:
        """Somebody answers."""
        self._lost_since = None

    def note_loss(self) -> None:
        """Nobody answered a request; after a while, look up where the server is."""
        now = asyncio.get_running_loop().time()
        self._lost_since = now if self._lost_since is None else self._lost_since
        if self._again is None or now - self._lost_since < LOST_SECONDS:
            return
        self._lost_since = now
        if (found := self._again()) is not None:
            self.server, self.credentials, self._server_name = (
                found.server.rstrip("/"),
                found.credentials,
                found.server_name or None,
            )

    @property
    def patience(self) -> str:
        """For how long an answer is waited for, as a clause."""
        return f"waited for {self._answer_seconds:g} s"

    async def __aenter__(self) -> Self:
        """Open nothing yet: connections are opened when they are needed."""
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Close the connections."""
        for pages in self._ahead.values():
            pages.close()
        self._connections.close()

    # --- reading -----------------------------------------------------------------------------------------------------

    async def get(self, kind: Kind, namespace: str, name: str) -> Document:
        """Return one object."""
        return await self._ask("GET", ResourcePath(kind, namespace, name))

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", page: int = PAGE) -> Listing:
        """Return the objects of a kind, in one namespace or in all; requested in pages of this size."""
        items: list[dict[str, Any]] = []
        version = ""
        ahead = self._pages_of(kind, namespace, labels=labels, fields=fields, page=page)
        async for found in self._read_pages(kind, ahead):
            items += found.items
            version = found.version
        return Listing(items, version, ahead.begun)

    async def pages(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", page: int = PAGE
    ) -> AsyncGenerator[ListingPage, None]:
        """Yield the objects of a kind page by page; all pages show the version of the first."""
        async for found in self._read_pages(kind, self._pages_of(kind, namespace, labels=labels, fields=fields, page=page)):
            yield found

    def read_ahead(self, *kinds: Kind) -> None:
        """Request whole lists of some kinds now; whoever asks for one first gets what has come by then."""
        for kind in kinds:
            self._ahead[kind] = self._pages_of(kind, ahead=AT_START)

    def _pages_of(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", page: int = PAGE, ahead: int = USUAL
    ) -> PagesAhead:
        query = {"labelSelector": labels, "fieldSelector": fields, "limit": str(page)}
        if (known := self._ahead.pop(kind, None)) is not None:
            if not (namespace or labels or fields):
                return known
            known.close()
        path = self._path(ResourcePath(kind, namespace))
        return PagesAhead(lambda query: self._get(path, query), query, ahead=ahead)

    async def _read_pages(self, kind: Kind, ahead: PagesAhead) -> AsyncGenerator[ListingPage, None]:
        own = {"apiVersion": self.served.get(kind, kind).api_version, "kind": kind.kind}
        async with aclosing(ahead.bodies()) as bodies:
            async for body in bodies:
                found = self._read(lambda body=body: needed.read_page(kind if self._is_frugal else None, body))  # type: ignore[misc]
                items = [{**own, **item} for item in found.items or ()]
                yield ListingPage(items, found.metadata.get("resourceVersion", ""), found.metadata.get("remainingItemCount") or 0)

    async def watch(
        self, kind: Kind, namespace: str = "", *, since: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Change, None]:
        """Yield changes after a version until the server ends the watch; bookmarks too. Gone: list again."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "labelSelector": labels,
            "fieldSelector": fields,
        }
        async with aclosing(self._changes(ResourcePath(kind, namespace), query)) as found:
            async for changes in found:
                for change in changes:
                    yield change

    async def changes(
        self, kind: Kind, namespace: str = "", *, since: str, seconds: int, fields: str = ""
    ) -> AsyncGenerator[Sequence[Change], None]:
        """Yield changes after a version, as many at once as have come, until the server ends the watch after some seconds.

        The first batch is empty, and comes as soon as the server has accepted the watch.
        """
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": since, "timeoutSeconds": str(seconds)}
        async with aclosing(self._changes(ResourcePath(kind, namespace), {**query, "fieldSelector": fields})) as found:
            async for changes in found:
                yield changes

    async def _changes(self, target: ResourcePath, query: Mapping[str, str]) -> AsyncGenerator[Sequence[Change], None]:
        async with self._opened(_with_query(self._path(target), query)) as stream:
            yield ()
            rest = b""
            kind = target.kind if self._is_frugal else None
            async for chunk in stream.parts(SILENCE_SECONDS):
                *lines, rest = (rest + chunk if rest else chunk).split(b"\n")
                yield [_change(kind, line, stream.answer.status) for line in lines if line]

    async def version(self) -> Document:
        """Return what the server says it is."""
        return await self.document("/version")

    async def document(self, path: str, *, accept: str = JSON) -> Document:
        """Return what is at a path that names no object of ours, such as /apis, in one of the forms that we accept."""
        body = await self._get(path, {}, accept)
        return self._read(lambda: needed.read_object(None, body))

    async def gangs(self) -> Sequence[Document]:
        """Return the gangs as an embedded cluster lists them; a real API server has no such resource."""
        answer = await self.document(GANGS)
        return tuple(answer["items"])

    async def queue_figures(self, name: str) -> Document:
        """Return the figures of a queue in the last session of an embedded cluster; a real API server has no such resource."""
        answer = await self.document(QUEUES)
        found: Document = next((item["figures"] for item in answer["items"] if item["name"] == name), {})
        return found

    # --- writing -----------------------------------------------------------------------------------------------------

    async def create(self, document: Document, *, is_trial: bool = False) -> Document:
        """Add an object; a dry run only returns what it would become."""
        return await self._ask("POST", _list_of(document), document, query=_trial(is_trial))

    async def replace(self, document: Document, *, is_status: bool = False) -> Document:
        """Write an object anew, or its status."""
        place = _list_of(document)
        target = ResourcePath(place.kind, place.namespace, document["metadata"]["name"], "status" if is_status else "")
        return await self._ask("PUT", target, document)

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Any, *, form: str = patches.MERGE, is_status: bool = False,
        is_trial: bool = False,
    ) -> Document:  # fmt: skip
        """Change parts of an object, or of its status; a kind without a status subresource has the status written with the rest.

        A dry run only returns what the object would become.
        """
        has_place = self.served.get(kind, kind).has_status
        target = ResourcePath(kind, namespace, name, "status" if is_status and has_place else "")
        return await self._ask("PATCH", target, patch, form=form, query=_trial(is_trial))

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, grace: int | None = None, uid: str = "", propagation: str = "Background",
        is_trial: bool = False,
    ) -> Document:  # fmt: skip
        """Remove an object; what it owns follows as `propagation` says. A dry run removes nothing."""
        options = {"propagationPolicy": propagation, **_leaving(grace, uid)}
        return await self._ask("DELETE", ResourcePath(kind, namespace, name), options, query=_trial(is_trial))

    async def bind(
        self, namespace: str, name: str, node: str, *, uid: str = "", annotations: Mapping[str, str] | None = None
    ) -> None:
        """Give a pod a node, and annotations with it."""
        meta: dict[str, Any] = {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})}
        if annotations:
            meta["annotations"] = dict(annotations)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": meta,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._post(ResourcePath(POD, namespace, name, "binding"), body)

    async def evict(self, namespace: str, name: str, *, uid: str = "", grace: int | None = None) -> None:
        """Delete a pod as far as disruption budgets allow."""
        meta = {"name": name, "namespace": namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": _leaving(grace, uid)}
        await self._post(ResourcePath(POD, namespace, name, "eviction"), body)

    async def review(self, kind: Kind, spec: Mapping[str, Any]) -> Document:
        """Return the status of a review, such as a TokenReview; nothing is stored, so who does not lead may ask as well."""
        document = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": dict(spec)}
        body = await self._send("POST", ResourcePath(kind).path, {}, document, is_fenced=False)
        found: Document = self._read(lambda: needed.read_object(None, body)).get("status") or {}
        return found

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _ask(
        self,
        method: str,
        target: ResourcePath,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        form: str = JSON,
    ) -> dict[str, Any]:
        answer = await self._send(method, self._path(target), query or {}, body, form, is_fenced=target.kind not in FREE)
        return self._read(lambda: needed.read_object(target.kind if self._is_frugal else None, answer))

    async def _post(self, target: ResourcePath, body: Any) -> None:
        """Send a request whose answer has no object to read."""
        await self._write("POST", self._path(target), body)

    def _path(self, target: ResourcePath) -> str:
        kind = self.served.get(target.kind)
        return target.path if kind is None else replace(target, kind=kind).path

    async def _send(
        self, method: str, path: str, query: Mapping[str, str], body: Any = None, form: str = JSON, *,
        is_fenced: bool = True,
    ) -> bytes:  # fmt: skip
        if method == "GET":
            return await self._get(path, query)
        return await self._write(method, _with_query(path, query), body, form, is_fenced=is_fenced)

    async def _get(self, path: str, query: Mapping[str, str], accept: str = JSON) -> bytes:
        request = ApiRequest.reading(_with_query(path, query), accept=accept, may_compress=not self._is_frugal)
        return await self._asked(request)

    @asynccontextmanager
    async def _opened(self, target: str) -> AsyncIterator[AnswerStream]:
        """Yield an answer whose body is read by the block; if the credential is refused, ask once more with a new one."""
        request, credentials = ApiRequest.reading(target), self.credentials
        credential = await credentials.current()
        async with self._streamed(request, credential) as stream:
            if stream.answer.status != UNAUTHORIZED or not await credentials.renew(credential):
                await self._refuse(stream)
                yield stream
                return
        async with self._streamed(request, await credentials.current()) as stream:
            await self._refuse(stream)
            yield stream

    @asynccontextmanager
    async def _streamed(self, request: ApiRequest, credential: Credential) -> AsyncIterator[AnswerStream]:
        """Yield an answer; whatever goes wrong on the way, also while its body is read, is Unreachable."""
        way, begun = self._way_as(credential), asyncio.get_running_loop().time()
        try:
            async with self._connections.stream(way.place, request.encoded(way), seconds=self._answer_seconds) as stream:
                self._note(stream.answer, begun)
                yield stream
        except OSError as problem:
            unreachable = self.unreachable(problem)
            self.note_loss()
            raise unreachable from problem

    async def _refuse(self, stream: AnswerStream) -> None:
        """Raise the error that the server answered."""
        if stream.answer.status >= FIRST_REFUSAL:
            stream.answer.body = await stream.read(self._answer_seconds)
        self._judge(stream.answer)

    def _judge(self, answer: Answer) -> None:
        """Pass warnings on, and raise the error that the server answered."""
        for header in answer.headers("warning"):
            if text := warning_text(header):
                self.warned(text)
        if answer.status >= FIRST_REFUSAL:
            is_status = answer.header("content-type").partition(";")[0].strip() == "application/json"
            problem = problem_of(self._read(lambda: needed.read_object(None, answer.body)) if is_status else {}, answer.status)
            wait = answer.header("retry-after")  # a date, which is allowed too, is not what an API server writes
            problem.retry_after = min(float(wait), LONGEST_ASKED_SECONDS) if wait.isdecimal() else 0.0
            raise problem

    # --- writes ------------------------------------------------------------------------------------------------------

    async def _write(self, method: str, target: str, body: Any = None, form: str = JSON, *, is_fenced: bool = True) -> bytes:
        """Send a request and return what is answered; if the credential is refused, send it once more with a new one.

        Once only: a second refusal means that the user is not known, and a plugin that logs in would be run for ever.
        """
        return await self._asked(ApiRequest.of(method, target, body, form, is_fenced=is_fenced))

    async def _asked(self, request: ApiRequest) -> bytes:
        credentials = self.credentials
        credential = await credentials.current()
        answer = await self._answer(request, credential)
        if answer.status == UNAUTHORIZED and await credentials.renew(credential):
            answer = await self._answer(request, await credentials.current())
        self._judge(answer)
        return answer.body

    async def _answer(self, request: ApiRequest, credential: Credential) -> Answer:
        way, begun = self._way_as(credential), asyncio.get_running_loop().time()
        check = self._fence if request.is_fenced else let_pass
        try:
            answer = await self._connections.ask(
                way.place, request.encoded(way), check=check, seconds=self._answer_seconds, is_repeatable=request.is_repeatable
            )
            if not self._is_frugal and answer.header("content-encoding") == "gzip":
                answer.body = _unpacked(answer.body)
        except OSError as problem:
            unreachable = self.unreachable(problem)
            self.note_loss()
            raise unreachable from problem
        self._note(answer, begun)
        return answer

    def _way_as(self, credential: Credential) -> Way:
        way = self._way
        if way is None or way.server is not self.server or way.credential is not credential:
            way = self._way = Way.to(self.server, credential, self._server_name)
        return way

    def _note(self, answer: Answer, begun: float) -> None:
        self.note_answer()
        self.note_date(answer.header("date"), asyncio.get_running_loop().time() - begun)

    def _fence(self) -> None:
        """Refuse to write, unless we may; called when the connection is there.

        Checking earlier would not do: waiting for a credential or a connection may take long, and a process may be stopped at any
        point of it.
        """
        if not self.may_write():
            raise Unreachable(NOT_SENT)

    def unreachable(self, problem: Exception) -> Unreachable:
        """Return the error that says how nobody has answered."""
        if isinstance(problem, TimeoutError):
            return Unreachable(f"{self.server} does not answer; {self.patience}")
        return Unreachable(f"no cluster at {self.server}: {_failure(problem)}")

    def _read(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except msgspec.DecodeError as problem:
            text = f"{self.server} does not answer as a Kubernetes API server does; check the address"
            raise Unreachable(text) from problem


def _change(kind: Kind | None, line: bytes, code: int) -> Change:
    try:
        event = needed.read_watch_event(line)
        found = needed.read_object(None if event.type == "ERROR" else kind, event.object)
    except msgspec.DecodeError as problem:
        raise Unreachable(f"an event cannot be read: {problem}") from problem
    if event.type == "ERROR":
        raise problem_of(found, code)
    return Change(event.type, found)


def _list_of(document: Document) -> ResourcePath:
    kind = kind_of(document)
    return ResourcePath(kind, str(document.get("metadata", {}).get("namespace") or "default") if kind.is_namespaced else "")


def _unpacked(body: bytes) -> bytes:
    try:
        return zlib.decompress(body, GZIP)
    except zlib.error as problem:
        raise OSError(f"the answer is not compressed as it says: {problem}") from problem


def _with_query(path: str, query: Mapping[str, str]) -> str:
    asked = urlencode({key: value for key, value in query.items() if value})
    return f"{path}?{asked}" if asked else path


def _trial(is_trial: bool) -> dict[str, str]:
    return {"dryRun": "All"} if is_trial else {}


def _leaving(grace: int | None, uid: str) -> dict[str, Any]:
    seconds = {} if grace is None else {"gracePeriodSeconds": grace}
    return {**seconds, **({"preconditions": {"uid": uid}} if uid else {})}


def _failure(problem: Exception) -> str:
    """Return why nobody could be reached, in the words of the operating system where it is that which says so."""
    if isinstance(problem, OSError) and not isinstance(problem, SSLError) and problem.errno:
        return os.strerror(problem.errno).lower() if problem.errno > 0 else str(problem.strerror).lower()
    return str(problem) or type(problem).__name__
