"""The bytes of a write: what is the same for all writes to a server as somebody, and what each adds."""

from typing import Any, NamedTuple, Self

import msgspec
from yarl import URL

from phalanx.errors import ConfigError
from phalanx.store.api_client import JSON
from phalanx.store.kube.credentials import Credential
from phalanx.store.kube.plain_http import Place, usual_tls

REPEATABLE = frozenset({"PUT", "DELETE"})
"""Requests that may be sent again when a kept connection turns out to be closed: twice is the same as once."""


class Way(NamedTuple):
    """How writes reach a server as somebody; worked out once, as long as neither changes."""

    server: str
    credential: Credential
    place: Place
    prefix: str
    """Of all paths."""
    headers: str
    """Of all writes."""

    @classmethod
    def to(cls, server: str, credential: Credential, server_name: str | None) -> Self:
        """Return the way to a server, by its URL and the name in its certificate if that is another one."""
        url = URL(server)
        tls = None if url.scheme == "http" else credential.tls or usual_tls()
        headers = {"Host": url.raw_authority, "Accept": JSON, **credential.headers}
        text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if text.count("\n") != len(headers) or text.count("\r") != len(headers):
            raise ConfigError(f"{server}: the credential has more than one line; write a token or a name in one line")
        place = Place(url.raw_host or "", url.port or 443, tls, server_name)
        return cls(server, credential, place, url.raw_path.rstrip("/"), text)


class WriteRequest(NamedTuple):
    """A write, before it is known with which credential and where it is sent."""

    method: str
    target: str
    form: str
    body: bytes
    is_fenced: bool

    @classmethod
    def of(cls, method: str, target: str, body: Any, form: str, *, is_fenced: bool) -> Self:  # Any: what becomes JSON
        """Return the request to write some object or patch, or nothing at all."""
        return cls(method, target, form, b"" if body is None else msgspec.json.encode(body), is_fenced)

    @property
    def is_repeatable(self) -> bool:
        """Tell whether it may be sent again when nobody knows what became of it."""
        return self.method in REPEATABLE

    def encoded(self, way: Way) -> bytes:
        """Return what is sent."""
        form = f"Content-Type: {self.form}\r\n" if self.body else ""
        start = f"{self.method} {way.prefix}{self.target} HTTP/1.1\r\n"
        return f"{start}{way.headers}{form}Content-Length: {len(self.body)}\r\n\r\n".encode() + self.body
