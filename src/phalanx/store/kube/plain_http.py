"""HTTP/1.1 as far as writes to an API server need it: one small request and its answer at a time, over connections that are kept.

A general HTTP library spends 100 µs and more on a request, and a gang is as many requests as it has pods. Here a request is two
pieces of bytes, and an answer is read by hand. Nothing is encoded, no redirects are followed, and no proxy is asked.

Who asks may refuse at the last moment, when the connection is there and nothing is sent: see `Connections.ask`. What goes wrong on
the way is an `OSError`; `TimeoutError` is one of them.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, cast

CONNECT_SECONDS = 5.0
KEPT_SECONDS = 15.0
"""A connection that was not used for so long is not used again: servers and what is before them close idle ones."""
LONGEST_HEAD = 64 << 10
HEAD_END, LINE_END = b"\r\n\r\n", b"\r\n"
NO_BODY = frozenset({204, 304})
FIRST_FINAL = 200
"""Answers below only say that the real one is to come."""


class Place(NamedTuple):
    """The other end of connections that can stand in for each other."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    """None: without TLS."""
    server_name: str | None


@dataclass(slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, list[str]] = field(default_factory=dict)
    """By their names in small letters."""
    body: bytes = b""

    def header(self, name: str) -> str:
        """Return the first header of a name, in small letters; empty if there is none."""
        found = self.headers.get(name)
        return found[0] if found else ""


@cache
def usual_tls() -> ssl.SSLContext:
    """Return the context that trusts whom this machine trusts."""
    return ssl.create_default_context()


class Connections:
    """Connections to servers, kept between requests."""

    def __init__(self) -> None:
        """Begin with none."""
        self._idle: dict[Place, list[_Connection]] = {}
        self._open: set[_Connection] = set()

    def close(self) -> None:
        """Close all of them."""
        for connection in list(self._open):
            connection.close()
        self._idle.clear()

    async def ask(
        self, place: Place, request: bytes, *, check: Callable[[], None], seconds: float, is_repeatable: bool = False
    ) -> Answer:
        """Send a request and return its answer, within some seconds in all.

        `check` is called when the connection is there; if it raises, nothing is sent. A kept connection may be closed by the other
        side while we write: a request that is repeatable is sent once more then.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        connection = self._kept(place, loop.time())
        if connection is not None:
            try:
                return await self._exchange(connection, request, check, deadline)
            except ConnectionError:
                if not is_repeatable:
                    raise
        connection = await self._connect(place, min(CONNECT_SECONDS, deadline - loop.time()))
        return await self._exchange(connection, request, check, deadline)

    async def _exchange(self, connection: "_Connection", request: bytes, check: Callable[[], None], deadline: float) -> Answer:
        try:
            check()
            answer = await connection.ask(request, deadline)
        except BaseException:  # also when cancelled: the answer to this request must not be taken for that to the next one
            connection.close()
            raise
        if connection.is_open:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.setdefault(connection.place, []).append(connection)
        return answer

    def _kept(self, place: Place, now: float) -> "_Connection | None":
        """Return the connection that was used last, if it is still good."""
        idle = self._idle.get(place)
        while idle:
            connection = idle.pop()
            if connection.is_open and now - connection.idle_since < KEPT_SECONDS:
                return connection
            connection.close()
        return None

    async def _connect(self, place: Place, seconds: float) -> "_Connection":
        name = None if place.tls is None else place.server_name or place.host
        try:
            async with asyncio.timeout(seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(place, self._open.discard), place.host, place.port, ssl=place.tls, server_hostname=name
                )
        except TimeoutError as problem:
            raise ConnectionError(f"no connection within {seconds:g} s") from problem
        self._open.add(connection)
        return connection


class _Connection(asyncio.Protocol):
    """One connection, on which one request at a time is under way."""

    def __init__(self, place: Place, lost: Callable[["_Connection"], None]) -> None:
        self.place, self._lost = place, lost
        self.idle_since = 0.0
        self.is_open = False
        self._transport: asyncio.Transport | None = None
        self._answered: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._buffer = b""

    def ask(self, request: bytes, deadline: float) -> "asyncio.Future[Answer]":
        """Send a request; the future is that of its answer."""
        loop = asyncio.get_running_loop()
        answered = self._answered = loop.create_future()
        if self._transport is None or not self.is_open:
            answered.set_exception(ConnectionResetError("Server disconnected"))
            return answered
        self._timer = loop.call_at(deadline, self._expire)
        self._transport.write(request)
        return answered

    def close(self) -> None:
        """Close it; what is under way fails."""
        self._fail(ConnectionResetError("Connection closed"))

    def _expire(self) -> None:
        self._fail(TimeoutError())

    def _fail(self, problem: Exception) -> None:
        self.is_open = False
        self._lost(self)
        answered = self._end()
        if answered is not None and not answered.done():
            answered.set_exception(problem)
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> "asyncio.Future[Answer] | None":
        """Return whose turn it was; from now on nobody's."""
        answered, self._answered, self._buffer = self._answered, None, b""
        if self._timer is not None:
            self._timer.cancel()
        return answered

    # --- what the event loop calls -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self.is_open = cast(asyncio.Transport, transport), True  # uvloop's are none, and do what they do

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        try:
            self._look(is_end=False)
        except ValueError as problem:
            self._fail(OSError(f"the answer is not HTTP: {problem}"))

    def eof_received(self) -> None:
        try:
            self._look(is_end=True)
        except ValueError as problem:
            self._fail(OSError(f"the answer is not HTTP: {problem}"))

    def connection_lost(self, problem: Exception | None) -> None:
        self._fail(problem if isinstance(problem, OSError) else ConnectionResetError("Server disconnected"))

    # --- the answer --------------------------------------------------------------------------------------------------

    def _look(self, *, is_end: bool) -> None:
        """Look whether the answer is there as a whole."""
        answered = self._answered
        if answered is None or answered.done():
            self._fail(OSError("the server answers what nobody asked"))  # nobody hears it, and the connection is given up
            return
        found = read_answer(self._buffer, is_end=is_end)
        if found is None:
            return
        answer, length = found
        has_rest = len(self._buffer) > length
        self._end()
        if is_end or has_rest or "close" in answer.header("connection").lower():
            self._fail(ConnectionResetError("Connection closed"))
        answered.set_result(answer)


def read_answer(data: bytes, *, is_end: bool = False) -> tuple[Answer, int] | None:
    """Return the first final answer in what has come, and where it ends; None if more is to come. `is_end`: nothing does.

    Raises ValueError for what is no answer.
    """
    start = 0
    while True:
        end = data.find(HEAD_END, start)
        if end < 0:
            if len(data) - start > LONGEST_HEAD:
                raise ValueError("its head is too long")
            return None
        answer, start = _head(data[start:end]), end + len(HEAD_END)
        if answer.status >= FIRST_FINAL:
            break
    if answer.status in NO_BODY:
        return answer, start
    if "chunked" in answer.header("transfer-encoding").lower():
        return _in_chunks(answer, data, start)
    if "content-length" in answer.headers:
        length = answer.header("content-length")
        if not (length.isascii() and length.isdigit()):
            raise ValueError(f"Content-Length is {length!r}")
        end = start + int(length)
        answer.body = data[start:end]
        return (answer, end) if len(data) >= end else None
    answer.body = data[start:]
    return (answer, len(data)) if is_end else None


def _head(data: bytes) -> Answer:
    first, *lines = data.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest[:3]
    if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdigit()):
        raise ValueError(f"it begins with {first[:40]!r}")
    answer = Answer(int(code))
    if version == "HTTP/1.0":
        answer.headers["connection"] = ["close"]
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"a header is {line[:40]!r}")
        answer.headers.setdefault(name.lower(), []).append(value.strip())
    return answer


def _in_chunks(answer: Answer, data: bytes, start: int) -> tuple[Answer, int] | None:
    parts: list[bytes] = []
    while True:
        end = data.find(LINE_END, start)
        if end < 0:
            return None
        size = int(data[start:end].partition(b";")[0], 16)
        if size < 0:
            raise ValueError("a chunk has a negative length")
        start = end + len(LINE_END)
        if not size:
            return _after_chunks(answer, b"".join(parts), data, start)
        if len(data) < start + size + len(LINE_END):
            return None
        parts.append(data[start : start + size])
        start += size + len(LINE_END)


def _after_chunks(answer: Answer, body: bytes, data: bytes, start: int) -> tuple[Answer, int] | None:
    """Skip the headers that may follow the last chunk."""
    while (end := data.find(LINE_END, start)) > start:
        start = end + len(LINE_END)
    answer.body = body
    return None if end < 0 else (answer, end + len(LINE_END))
