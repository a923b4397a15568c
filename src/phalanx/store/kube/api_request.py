"""The bytes of a request: what is the same for all requests to a server as somebody, and what each adds."""

from typing import Any, NamedTuple, Self

import msgspec
from yarl import URL

from phalanx.errors import ConfigError
from phalanx.store.api_client import JSON
from phalanx.store.kube.credentials import Credential
from phalanx.store.kube.plain_http import usual_tls
from phalanx.store.kube.wire import Place

REPEATABLE = frozenset({"GET", "PUT", "DELETE"})
"""Requests that may be sent again when a kept connection turns out to be closed: twice is the same as once."""


class Way(NamedTuple):
    """How requests reach a server as somebody; worked out once, as long as neither changes."""

    server: str
    credential: Credential
    place: Place
    prefix: str
    """Of all paths."""
    headers: str
    """Of all requests."""

    @classmethod
    def to(cls, server: str, credential: Credential, server_name: str | None) -> Self:
        """Return the way to a server, by its URL and the name in its certificate if that is another one."""
        url = URL(server)
        tls = None if url.scheme == "http" else credential.tls or usual_tls()
        headers = {"Host": url.raw_authority, **credential.headers}
        text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if text.count("\n") != len(headers) or text.count("\r") != len(headers):
            raise ConfigError(f"{server}: the credential has more than one line; write a token or a name in one line")
        place = Place(url.raw_host or "", url.port or 443, tls, server_name)
        return cls(server, credential, place, url.raw_path.rstrip("/"), text)


class ApiRequest(NamedTuple):
    """A request, before it is known with which credential and where it is sent."""

    method: str
    target: str
    form: str
    body: bytes
    is_fenced: bool
    headers: str = f"Accept: {JSON}\r\n"
    """Of this one alone, each with an end of line."""

    @classmethod
    def of(cls, method: str, target: str, body: Any, form: str, *, is_fenced: bool) -> Self:  # Any: what becomes JSON
        """Return the request to write some object or patch, or nothing at all."""
        return cls(method, target, form, b"" if body is None else msgspec.json.encode(body), is_fenced)

    @classmethod
    def reading(cls, target: str, *, accept: str = JSON, may_compress: bool = False) -> Self:
        """Return the request to read something, in one of some forms."""
        packed = "Accept-Encoding: gzip\r\n" if may_compress else ""
        return cls("GET", target, "", b"", is_fenced=False, headers=f"Accept: {accept}\r\n{packed}")

    @property
    def is_repeatable(self) -> bool:
        """Tell whether it may be sent again when nobody knows what became of it."""
        return self.method in REPEATABLE

    def encoded(self, way: Way) -> bytes:
        """Return what is sent."""
        start = f"{self.method} {way.prefix}{self.target} HTTP/1.1\r\n{way.headers}{self.headers}"
        if self.method == "GET":
            return f"{start}\r\n".encode()
        form = f"Content-Type: {self.form}\r\n" if self.body else ""
        return f"{start}{form}Content-Length: {len(self.body)}\r\n\r\n".encode() + self.body
