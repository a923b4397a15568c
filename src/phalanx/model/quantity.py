"""Kubernetes resource quantities as exact whole numbers.

A quantity is a decimal number with an optional suffix: binary (Ki, Mi, Gi, Ti, Pi, Ei), decimal (n, u, m, k, M, G, T, P, E)
or an exponent (e3, E3). Nothing here rounds except the last step, and that one rounds away from zero as Kubernetes does.
"""

import re
from fractions import Fraction
from functools import lru_cache

from phalanx.errors import SnapshotError

LARGEST = 1 << 58
"""Amounts above this are refused: sums over the pods of one node must stay inside 64 bits."""
LONGEST = 100
"""No amount of a machine takes more characters; Python refuses to read numbers of thousands of digits."""

_SCALE = {
    "": Fraction(1),
    **{suffix: Fraction(10) ** power for suffix, power in zip("num", (-9, -6, -3), strict=True)},
    **{suffix: Fraction(10) ** power for suffix, power in zip("kMGTPE", range(3, 21, 3), strict=True)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_NUMBER = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:[eE](?P<power>[+-]?\d{1,3})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)", re.ASCII
)


@lru_cache(maxsize=65536)
def parse_quantity(text: str) -> Fraction:
    """Return the exact value of a quantity such as ``1500m``, ``2Gi`` or ``1e3``."""
    match = _NUMBER.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        raise SnapshotError(f"quantity {text!r}: not a number with a suffix; write for example '2', '500m', '4Gi' or '1e3'")
    scale = Fraction(10) ** int(match["power"]) if match["power"] else _SCALE[match["suffix"] or ""]
    return Fraction(match["number"]) * scale


def to_units(quantity: object) -> int:
    """Return the quantity in whole units, rounded up."""
    return _bounded(_whole(_text(quantity), 1), quantity)


def to_milli(quantity: object) -> int:
    """Return the quantity in thousandths, rounded up."""
    return _bounded(_whole(_text(quantity), 1000), quantity)


def _text(quantity: object) -> str:
    if isinstance(quantity, str):
        return quantity
    if isinstance(quantity, bool) or not isinstance(quantity, int | float):
        raise SnapshotError(f"quantity {quantity!r}: expected a number or a string such as '500m'")
    return repr(quantity)


@lru_cache(maxsize=65536)
def _whole(text: str, parts: int) -> int:
    """Return a quantity in such parts of a unit; a cluster writes few different ones, and fractions are slow."""
    value = parse_quantity(text) * parts
    return -(-value.numerator // value.denominator) if value >= 0 else value.numerator // value.denominator


def _bounded(amount: int, quantity: object) -> int:
    if abs(amount) > LARGEST:
        raise SnapshotError(f"quantity {quantity!r}: larger than any machine; the limit is {LARGEST}")
    return amount
