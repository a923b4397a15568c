"""Key pairs for ssh in a simulation: that of a Job follows from its uid, so that the keys are the same every time.

Everybody can read a uid, so these protect nothing; nothing runs in a simulation that would need it.
"""

import hashlib
from functools import lru_cache

from phalanx.controllers.volcano_job.plugins.plugin import KeyPair
from phalanx.controllers.volcano_job.plugins.ssh import key_pair


# Remembered because the file of a private key holds four bytes that the library draws anew each time.
@lru_cache(maxsize=1024)
def pair_for(uid: str) -> KeyPair:
    """Return the key pair of the Job with this uid."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return key_pair(Ed25519PrivateKey.from_private_bytes(hashlib.sha256(uid.encode()).digest()), uid)
