"""Key pairs for ssh on a real cluster: from the randomness of the system, so that nobody can compute them."""

from phalanx.controllers.volcano_job.plugins.plugin import KeyPair
from phalanx.controllers.volcano_job.plugins.ssh import key_pair


def new_pair(uid: str) -> KeyPair:
    """Return a new key pair for the Job with this uid, another one at every call."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return key_pair(Ed25519PrivateKey.generate(), uid)
