"""Documents as they are sent: made once for each look at a cluster, whoever asks, and written and packed once."""

import asyncio
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import thread_time

import msgspec
from aiohttp import web

from phalanx.ui.board import Board
from phalanx.ui.scope import Scope
from phalanx.ui.seen import SeenCluster
from phalanx.ui.serving.redaction import redacted
from phalanx.ui.views import Json

PACKED_FROM_BYTES, PACKING = 2_000, 4
MOST_KEPT = 1_000
JSON = "application/json"
View = Callable[[SeenCluster, Scope], Json | None]
Key = tuple[str, Scope]


@dataclass(frozen=True, slots=True)
class Written:
    """A document as bytes, plain and packed."""

    plain: bytes
    packed: bytes | None
    tag: str

    @classmethod
    def of(cls, plain: bytes) -> "Written":
        """Pack what is worth it."""
        packed = gzip.compress(plain, PACKING, mtime=0) if len(plain) >= PACKED_FROM_BYTES else None
        return cls(plain, packed, f'"{sha256(plain).hexdigest()[:20]}"')

    def answer(self, request: web.Request) -> web.Response:
        """Return it for a request; nothing but its tag where the reader has it."""
        headers = {"ETag": self.tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Authorization"}
        if request.headers.get("If-None-Match") == self.tag:
            return web.Response(status=304, headers=headers)
        if self.packed is not None and "gzip" in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=self.packed, headers={**headers, "Content-Type": JSON, "Content-Encoding": "gzip"})
        return web.Response(body=self.plain, headers={**headers, "Content-Type": JSON})


class Documents:
    """The documents of one board, for its latest look."""

    def __init__(self, board: Board) -> None:
        """Begin with none."""
        self.board = board
        self._version = ""
        self._made: dict[Key, asyncio.Task[Written | None]] = {}

    async def get(self, name: str, scope: Scope, view: View) -> Written | None:
        """Return a document under its name, which says what it depends on; None where there is nothing to show."""
        seen = await self.board.current()
        if seen.version != self._version:
            self._version, self._made = seen.version, {}
        task = self._made.get((name, scope))
        if task is None:
            if len(self._made) >= MOST_KEPT:
                self._made.clear()
            task = self._made[name, scope] = asyncio.create_task(asyncio.to_thread(self._make, seen, scope, view))
        return await asyncio.shield(task)

    def _make(self, seen: SeenCluster, scope: Scope, view: View) -> Written | None:
        begun = thread_time()
        found = view(seen, scope)
        written = None if found is None else Written.of(msgspec.json.encode(redacted(found, scope, seen)))
        self.board.spent += thread_time() - begun
        return written
