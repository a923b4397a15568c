"""Binds pods as fast as an API server takes it, and decides nothing: the limit that schedulers are measured against.

    python raw_binder.py HOST PORT AUTHORITY_FILE TOKEN_FILE CONNECTIONS

Reads lines from stdin: `NAMESPACE POD UID NODE` prepares a bind, `go` sends all that are prepared; for each `go` it prints how many
were refused, with the first refusal. It is lean on purpose: HTTP/1.1 on kept TLS connections in one thread, whole requests prepared
as bytes, no library beside Python's own, and of an answer no more is looked at than its status and its length. Requests wait for
their answers, as those of schedulers do; there are as many at once as there are connections.
"""

import selectors
import socket
import ssl
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CREATED = b"201"
MOST = 1 << 16
HEAD_END, LENGTH = b"\r\n\r\n", b"Content-Length: "


def request(host: str, token: str, namespace: str, pod: str, uid: str, node: str) -> bytes:
    """Return the bytes of one bind."""
    body = (
        f'{{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{pod}","namespace":"{namespace}","uid":"{uid}"}},'
        f'"target":{{"apiVersion":"v1","kind":"Node","name":"{node}"}}}}'
    )
    return (
        f"POST /api/v1/namespaces/{namespace}/pods/{pod}/binding HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def length(received: bytes) -> int:
    """Return how long an answer is in bytes, head and body; 0 while its head is not whole."""
    end = received.find(HEAD_END)
    if end < 0:
        return 0
    start = received.find(LENGTH, 0, end)
    if start < 0:
        raise ValueError(f"an answer without a length: {received[:end].decode(errors='replace')}")
    start += len(LENGTH)
    stop = received.find(b"\r", start)
    return end + len(HEAD_END) + int(received[start:stop])


class Connection:
    """One kept connection, with at most one request under way."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext) -> None:
        """Connect."""
        plain = socket.create_connection(address)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = tls.wrap_socket(plain, server_hostname=address[0])
        self.socket.setblocking(False)
        self._received = b""

    def send(self, whole: bytes) -> None:
        """Send a request, which is far smaller than the buffer of a socket."""
        if self.socket.send(whole) != len(whole):
            raise OSError("a request did not fit into the buffer of its connection")

    def receive(self) -> bytes:
        """Return an answer if it is whole, nothing otherwise."""
        while True:
            try:
                part = self.socket.recv(MOST)
            except (ssl.SSLWantReadError, BlockingIOError):
                return b""
            if not part:
                raise ConnectionError("the server closed a connection")
            self._received += part
            if len(self._received) == length(self._received):
                whole, self._received = self._received, b""
                return whole


class Binder:
    """Several connections to one server."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext, connections: int) -> None:
        """Open all connections."""
        self._address, self._tls = address, tls
        self._selector = selectors.DefaultSelector()
        for _ in range(connections):
            self._connect()

    def _connect(self) -> None:
        connection = Connection(self._address, self._tls)
        self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def send(self, requests: Sequence[bytes]) -> list[bytes]:
        """Send everything and return the answers that are refusals."""
        self._reopen()
        left = iter(requests)
        refused: list[bytes] = []
        busy = sum(_next(key.data, left) for key in self._selector.get_map().values())
        while busy:
            for key, _ in self._selector.select():
                answer = key.data.receive()
                if not answer:
                    continue
                if answer[9:12] != CREATED:
                    refused.append(answer)
                busy -= not _next(key.data, left)
        return refused

    def _reopen(self) -> None:
        """Replace connections that the server has closed because they were idle."""
        for key, _ in self._selector.select(0):
            try:
                key.data.receive()
            except (ConnectionError, ssl.SSLError):
                self._selector.unregister(key.fileobj)
                key.data.socket.close()
                self._connect()


def _next(connection: Connection, left: Iterator[bytes]) -> bool:
    """Send the next request, if there is one."""
    following = next(left, None)
    if following is not None:
        connection.send(following)
    return following is not None


def main(host: str, port: str, authority: str, token_file: str, connections: str) -> None:
    """Obey stdin until it ends."""
    token = Path(token_file).read_text()
    binder = Binder((host, int(port)), ssl.create_default_context(cafile=authority), int(connections))
    prepared: list[bytes] = []
    for line in sys.stdin:
        words = line.split()
        if words != ["go"]:
            prepared.append(request(f"{host}:{port}", token, *words))
            continue
        refused = binder.send(prepared)
        print(len(refused), *(answer.decode(errors="replace").splitlines()[-1] for answer in refused[:1]), flush=True)
        prepared = []


if __name__ == "__main__":
    main(*sys.argv[1:])
