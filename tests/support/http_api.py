"""A plain client of the Kubernetes API for tests: one request at a time, codes and bodies as they are on the wire.

It speaks to an embedded store that a thread serves over HTTP, and as well to a real API server that a kubeconfig names: what a
store must do is written once, in tests/contract, and asked of both.
"""

import asyncio
import base64
import http.client
import json
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import yaml
from aiohttp import web

from phalanx.store.memory import MemoryStore
from phalanx.web.api import Api
from phalanx.web.server import serving

TURNS_SECONDS = 0.01
"""Enough for some turns of an event loop."""
PATIENCE_SECONDS = 30.0


class Answer(NamedTuple):
    """The code of an answer and its body."""

    code: int
    body: dict[str, Any]
    warnings: Sequence[str] = ()

    @property
    def refusal(self) -> tuple[int, str, str]:
        """The code, reason and message of a refusal."""
        return self.code, self.body.get("reason", ""), self.body.get("message", "")


@dataclass(frozen=True, slots=True)
class Connection:
    """Where an API server is and how to be let in."""

    server: str
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None

    def ask(self, method: str, path: str, body: Any = None, *, form: str = "application/json", **query: object) -> Answer:
        """Send one request."""
        with self._opened(method, path, body, form, query) as answer:
            is_json = answer.headers.get_content_type() == "application/json"
            body = json.loads(answer.read() or b"{}") if is_json else {}
            return Answer(answer.status, body, answer.headers.get_all("Warning") or [])

    def watch(self, path: str, *, seconds: int = 3, **query: object) -> Iterator[dict[str, Any]]:
        """Yield the events of a watch until the server ends it after some seconds."""
        with self._opened("GET", path, None, "", {"watch": "1", "timeoutSeconds": seconds, **query}) as answer:
            if answer.status != 200:
                yield {"type": "ERROR", "object": json.loads(answer.read())}
                return
            while line := answer.readline():
                yield json.loads(line)

    @contextmanager
    def _opened(
        self, method: str, path: str, body: Any, form: str, query: Mapping[str, object]
    ) -> Iterator[http.client.HTTPResponse]:
        address = urlsplit(self.server)
        host, port = address.hostname or "", address.port
        connection = (
            http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)
            if self.tls is None
            else http.client.HTTPSConnection(host, port, timeout=PATIENCE_SECONDS, context=self.tls)
        )
        text = None if body is None else json.dumps(body)
        headers = {**self.headers, **({"Content-Type": form} if text is not None else {})}
        connection.request(method, f"{path}?{urlencode(query)}" if query else path, text, headers)
        try:
            yield connection.getresponse()
        finally:
            connection.close()


@dataclass(slots=True)
class Gatekeeper:
    """Stands before a server: refuses to list some resources or does not answer, and notes what was asked for."""

    hidden: Collection[str] = ()
    """Resources by their plurals."""
    dropped: Collection[str] = ()
    """Requests that are not answered, and whose connection is closed, by the last part of the path."""
    mute: Collection[str] = ()
    """Requests that are never answered."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """The method and path, with its query, of every request."""

    @property
    def middleware(self) -> Any:  # Any: aiohttp's type of it is long
        """The gatekeeper as aiohttp wants it."""

        @web.middleware
        async def look(request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
            self.asked.append((request.method, request.path_qs))
            if request.path.rpartition("/")[2] in self.dropped and request.transport is not None:
                request.transport.close()
            if request.path.rpartition("/")[2] in self.mute:
                await asyncio.Event().wait()
            if request.path.rpartition("/")[2] not in self.hidden:
                return await handler(request)
            text = f'{request.path} is forbidden: User "guest" cannot list it'
            return web.json_response({"kind": "Status", "reason": "Forbidden", "message": text, "code": 403}, status=403)

        return look


@contextmanager
def served(
    store: MemoryStore,
    own: Mapping[str, Callable[[], Mapping[str, Any]]] | None = None,
    gatekeeper: Gatekeeper | None = None,
) -> Iterator[Connection]:
    """Serve a store over HTTP in a thread, and further documents; inside the block only requests may touch it."""
    loop = asyncio.new_event_loop()
    address: list[str] = []
    is_open, is_over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        application = Api(store, own=own).application()
        application.middlewares.extend([gatekeeper.middleware] if gatekeeper else ())
        async with serving(application) as url:
            address.append(url)
            is_open.set()
            await is_over.wait()
            await asyncio.sleep(TURNS_SECONDS)  # a connection that is being accepted now would never be closed
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert is_open.wait(PATIENCE_SECONDS), "the server did not start"
    try:
        yield Connection(address[0])
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join(PATIENCE_SECONDS)
        loop.close()


def connection_to(name: str) -> Connection:
    """Return the connection to a real server: by URL, or as the current context of a kubeconfig says."""
    if name.startswith("http://"):
        return Connection(name)
    config = yaml.safe_load(Path(name).read_text())
    context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], context["cluster"])["cluster"]
    user = _named(config["users"], context["user"])["user"]
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    return Connection(cluster["server"], headers, _tls(cluster, user) if cluster["server"].startswith("https") else None)


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    tls = ssl.create_default_context()
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    elif authority := _text(cluster, "certificate-authority"):
        tls.load_verify_locations(cadata=authority)
    certificate, key = _text(user, "client-certificate"), _text(user, "client-key")
    if certificate and key:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{certificate}\n{key}\n")
            file.flush()
            tls.load_cert_chain(file.name)
    return tls


def _text(section: Mapping[str, Any], key: str) -> str:
    """Return a certificate or key that stands in the file, or in one that it names."""
    if data := section.get(f"{key}-data"):
        return base64.b64decode(data).decode()
    return Path(section[key]).read_text() if key in section else ""
