"""Key pairs for ssh as OpenSSH writes them. Where a key comes from is the business of whoever makes the pair: the system's
randomness on a real cluster (`live/sshkeys.py`), the uid of the Job in a simulation (`sim/sshkeys.py`).
"""

from typing import TYPE_CHECKING

from phalanx.controllers.volcano_job.plugins.plugin import KeyPair

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def written(key: "Ed25519PrivateKey", comment: str) -> KeyPair:
    """Return both files of a key, the private one without a passphrase."""
    # Imported here because it takes some 80 ms, and few clusters have Jobs that need it.
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private.decode(), f"{public.decode()} {comment}\n")
