"""Connections by hand: TLS says whom we speak to, large pieces come whole, and streams end as they should."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
import trustme

from phalanx.store.kube import plain_http
from phalanx.store.kube.plain_http import Connections
from phalanx.store.kube.wire import Place

AUTHORITY = trustme.CA()
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
REQUEST = b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
LARGE = bytes(range(256)) * 40_000
"""More than sockets hold."""
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def server_tls() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
    return context


def client_tls(authority: trustme.CA = AUTHORITY) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@asynccontextmanager
async def served(serve: Serve, tls: ssl.SSLContext | None) -> AsyncIterator[tuple[Connections, Place]]:
    """Yield connections, and the place at which somebody serves; with TLS if we are to speak so."""

    async def look_after(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(look_after, "127.0.0.1", 0, ssl=None if tls is None else server_tls())
    connections = Connections()
    try:
        yield connections, Place("127.0.0.1", server.sockets[0].getsockname()[1], tls, None)
    finally:
        connections.close()
        server.close()


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with the body of the request, in chunks."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0] or b"0"))
        writer.write(HEAD + b"".join(chunk(body[place : place + 70_000]) for place in range(0, len(body), 70_000)) + b"0\r\n\r\n")
        await writer.drain()


@pytest.mark.parametrize("tls", [None, client_tls()])
def test_what_is_more_than_sockets_hold_goes_there_and_back(tls: ssl.SSLContext | None) -> None:
    async def run() -> None:
        async with served(echo, tls) as (connections, place):
            for _ in range(2):
                request = f"POST /x HTTP/1.1\r\nContent-Length: {len(LARGE)}\r\n\r\n".encode() + LARGE
                assert (await connections.ask(place, request, seconds=30.0)).body == LARGE

    asyncio.run(run())


@pytest.mark.parametrize(("authority", "name"), [(trustme.CA(), None), (AUTHORITY, "elsewhere.example")])
def test_whoever_cannot_prove_who_he_is_gets_nothing(authority: trustme.CA, name: str | None) -> None:
    async def run() -> None:
        async with served(echo, client_tls(authority)) as (connections, place):
            with pytest.raises(ssl.SSLCertVerificationError):
                await connections.ask(place._replace(server_name=name), REQUEST, seconds=5.0)

    asyncio.run(run())


def test_a_second_connection_resumes_the_session_of_the_first() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        resumed.append(writer.get_extra_info("ssl_object").session_reused)
        await echo(reader, writer)

    async def run() -> None:
        async with served(serve, client_tls()) as (connections, place):
            request = b"POST /x HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"
            await connections.ask(place, request, seconds=5.0)
            await asyncio.gather(*(connections.ask(place, request, seconds=5.0) for _ in range(3)))

    resumed: list[bool] = []
    asyncio.run(run())
    assert resumed == [False, True, True]


async def read(connections: Connections, place: Place, silence: float = 5.0) -> list[bytes]:
    """Return the parts of a stream."""
    async with connections.stream(place, REQUEST, seconds=5.0) as stream:
        assert stream.answer.status == 200
        return [part async for part in stream.parts(silence)]


@pytest.mark.parametrize("tls", [None, client_tls()])
def test_a_stream_is_read_while_it_comes_and_its_connection_kept_at_the_end(tls: ssl.SSLContext | None) -> None:
    opened = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(1)
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD)
            for word in (b"first", b"second"):
                writer.write(chunk(word))
                await writer.drain()
                await asyncio.sleep(0.01)
            writer.write(b"0\r\n\r\n")

    async def run() -> None:
        async with served(serve, tls) as (connections, place):
            assert b"".join(await read(connections, place)) == b"firstsecond"
            assert b"".join(await read(connections, place)) == b"firstsecond"

    asyncio.run(run())
    assert len(opened) == 1


def test_a_stream_that_is_cut_says_so_after_what_has_come() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + chunk(b"half"))

    async def run() -> None:
        async with served(serve, None) as (connections, place), connections.stream(place, REQUEST, seconds=5.0) as stream:
            parts = stream.parts(5.0)
            assert await anext(parts) == b"half"
            with pytest.raises(ConnectionResetError):
                await anext(parts)

    asyncio.run(run())


def test_a_stream_that_is_silent_for_too_long_is_given_up() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        await reader.read()

    async def run() -> None:
        async with served(serve, None) as (connections, place):
            with pytest.raises(TimeoutError):
                await read(connections, place, silence=0.02)

    asyncio.run(run())


def test_who_reads_slowly_lets_the_server_wait_and_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_http, "MOST_WAITING", 1 << 16)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + chunk(LARGE) + b"0\r\n\r\n")
        await reader.read()

    async def run() -> None:
        async with (
            served(serve, client_tls()) as (connections, place),
            connections.stream(place, REQUEST, seconds=5.0) as stream,
        ):
            await asyncio.sleep(0.1)
            assert stream.waiting < 4 * plain_http.MOST_WAITING < len(LARGE)
            assert b"".join([part async for part in stream.parts(5.0)]) == LARGE

    asyncio.run(run())
