"""Objects read as structs, also by several threads at once.

msgspec finds out what a struct looks like when it is used for the first time. A thread that uses it before that is finished crashes
the process, so it is found out by one thread at a time, for a struct and all structs in it.
"""

from threading import Lock
from typing import Any, TypeVar

import msgspec

Read = TypeVar("Read")
_KNOWN: set[object] = set()
_FINDING_OUT = Lock()


def read_as(value: Any, kind: type[Read]) -> Read:  # Any: what JSON has
    """Return a value as a struct; what it is not is a `msgspec.ValidationError`."""
    if kind not in _KNOWN:
        _find_out(kind)
    return msgspec.convert(value, kind)


def decode_as(text: str | bytes, kind: type[Read]) -> Read:
    """Return JSON as a struct, or as what holds some."""
    if kind not in _KNOWN:
        _find_out(kind)
    return msgspec.json.decode(text, type=kind)


def _find_out(kind: object) -> None:
    with _FINDING_OUT:
        msgspec.json.Decoder(kind)
        _KNOWN.add(kind)
