"""Certificates for what we serve in tests, of an authority that nobody else trusts."""

import ssl
from pathlib import Path

import trustme

AUTHORITY = trustme.CA()


def certificate(folder: Path, authority: trustme.CA, host: str = "127.0.0.1") -> list[str]:
    """Write a certificate and its key, and return the options that name them."""
    made, chain, key = authority.issue_cert(host), folder / "tls.crt", folder / "tls.key"
    chain.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    return ["--tls-cert-file", str(chain), "--tls-private-key-file", str(key)]


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Return whom to trust: this authority too."""
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    return tls
