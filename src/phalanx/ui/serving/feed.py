"""Events of the server: a line whenever a cluster was looked at again, and now and then one that says that nothing happened."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from phalanx.errors import Busy
from phalanx.ui.serving.guard import HEADERS

if TYPE_CHECKING:  # as in reader.py
    from phalanx.ui.board import Board

MOST_STREAMS = 200
BEAT_SECONDS = 10.0


class Feed:
    """The open streams of all readers."""

    def __init__(self) -> None:
        """Begin with none."""
        self._streams: set[asyncio.Task[None]] = set()

    async def serve(self, request: web.Request, board: "Board") -> web.StreamResponse:
        """Stream until the reader has gone or the server ends."""
        if len(self._streams) >= MOST_STREAMS:
            raise Busy("too many pages are open; close one")
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        stream = asyncio.create_task(_stream(response, board))
        self._streams.add(stream)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                await stream
        finally:
            stream.cancel()
            self._streams.discard(stream)
        return response

    def end(self) -> None:
        """End all streams."""
        for stream in self._streams:
            stream.cancel()


async def _stream(response: web.StreamResponse, board: "Board") -> None:
    async with board.reading():
        version = ""
        while board.is_followed:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_SECONDS):
                    version = (await board.after(version)).version
            now = board.source.now
            problem = board.failure or board.source.problem
            await response.write(_event({"version": version, "now": now, "problem": problem}))


def _event(data: dict[str, object]) -> bytes:
    return b"event: look\ndata: " + msgspec.json.encode(data) + b"\n\n"
