"""Plain HTTP: answers are read in whatever pieces they come, and connections are kept only as long as that is safe."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from phalanx.errors import Unreachable
from phalanx.store.kube.http_answer import Answer, AnswerReader
from phalanx.store.kube.plain_http import Connections
from phalanx.store.kube.wire import Place

OK = b"HTTP/1.1 201 Created\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}"
REQUEST = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def read(*pieces: bytes, is_end: bool = False) -> AnswerReader:
    """Read an answer in pieces; `is_end`: nothing more comes."""
    reader = AnswerReader()
    for piece in pieces:
        reader.feed(piece)
    if is_end:
        reader.finish()
    return reader


def whole(data: bytes, *, is_end: bool = False) -> Answer:
    reader = read(data, is_end=is_end)
    assert reader.answer is not None
    assert (reader.is_whole, reader.rest) == (True, b"")
    return reader.answer


def test_an_answer_of_known_length() -> None:
    answer = whole(OK)
    assert (answer.status, answer.body, answer.header("date")) == (201, b"{}", "Thu, 01 Jan 1970 00:00:00 GMT")


@pytest.mark.parametrize(
    "data",
    [
        OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    ],
)
def test_an_answer_that_comes_byte_by_byte_is_complete_at_its_last_one(data: bytes) -> None:
    reader = AnswerReader()
    for place in range(len(data)):
        assert not reader.is_whole
        reader.feed(data[place : place + 1])
    assert (reader.is_whole, reader.rest) == (True, b"")
    assert reader.answer is not None
    assert (reader.answer.status, reader.answer.body) == (whole(data).status, whole(data).body)


def test_chunks_are_joined() -> None:
    assert whole(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").body == b"abcde"


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    data = b"HTTP/1.0 500 Oops\r\n\r\nsorry"
    assert not read(data).is_whole
    assert whole(data, is_end=True).body == b"sorry"


def test_headers_may_come_several_times() -> None:
    assert whole(b"HTTP/1.1 204 x\r\nwarning: a\r\nWARNING:b\r\n\r\n").headers("warning") == ["a", "b"]


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 2x1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"x" * 100_000,
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^(it|a|its|invalid|Content-Length) "):
        read(data)


# --- connections ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[tuple[Connections, Place]]:
    """Yield connections, and the place at which somebody serves."""
    under_way = set[asyncio.Task[None]]()

    async def look_after(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(look_after, "127.0.0.1", 0)
    connections = Connections()
    try:
        yield connections, Place("127.0.0.1", server.sockets[0].getsockname()[1], None, None)
    finally:
        connections.close()
        server.close()
        await asyncio.gather(*under_way)


def let_pass() -> None:
    """Nothing against it."""


class Counting:
    """A server that answers some requests on each connection, then hangs up."""

    def __init__(self, *, per_connection: int, answer: bytes = OK) -> None:
        self.connections, self.requests, self._most, self._answer = 0, 0, per_connection, answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for _ in range(self._most):
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            writer.write(self._answer)


def asked(server: Counting, times: int) -> list[int]:
    """Ask a server some times, one after the other, and return the codes of its answers."""

    async def run() -> list[int]:
        async with served(server.serve) as (connections, place):
            return [(await connections.ask(place, REQUEST, check=let_pass, seconds=5.0)).status for _ in range(times)]

    return asyncio.run(run())


def test_a_connection_serves_many_requests() -> None:
    server = Counting(per_connection=9)
    assert asked(server, 3) == [201] * 3
    assert server.connections == 1


@pytest.mark.parametrize("extra", [b"Connection: close\r\n", b""])
def test_a_connection_that_is_to_end_or_says_too_much_is_not_kept(extra: bytes) -> None:
    more = b"" if extra else b"HTTP/1.1 408 x\r\n\r\n"
    server = Counting(per_connection=9, answer=OK.replace(b"Content-Length", extra + b"Content-Length") + more)
    assert asked(server, 3) == [201] * 3
    assert server.connections == 3


@pytest.mark.parametrize(("is_repeatable", "requests"), [(True, 2), (False, 1)])
def test_only_what_may_be_repeated_is_sent_again_when_a_kept_connection_is_closed(is_repeatable: bool, requests: int) -> None:
    async def drop_the_second(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen.append(1)
        writer.write(OK)
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async def run() -> None:
        async with served(drop_the_second) as (connections, place):
            await connections.ask(place, REQUEST, check=let_pass, seconds=5.0)
            again = connections.ask(place, REQUEST, check=let_pass, seconds=5.0, is_repeatable=is_repeatable)
            if is_repeatable:
                assert (await again).status == 201
            else:
                with pytest.raises(ConnectionError):
                    await again

    seen: list[int] = []
    asyncio.run(run())
    assert len(seen) == requests


def test_nothing_is_sent_when_the_check_fails_and_the_next_one_is_heard() -> None:
    def refuse() -> None:
        raise Unreachable("not sent")

    async def run() -> None:
        async with served(server.serve) as (connections, place):
            await connections.ask(place, REQUEST, check=let_pass, seconds=5.0)
            with pytest.raises(Unreachable, match="not sent"):
                await connections.ask(place, REQUEST, check=refuse, seconds=5.0)
            await connections.ask(place, REQUEST, check=let_pass, seconds=5.0)

    server = Counting(per_connection=9)
    asyncio.run(run())
    assert server.requests == 2


def test_a_server_that_does_not_answer_is_left_after_a_while() -> None:
    async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def run() -> None:
        async with served(be_silent) as (connections, place):
            with pytest.raises(TimeoutError):
                await connections.ask(place, REQUEST, check=let_pass, seconds=0.05)

    asyncio.run(run())


def test_the_answer_to_a_request_that_was_given_up_is_not_taken_for_that_to_the_next_one() -> None:
    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            number.append(1)
            await (asyncio.sleep(0.05) if len(number) == 1 else asyncio.sleep(0))
            writer.write(OK.replace(b"201", b"202") if len(number) == 1 else OK)

    async def run() -> None:
        async with served(answer_late) as (connections, place):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await connections.ask(place, REQUEST, check=let_pass, seconds=5.0)
            assert (await connections.ask(place, REQUEST, check=let_pass, seconds=5.0)).status == 201

    number: list[int] = []
    asyncio.run(run())
