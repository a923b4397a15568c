"""Key pairs for ssh: Ed25519 by the book (RFC 8032), written as OpenSSH does.

The pair of a Job follows from its uid alone, so that a simulation comes out the same every time. That is no secret: on a cluster
with something to protect, `pair_of` takes 32 bytes that nobody else knows.
"""

import hashlib
from base64 import b64encode
from functools import lru_cache

from phalanx.controllers.volcano_job.plugins.plugin import KeyPair

FIELD = 2**255 - 19
CURVE = -121665 * pow(121666, -1, FIELD) % FIELD
Point = tuple[int, int, int, int]
"""Extended coordinates: x and y times z, z, and x times y times z."""
NEUTRAL: Point = (0, 1, 1, 0)
KIND, MAGIC = b"ssh-ed25519", b"openssh-key-v1\0"
BLOCK_BYTES, LINE_LENGTH = 8, 70


@lru_cache(maxsize=1024)
def pair_for(uid: str) -> KeyPair:
    """Return the key pair of the Job with this uid."""
    return pair_of(hashlib.sha256(uid.encode()).digest(), comment=uid)


def pair_of(seed: bytes, comment: str = "") -> KeyPair:
    """Return the key pair of a seed of 32 bytes."""
    public = public_key(seed)
    blob = _text(KIND) + _text(public)
    return KeyPair(_private(seed, public, comment), f"{KIND.decode()} {b64encode(blob).decode()} {comment}".rstrip() + "\n")


def public_key(seed: bytes) -> bytes:
    """Return the public key of a seed."""
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    x, y, z, _ = _times(_base(), scalar)
    inverse = pow(z, -1, FIELD)
    return (y * inverse % FIELD | (x * inverse % FIELD & 1) << 255).to_bytes(32, "little")


def _base() -> Point:
    """Return the point with y = 4/5 and an even x."""
    y = 4 * pow(5, -1, FIELD) % FIELD
    square = (y * y - 1) * pow(CURVE * y * y + 1, -1, FIELD) % FIELD
    x = pow(square, (FIELD + 3) // 8, FIELD)
    x = x if (x * x - square) % FIELD == 0 else x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD
    x = FIELD - x if x & 1 else x
    return x, y, 1, x * y % FIELD


def _plus(one: Point, other: Point) -> Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % FIELD
    b = (one[1] + one[0]) * (other[1] + other[0]) % FIELD
    c, d = 2 * one[3] * other[3] * CURVE % FIELD, 2 * one[2] * other[2] % FIELD
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % FIELD, g * h % FIELD, f * g % FIELD, e * h % FIELD


def _times(point: Point, scalar: int) -> Point:
    total = NEUTRAL
    while scalar:
        total = _plus(total, point) if scalar & 1 else total
        point, scalar = _plus(point, point), scalar >> 1
    return total


def _text(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _private(seed: bytes, public: bytes, comment: str) -> str:
    """Return the file of a private key without a passphrase."""
    check = hashlib.sha256(seed).digest()[:4]
    inner = check * 2 + _text(KIND) + _text(public) + _text(seed + public) + _text(comment.encode())
    inner += bytes(range(1, -len(inner) % BLOCK_BYTES + 1))
    outer = MAGIC + _text(b"none") * 2 + _text(b"") + (1).to_bytes(4, "big") + _text(_text(KIND) + _text(public)) + _text(inner)
    text = b64encode(outer).decode()
    lines = (text[start : start + LINE_LENGTH] for start in range(0, len(text), LINE_LENGTH))
    return "\n".join(("-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""))
