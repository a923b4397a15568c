"""The certificate of the port: a new one is shown without a restart, a broken one is not."""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from phalanx.errors import ConfigError
from phalanx.live.serving_certificate import ServingCertificate
from phalanx.web.server import serving

AUTHORITY = trustme.CA()


def write(folder: Path, name: str) -> tuple[Path, Path]:
    made = AUTHORITY.issue_cert(name, "127.0.0.1")
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    return certificate, key


def shown(port: int) -> set[str]:
    """Return the names in the certificate that a port shows to those who trust the authority."""
    tls = ssl.create_default_context()
    AUTHORITY.configure_trust(tls)
    with socket.create_connection(("127.0.0.1", port)) as plain, tls.wrap_socket(plain, server_hostname="127.0.0.1") as safe:
        found: Any = safe.getpeercert()  # Any: ssl's own type says less than its documentation
    return {name for kind, name in found["subjectAltName"] if kind == "DNS"}


def test_a_certificate_is_read_again_when_it_changes_and_a_broken_one_is_left(tmp_path: Path) -> None:
    files = write(tmp_path, "old.example")
    certificate = ServingCertificate(*files)
    told: list[tuple[bool, str]] = []
    certificate.on_reload.append(lambda is_applied, message: told.append((is_applied, message)))

    async def look() -> list[set[str]]:
        found = []
        async with serving(web.Application(), tls=certificate.context) as address:
            assert address.startswith("https://127.0.0.1:")
            port = int(address.rpartition(":")[2])
            for change in (None, "broken", "gone", "new.example"):
                if change == "broken":
                    files[1].write_bytes(trustme.CA().issue_cert("other.example").private_key_pem.bytes())
                elif change == "gone":
                    files[0].unlink()
                elif change:
                    write(tmp_path, change)
                for _ in range(3):
                    certificate.poll()
                found.append(await asyncio.to_thread(shown, port))
        return found

    assert asyncio.run(look()) == [{"old.example"}, {"old.example"}, {"old.example"}, {"new.example"}]
    assert [is_applied for is_applied, _ in told] == [False, False, True]
    assert "; the certificate of before stays in force" in told[0][1]


def test_nothing_older_than_tls_1_2_is_spoken(tmp_path: Path) -> None:
    assert ServingCertificate(*write(tmp_path, "a.example")).context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_files_that_do_not_go_together_are_refused_at_the_start(tmp_path: Path) -> None:
    certificate, key = write(tmp_path, "a.example")
    key.write_bytes(trustme.CA().issue_cert("b.example").private_key_pem.bytes())
    with pytest.raises(ConfigError, match=r"tls\.crt and .*tls\.key: not a certificate with its key in PEM"):
        ServingCertificate(certificate, key)
