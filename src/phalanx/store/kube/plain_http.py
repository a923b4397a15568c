"""HTTP/1.1 as far as clients of an API server need it: one request and its answer at a time, over connections that are kept.

A general HTTP library spends 100 µs and more on a request, and a gang is as many requests as it has pods; importing one takes as
long as a session. Here a request is one piece of bytes, and an answer is read by hand. No redirects are followed, and no proxy is
asked.

Who asks may refuse at the last moment, when the connection is there and nothing is sent: see `Connections.ask`. What goes wrong on
the way is an `OSError`; `TimeoutError` is one of them.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache

from phalanx.store.kube.http_answer import Answer, AnswerReader
from phalanx.store.kube.wire import Place, Wire

CONNECT_SECONDS = 5.0
KEPT_SECONDS = 15.0
"""A connection that was not used for so long is not used again: servers and what is before them close idle ones."""
MOST_WAITING = 4 << 20
"""Bytes of a stream that wait for whoever reads it; the server waits from then on."""


@cache
def usual_tls() -> ssl.SSLContext:
    """Return the context that trusts whom this machine trusts."""
    return ssl.create_default_context()


def let_pass() -> None:
    """Have nothing against a request."""


class Connections:
    """Connections to servers, kept between requests."""

    def __init__(self) -> None:
        """Begin with none."""
        self._idle: dict[Place, list[_Connection]] = {}
        self._open: set[_Connection] = set()
        self._sessions: dict[Place, ssl.SSLSession] = {}
        """One session of TLS with each: a handshake that begins with it takes either side a third of the time."""

    def close(self) -> None:
        """Close all of them."""
        for connection in list(self._open):
            connection.close()
        self._idle.clear()

    async def ask(
        self, place: Place, request: bytes, *, check: Callable[[], None] = let_pass, seconds: float, is_repeatable: bool = False
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
        self._keep(connection)
        return answer

    @asynccontextmanager
    async def stream(self, place: Place, request: bytes, *, seconds: float) -> "AsyncIterator[AnswerStream]":
        """Send a request and yield its answer once its head is there, within some seconds; its body is read by the block.

        The connection is kept if the body was read to its end.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        connection, stream = await self._begun(place, request, deadline)
        try:
            yield stream
        finally:
            if stream.is_whole:
                self._keep(connection)
            else:
                connection.close()

    async def _begun(self, place: Place, request: bytes, deadline: float) -> "tuple[_Connection, AnswerStream]":
        """Send a request whose answer is streamed; once more if a kept connection turns out to be closed."""
        loop = asyncio.get_running_loop()
        connection = self._kept(place, loop.time())
        if connection is not None:
            with suppress(ConnectionError):
                return connection, await connection.stream(request, deadline)
        connection = await self._connect(place, min(CONNECT_SECONDS, deadline - loop.time()))
        return connection, await connection.stream(request, deadline)

    def _keep(self, connection: "_Connection") -> None:
        if connection.is_open and connection.wire is not None:
            if connection.place not in self._sessions and (session := connection.wire.session) is not None:
                self._sessions[connection.place] = session
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.setdefault(connection.place, []).append(connection)

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
        connection = _Connection(place, self._open.discard)
        try:
            async with asyncio.timeout(seconds):
                wire = connection.wire = await Wire.to(place, connection, self._sessions.get(place))
        except TimeoutError as problem:
            raise ConnectionError(f"no connection within {seconds:g} s") from problem
        if not wire.is_resumed:
            self._sessions.pop(place, None)  # it is too old, or the server another one
        self._open.add(connection)
        return connection


class AnswerStream:
    """An answer whose body is read while it comes."""

    def __init__(self) -> None:
        """Begin without anything."""
        self.answer = Answer(0)
        self.is_whole = False
        self._parts: deque[bytes] = deque()
        self.waiting = 0
        """Bytes that have come and were not read yet."""
        self._wire: Wire | None = None
        self._problem: OSError | None = None
        self._changed: asyncio.Future[None] | None = None

    async def parts(self, silence: float) -> AsyncIterator[bytes]:
        """Yield what has come, until the end; nothing for `silence` seconds is a TimeoutError."""
        while True:
            if self._parts:
                data = b"".join(self._parts)
                self._parts.clear()
                self.waiting = self._count(0)
                yield data
            elif self._problem is not None:
                raise self._problem
            elif self.is_whole:
                return
            else:
                await self._wait(silence)

    async def read(self, seconds: float) -> bytes:
        """Return the whole body."""
        return b"".join([part async for part in self.parts(seconds)])

    async def _wait(self, seconds: float) -> None:
        self._changed = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(seconds):
            await self._changed

    def _count(self, size: int) -> int:
        """Stop reading when too much waits, and go on when that was read."""
        if self._wire is not None and (size > MOST_WAITING) != (self.waiting > MOST_WAITING):
            (self._wire.pause if size > MOST_WAITING else self._wire.resume)()
        return size

    # --- what the connection calls -----------------------------------------------------------------------------------

    def add(self, part: bytes) -> None:
        """Take in a part of the body."""
        self._parts.append(part)
        self.waiting = self._count(self.waiting + len(part))
        self._wake()

    def begin(self, answer: Answer, wire: Wire) -> None:
        """Take in the head; parts of the body may have come with it."""
        self.answer, self._wire = answer, wire
        if self.waiting > MOST_WAITING:
            wire.pause()

    def end(self, problem: OSError | None) -> None:
        """Nothing more comes."""
        self.is_whole, self._problem, self._wire = problem is None, problem, None
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)


class _Connection:
    """One connection, on which one request at a time is under way."""

    def __init__(self, place: Place, gone: Callable[["_Connection"], None]) -> None:
        self.place, self._gone = place, gone
        self.idle_since = 0.0
        self.wire: Wire | None = None
        self._reader: AnswerReader | None = None
        self._stream: AnswerStream | None = None
        self._answered: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether another request can be sent."""
        return self.wire is not None and self.wire.is_open

    def ask(self, request: bytes, deadline: float, stream: AnswerStream | None = None) -> "asyncio.Future[Answer]":
        """Send a request; the future is that of its answer, or of its head if the body is streamed."""
        loop = asyncio.get_running_loop()
        answered = self._answered = loop.create_future()
        wire, self._stream = self.wire, stream
        if wire is None or not wire.is_open:
            answered.set_exception(ConnectionResetError("Server disconnected"))
            return answered
        self._reader = AnswerReader(None if stream is None else stream.add)
        self._timer = loop.call_at(deadline, self._expire)
        wire.send(request)
        return answered

    async def stream(self, request: bytes, deadline: float) -> AnswerStream:
        """Send a request and return its answer once its head is there."""
        stream = AnswerStream()
        try:
            await self.ask(request, deadline, stream)
        except BaseException:  # also when cancelled: see `Connections.ask`
            self.close()
            raise
        return stream

    def close(self) -> None:
        """Close it; what is under way fails."""
        self._fail(ConnectionResetError("Connection closed"))

    def _expire(self) -> None:
        self._fail(TimeoutError())

    def _fail(self, problem: OSError) -> None:
        self._gone(self)
        if self.wire is not None:
            self.wire.close()
        self._end(problem, None)

    def _end(self, problem: OSError | None, answer: Answer | None) -> None:
        """Tell whose turn it was; from now on it is nobody's."""
        answered, stream, self._answered, self._stream, self._reader = self._answered, self._stream, None, None, None
        self._stop_timer()
        if stream is not None:
            stream.end(problem)
        if answered is not None and not answered.done():
            answered.set_result(answer) if answer is not None else answered.set_exception(problem or OSError("no answer"))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- what the wire calls -----------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Look whether the answer is there as a whole."""
        reader = self._reader
        if reader is None:
            self._fail(OSError("the server answers what nobody asked"))  # nobody hears it, and the connection is given up
            return
        try:
            reader.feed(data)
        except ValueError as problem:
            self._fail(OSError(f"the answer is not HTTP: {problem}"))
            return
        if reader.answer is not None:
            self._note(reader, reader.answer)

    def _note(self, reader: AnswerReader, answer: Answer) -> None:
        stream, answered, wire = self._stream, self._answered, self.wire
        assert wire is not None, "it has received something"
        if stream is not None and answered is not None and not answered.done():
            stream.begin(answer, wire)
            self._stop_timer()
            answered.set_result(answer)
        if not reader.is_whole:
            return
        is_last = bool(reader.rest) or "close" in answer.header("connection").lower()
        self._end(None, answer)
        if is_last:
            self.close()

    def lost(self, problem: OSError | None) -> None:
        """The connection has ended, and perhaps the answer with it."""
        reader = self._reader
        if reader is not None and problem is None:
            reader.finish()
            if reader.is_whole and reader.answer is not None:
                self._end(None, reader.answer)
        self._fail(problem or ConnectionResetError("Server disconnected"))
