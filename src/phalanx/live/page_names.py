"""What a server is called: the names and addresses that its certificate is for, which a browser has checked before it asks."""

from pathlib import Path

from cryptography import x509

from phalanx.errors import ConfigError


def names_in(certificate: Path) -> tuple[str, ...]:
    """Return the DNS names of a certificate in PEM, without wildcards."""
    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        return ()
    except (OSError, ValueError) as problem:
        raise ConfigError(f"{certificate}: no certificate in PEM: {problem}") from problem
    return tuple(name.lower() for name in names if "*" not in name)
