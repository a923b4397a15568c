"""The certificate that the port of a running scheduler shows, read again when its files change.

Files are polled by content, as the configuration is (`reload.py`): a mounted Secret changes by a link that points elsewhere. A
certificate and a key that do not belong together, as between two writes, change nothing: the last good pair stays in force.
"""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

from phalanx.errors import ConfigError

POLL_SECONDS = 5.0
NO_PASSWORD = "the key has a password; write it without one"


class ServingCertificate:
    """A certificate and its key, each in a file in PEM."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read the files; a mistake in them is an error now."""
        self._files = (certificate, key)
        self._seen, self._said = self._read(), ""
        self.context = self._loaded()
        """For every connection from now on; those that are open keep what they have."""
        self.on_reload: list[Callable[[bool, str], None]] = []
        """Called with whether new files are in force, and a message, whenever they have changed."""

    def poll(self) -> None:
        """Look whether the files have changed, and show what is in them now if it is right; a mistake is reported once."""
        try:
            found = self._read()
            if found == self._seen:
                return
            self._seen = found
            self._loaded()  # a mistake must not leave half of it in the context that is in use
            self._load(self.context)
        except ConfigError as problem:
            self._report(False, f"{problem}; the certificate of before stays in force")
        else:
            self._report(True, f"{self._files[0]}: in force from now on")

    def _report(self, is_applied: bool, message: str) -> None:
        is_news, self._said = is_applied or message != self._said, message
        for listener in self.on_reload if is_news else ():
            listener(is_applied, message)

    def _read(self) -> tuple[bytes, ...]:
        return tuple(map(_content, self._files))

    def _loaded(self) -> ssl.SSLContext:
        """Return a new context, in which nothing older than TLS 1.2 is spoken."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        certificate, key = self._files
        try:
            context.load_cert_chain(certificate, key, password=_refuse_password)
        except (OSError, ssl.SSLError) as problem:
            reason = (getattr(problem, "reason", None) or str(problem)).replace("_", " ").lower()
            raise ConfigError(f"{certificate} and {key}: not a certificate with its key in PEM ({reason})") from problem

    async def follow(self, *, every_seconds: float = POLL_SECONDS) -> None:
        """Poll until cancelled."""
        while True:
            await asyncio.sleep(every_seconds)
            self.poll()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}; name a file in PEM") from problem


def _refuse_password() -> str:
    raise ConfigError(NO_PASSWORD)
