"""A client of an API server that is a store in memory: the same answers, after a little virtual time, and a connection to cut."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

from phalanx.errors import Missing, Unreachable
from phalanx.model.kinds import Document, Kind, kind_of
from phalanx.model.watch_event import BOOKMARK
from phalanx.store import patches
from phalanx.store.api_client import JSON, Change, Listing
from phalanx.store.memory import MemoryStore
from phalanx.store.selection import selection
from phalanx.web.discovery import documents

LATENCY_SECONDS = 0.002
BETWEEN_BOOKMARKS_SECONDS = 60.0
LEASES = "leases."
"""They are written by those who do not lead yet."""


class MemoryClient:
    """Asks a store; see `ApiClient` for what each method answers."""

    def __init__(self, store: MemoryStore, *, latency: float = LATENCY_SECONDS) -> None:
        """Begin connected; every request takes `latency` seconds each way."""
        self.store, self._latency = store, latency
        self.served: Mapping[Kind, Kind] = {}
        self.may_write: Callable[[], bool] = lambda: True
        self.heard: Callable[[float, float], None] = lambda date, seconds: None
        self._is_connected, self._discovery = True, documents()
        self._bells: set[asyncio.Event] = set()
        self.requests: list[tuple[str, str]] = []
        """What was asked that came through: the verb, and what about."""

    # --- the connection ----------------------------------------------------------------------------------------------

    def disconnect(self) -> None:
        """Cut the connection: watches end, and requests fail until it is back."""
        self._is_connected = False
        for bell in self._bells:
            bell.set()

    def connect(self) -> None:
        """Let requests through again."""
        self._is_connected = True

    def _check(self) -> None:
        if not self._is_connected:
            raise Unreachable("no cluster at all: the connection is cut")

    async def _ask(self, verb: str, about: str, answer: Callable[[], Any], *, is_write: bool = False) -> Any:  # Any: per request
        await asyncio.sleep(self._latency)
        self._check()
        if is_write and not about.startswith(LEASES) and not self.may_write():
            raise Unreachable("not sent: this process does not lead any more")
        self.requests.append((verb, about))
        found, date = answer(), float(int(self.store.now))
        await asyncio.sleep(self._latency)
        self._check()  # it was carried out, and nobody hears of it
        self.heard(date, 2 * self._latency)
        return deepcopy(found)

    # --- reading -----------------------------------------------------------------------------------------------------

    async def get(self, kind: Kind, namespace: str, name: str) -> Document:
        """Return one object."""
        found: Document = await self._ask("get", f"{kind.resource} {name}", lambda: self.store.get(kind, namespace, name))
        return found

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        """Return all objects of a kind."""
        chosen = selection(namespace, labels, fields)

        def listed() -> tuple[list[dict[str, Any]], str]:
            return [dict(item) for item in self.store.items(kind, chosen)], str(self.store.history.version)

        return Listing(*await self._ask("list", kind.resource, listed))

    async def changes(
        self, kind: Kind, namespace: str = "", *, since: str, seconds: int, fields: str = ""
    ) -> AsyncGenerator[Sequence[Change], None]:
        """Yield changes as they come, and bookmarks, until the watch ends or the connection is cut."""
        loop, bell = asyncio.get_running_loop(), asyncio.Event()
        chosen = selection(namespace, fields=fields)
        watch = await self._ask_watch(kind, lambda: self.store.watch(kind, chosen, since=since))
        watch.wake, ends_at = bell.set, loop.time() + seconds
        self._bells.add(bell)
        try:
            yield ()
            while loop.time() < ends_at:
                bell.clear()
                found = [Change(event.type, deepcopy(dict(event.object))) for event in watch.take()]
                if found:
                    yield found
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(BETWEEN_BOOKMARKS_SECONDS, ends_at - loop.time())):
                        await bell.wait()
                self._check()
                if not bell.is_set():
                    yield [Change(BOOKMARK, {"metadata": {"resourceVersion": str(self.store.history.version)}})]
        finally:
            self._bells.discard(bell)
            self.store.history.leave(watch)

    async def _ask_watch(self, kind: Kind, begin: Callable[[], Any]) -> Any:  # Any: a watch is not to be copied
        await asyncio.sleep(self._latency)
        self._check()
        self.requests.append(("watch", kind.resource))
        return begin()

    async def version(self) -> Document:
        """Return what the server says it is."""
        return await self.document("/version")

    async def document(self, path: str, *, accept: str = JSON) -> Document:
        """Return which groups, versions and kinds are served, in the form that every server knows."""
        found: Document = await self._ask("get", path, lambda: self._discovered(path))
        return found

    def _discovered(self, path: str) -> Document:
        if path not in self._discovery:
            raise Missing(f"the server could not find {path}")
        return self._discovery[path]

    # --- writing -----------------------------------------------------------------------------------------------------

    async def create(self, document: Document) -> Document:
        """Add an object."""
        about = f"{kind_of(document).resource} {document['metadata'].get('name', '')}"
        found: Document = await self._ask("create", about, lambda: self.store.create(document), is_write=True)
        return found

    async def replace(self, document: Document) -> Document:
        """Write an object anew."""
        about = f"{kind_of(document).resource} {document['metadata']['name']}"
        found: Document = await self._ask("replace", about, lambda: self.store.replace(document), is_write=True)
        return found

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Any, *, form: str = patches.MERGE, is_status: bool = False
    ) -> Document:
        """Change parts of an object, or of its status; a kind without a status subresource has the status written with the rest."""
        has_place = is_status and self.served.get(kind, kind).has_status
        found: Document = await self._ask(
            "patch", f"{kind.resource} {name}",
            lambda: self.store.patch(kind, namespace, name, patch, form=form, is_status=has_place), is_write=True,
        )  # fmt: skip
        return found

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> Document:
        """Remove an object."""
        about = f"{kind.resource} {name}"
        await self._ask("delete", about, lambda: self.store.delete(kind, namespace, name, uid=uid), is_write=True)
        return {}

    async def bind(
        self, namespace: str, name: str, node: str, *, uid: str = "", annotations: Mapping[str, str] | None = None
    ) -> None:
        """Give a pod a node."""
        about = f"pods {name}"
        await self._ask(
            "bind", about, lambda: self.store.bind(namespace, name, node, uid=uid, annotations=annotations), is_write=True
        )

    async def evict(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Delete a pod as far as disruption budgets allow."""
        await self._ask("evict", f"pods {name}", lambda: self.store.evict(namespace, name, uid=uid), is_write=True)
