"""SSL contexts from certificates in files or in text: whom we trust, and the client certificate that we present."""

import base64
import binascii
import ssl
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from phalanx.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose certificates are trusted: those of one authority (in PEM), of the authorities of this machine, or all."""

    authority: str = ""
    is_blind: bool = False
    place: str = ""
    """Where this was configured, for messages."""

    def context(self, certificate: str = "", key: str = "") -> ssl.SSLContext:
        """Return the context of connections on which we show a certificate, if there is one (in PEM)."""
        tls = self._trusting()
        # From Python 3.13 on it is set, and refuses authorities without a key identifier, as many clusters have them.
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.is_blind:
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if certificate or key:
            self._show(tls, certificate, key)
        return tls

    def _trusting(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cadata=self.authority or None)
        except ssl.SSLError as problem:
            raise ConfigError(
                f"{self.place}: certificate-authority: no certificate in it ({_reason(problem)}); write one in PEM"
            ) from problem

    def _show(self, tls: ssl.SSLContext, certificate: str, key: str) -> None:
        """Load a certificate and its key; Python takes them from a file only."""
        for name, text in (("client-certificate", certificate), ("client-key", key)):
            if not text:
                raise ConfigError(f"{self.place}: {name}: missing; a certificate and its key go together")
        with NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{certificate}\n{key}\n")
            file.flush()
            try:
                tls.load_cert_chain(file.name, password=self._refuse_password)
            except ssl.SSLError as problem:
                raise ConfigError(
                    f"{self.place}: client-certificate and client-key: not a certificate with its key in PEM ({_reason(problem)})"
                ) from problem

    def _refuse_password(self) -> str:
        raise ConfigError(f"{self.place}: client-key: has a password; write the key without one")


def pem(data: str, path: str, place: str) -> str:
    """Return a certificate or key from base64 in the kubeconfig, or else from the file that it names."""
    if not data:
        return _text(Path(path), place) if path else ""
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as problem:
        raise ConfigError(
            f"{place}-data: not base64 of a text in PEM ({problem}); write it as 'base64 -w0 FILE' prints it"
        ) from problem


def _text(path: Path, place: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not a text in PEM"
        raise ConfigError(f"{place}: {path}: {reason}; name a file in PEM that can be read") from problem


def _reason(problem: ssl.SSLError) -> str:
    return (problem.reason or str(problem)).replace("_", " ").lower()
