"""Bytes to and from a server: one socket on the event loop, with TLS or without.

The transports of asyncio do TLS in memory and hand every piece through five layers, which takes longer than the TLS itself. Here
OpenSSL reads and writes the socket, and the event loop only says when there is something to read. What goes wrong on the way is an
`OSError`; those of TLS are some.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

MOST = 1 << 16
RECORD = 1 << 14
"""The most that TLS sends in one piece: after a whole one there is probably more."""
AT_ONCE = 32
"""Pieces that are read before others have their turn."""
NOT_YET = (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError, InterruptedError)


class Place(NamedTuple):
    """The other end of connections that can stand in for each other."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    """None: without TLS."""
    server_name: str | None


class Listener(Protocol):
    """Who is called with what comes."""

    def received(self, data: bytes) -> None:
        """Take in some bytes."""
        ...

    def lost(self, problem: OSError | None) -> None:
        """The other side has closed the connection, or something went wrong; called once, and not after `close`."""
        ...


class Wire:
    """One connection; everything that comes is passed on as it comes."""

    def __init__(self, connected: socket.socket, listener: Listener) -> None:
        """Begin to listen; the socket is connected and does not block."""
        self._socket, self._listener, self._loop = connected, listener, asyncio.get_running_loop()
        self._unsent: deque[bytes] = deque()
        self.is_open, self._is_paused = True, False
        self._loop.add_reader(connected, self._readable)

    @classmethod
    async def to(cls, place: Place, listener: Listener, session: ssl.SSLSession | None = None) -> "Wire":
        """Connect to a place; where a session of TLS with it is known, it is resumed, if the other side agrees."""
        return cls(await _connected(place, session), listener)

    @property
    def session(self) -> ssl.SSLSession | None:
        """The session of TLS, from the first bytes that were received on."""
        return self._socket.session if self.is_open and isinstance(self._socket, ssl.SSLSocket) else None

    @property
    def is_resumed(self) -> bool:
        """Tell whether it goes on with the session of another connection, so that nobody had to prove anything again."""
        return isinstance(self._socket, ssl.SSLSocket) and bool(self._socket.session_reused)

    def send(self, data: bytes) -> None:
        """Send some bytes, at once as far as the system takes them."""
        if self._unsent:
            self._unsent.append(data)
            return
        try:
            sent = self._socket.send(data)
        except NOT_YET:
            sent = 0
        except OSError as problem:
            self._loop.call_soon(self._lose, problem)  # not before whoever sends waits for the answer
            return
        if sent < len(data):
            self._unsent.append(data[sent:])
            self._loop.add_writer(self._socket, self._writable)

    def pause(self) -> None:
        """Read no more for now: whoever reads is behind."""
        self._is_paused = True
        self._loop.remove_reader(self._socket)

    def resume(self) -> None:
        """Read on."""
        if self.is_open:
            self._is_paused = False
            self._loop.add_reader(self._socket, self._readable)
            if _has_more(self._socket):  # the system does not know what is decoded already
                self._loop.call_soon(self._readable)

    def close(self) -> None:
        """Close it, without a word."""
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()

    def _lose(self, problem: OSError | None) -> None:
        if self.is_open:
            self.close()
            is_end = isinstance(problem, ssl.SSLEOFError | ssl.SSLZeroReturnError)
            self._listener.lost(ConnectionResetError(str(problem)) if is_end else problem)

    def _readable(self) -> None:
        for _ in range(AT_ONCE):
            if not self.is_open or self._is_paused:
                return
            try:
                data = self._socket.recv(MOST)
            except NOT_YET:
                return
            except OSError as problem:
                self._lose(problem)
                return
            if not data:
                self._lose(None)
                return
            self._listener.received(data)
            if len(data) < RECORD and not _has_more(self._socket):
                return
        if self.is_open and not self._is_paused and _has_more(self._socket):
            self._loop.call_soon(self._readable)

    def _writable(self) -> None:
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent[0])
            except NOT_YET:
                return
            except OSError as problem:
                self._lose(problem)
                return
            if sent < len(self._unsent[0]):
                self._unsent[0] = self._unsent[0][sent:]
                return
            self._unsent.popleft()
        self._loop.remove_writer(self._socket)


def _has_more(connected: socket.socket) -> bool:
    """Tell whether something was decoded and not read yet, of which the system knows nothing."""
    return isinstance(connected, ssl.SSLSocket) and connected.fileno() >= 0 and connected.pending() > 0


# --- connecting ----------------------------------------------------------------------------------------------------------


async def _connected(place: Place, session: ssl.SSLSession | None) -> socket.socket:
    plain = await _plain(place)
    if place.tls is None:
        return plain
    name = place.server_name or place.host
    # takes the socket over
    safe = place.tls.wrap_socket(plain, server_hostname=name, do_handshake_on_connect=False, session=session)
    try:
        await _shake_hands(safe)
    except BaseException:
        safe.close()
        raise
    return safe


async def _plain(place: Place) -> socket.socket:
    """Connect to the first of the addresses of a place at which somebody answers."""
    problem = OSError(f"{place.host} has no address")
    for family, kind, protocol, _, address in await _addresses(place):
        found = socket.socket(family, kind, protocol)
        try:
            found.setblocking(False)
            await asyncio.get_running_loop().sock_connect(found, address)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError as refusal:
            found.close()
            problem = refusal
        except BaseException:
            found.close()
            raise
        else:
            return found
    raise problem


async def _addresses(place: Place) -> Any:  # Any: as `socket` has it
    """Look up a name; an address in digits is one, and needs no thread that asks."""
    try:
        return socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)


async def _shake_hands(safe: ssl.SSLSocket) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            safe.do_handshake()
        except ssl.SSLWantReadError:
            await _ready(safe, loop.add_reader, loop.remove_reader)
        except ssl.SSLWantWriteError:
            await _ready(safe, loop.add_writer, loop.remove_writer)
        else:
            return


async def _ready(safe: ssl.SSLSocket, add: Callable[..., Any], remove: Callable[..., Any]) -> None:  # Any: as `asyncio` has it
    is_ready = asyncio.Event()
    add(safe, is_ready.set)
    try:
        await is_ready.wait()
    finally:
        remove(safe)
