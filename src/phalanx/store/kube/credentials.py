"""Credentials: what proves who sends a request, renewed when it expires or is refused."""

import base64
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from phalanx.errors import ConfigError

TOKEN_SECONDS = 60.0
"""A token file is read again when what was read is older; kubelets write a new one long before the old one ends."""
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, eq=False)
class Credential:
    """What one request shows: headers, and the certificates of its connection."""

    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None


class Credentials(Protocol):
    """Where a client gets its credential, for each request."""

    async def current(self) -> Credential:
        """Return the one that holds now."""
        ...

    async def renew(self, refused: Credential) -> bool:
        """Renew a credential that the server refused (401); return whether there is another one now."""
        ...


class FixedCredentials:
    """A credential that stays: a token, a name and a password, a certificate, or nothing at all."""

    def __init__(self, headers: Mapping[str, str] | None = None, tls: ssl.SSLContext | None = None) -> None:
        """Show these headers and certificates."""
        self._credential = Credential(headers or {}, tls)

    async def current(self) -> Credential:
        """Return the only one."""
        return self._credential

    async def renew(self, refused: Credential) -> bool:
        """There is no other."""
        return False


class TokenFileCredentials:
    """A token in a file that is renewed from outside, as kubelets do for service accounts."""

    def __init__(self, path: Path, tls: ssl.SSLContext | None = None, *, place: str = "", clock: Clock = time.monotonic) -> None:
        """Name the file; `place` is what a message says about where it was named."""
        self._path, self._tls, self._place, self._clock = path, tls, place, clock
        self._token, self._read_at = "", 0.0
        self._credential = Credential()

    async def current(self) -> Credential:
        """Return the token in the file, as it was at most a minute ago."""
        if not self._token or self._clock() - self._read_at >= TOKEN_SECONDS:
            self._read()
        return self._credential

    async def renew(self, refused: Credential) -> bool:
        """Read the file again; the same token would be refused again."""
        if self._credential is refused:
            self._read()
        return self._credential is not refused

    def _read(self) -> None:
        """Read the file; while it cannot be read, the last token is all there is."""
        try:
            token, problem = self._path.read_text().strip(), "empty"
        except (OSError, UnicodeDecodeError) as trouble:
            token, problem = "", getattr(trouble, "strerror", None) or str(trouble)
        if not token and not self._token:
            raise ConfigError(f"{self._place}{self._path}: {problem}; a file with a token is needed")
        if token and token != self._token:
            self._token, self._credential = token, Credential(bearer(token), self._tls)
        self._read_at = self._clock()


def bearer(token: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {token}"}


def basic(name: str, password: str) -> dict[str, str]:
    """Return the header of a name and a password."""
    return {"Authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}
