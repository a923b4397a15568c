"""Bodies of requests in Kubernetes' protobuf, which kubectl sends to create objects, as the documents that JSON would have been.

Only reading is done here: clients that send protobuf take JSON for an answer. A body is a mark, then an envelope that names version
and kind and holds the object. Fields that are no pointers in Go are always on the wire, also with nothing in them; JSON leaves
those out, and so does a document.
"""

import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec

from phalanx.errors import ClusterError, Missing
from phalanx.model.bounds import NESTING
from phalanx.store.kubernetes_types import FieldType, fields_of, type_of
from phalanx.store.paths import NOWHERE

FORM = "application/vnd.kubernetes.protobuf"
MARK = b"k8s\0"
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
DELETION = "DeleteOptions"
"""How to delete, in the version of what is deleted."""
SIGN, WRAP = 1 << 63, 1 << 64
Value = int | bytes
Plan = Mapping[int, "tuple[str, FieldType] | Plan"]
"""The field of each number; where a part stands in the place of its holder, the fields of the part."""


def decoded(body: bytes) -> dict[str, Any]:
    """Return the object of a body."""
    if not body.startswith(MARK):
        raise ClusterError(f"the body of the request is not Kubernetes' protobuf: it does not begin with {MARK!r}")
    try:
        envelope = dict(_fields(body[len(MARK) :]))
        names = {number: _bytes(value).decode() for number, value in _fields(_bytes(envelope.get(1, b"")))}
        return _document(names.get(1, ""), names.get(2, ""), _bytes(envelope.get(2, b"")))
    except (IndexError, ValueError, struct.error, OverflowError) as problem:
        raise ClusterError(f"the body of the request cannot be read as protobuf: {problem}") from problem


def _document(version: str, kind: str, raw: bytes) -> dict[str, Any]:
    name = type_of(version, kind) if kind != DELETION else f"meta.v1.{DELETION}"
    if name is None:
        raise Missing(NOWHERE)  # every kind that is served and comes as protobuf is in the table
    return {"apiVersion": version, "kind": kind, **_message(name, raw, 1)}


# --- the wire ------------------------------------------------------------------------------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number and value of each field."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        form, value = tag & 7, 0
        if form == VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(form)
        if form == BYTES:
            size, place = _varint(data, place)
        if size is None or place + size > len(data):
            raise ValueError(f"field {tag >> 3} of form {form} does not fit")
        yield tag >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise ValueError("a number has more than ten bytes")


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where text or an object should")
    return value


# --- messages ------------------------------------------------------------------------------------------------------------


def _message(name: str, data: bytes, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    _fill(found, _plan(name), data, depth)
    return found


def _fill(found: dict[str, Any], plan: Plan, data: bytes, depth: int) -> None:
    if depth > NESTING.most:
        raise ClusterError(f"the body of the request is nested too deeply: {NESTING.text}")
    for number, value in _fields(data):
        entry = plan.get(number)
        if isinstance(entry, tuple):
            _enter(found, *entry, value, depth)
        elif entry is not None:
            _fill(found, entry, _bytes(value), depth + 1)


def _enter(found: dict[str, Any], field: str, part: FieldType, value: Value, depth: int) -> None:
    if part.is_list:
        found.setdefault(field, []).append(_single(part.name, value, depth))
    elif part.is_map:
        key, item = _pair(part, _bytes(value), depth)
        found.setdefault(field, {})[key] = item
    else:
        read = _single(part.name, value, depth)
        if part.is_pointer or (read is not None and read not in ("", 0, False)):
            found[field] = read


def _pair(part: FieldType, data: bytes, depth: int) -> tuple[str, Any]:
    entry = dict(_fields(data))
    if part.shape != "{}":  # lists as values are messages with items
        return _bytes(entry.get(1, b"")).decode(), [
            _single(part.name, item, depth) for _, item in _fields(_bytes(entry.get(2, b"")))
        ]
    return _bytes(entry.get(1, b"")).decode(), _single(part.name, entry.get(2, b""), depth)


def _single(name: str, value: Value, depth: int) -> Any:
    read = SCALARS.get(name)
    return read(value) if read is not None else _message(name, _bytes(value), depth + 1)


@cache
def _plan(name: str) -> Plan:
    found: dict[int, Any] = {}
    for field, part in fields_of(name).items():
        place = found
        for number in part.numbers[:-1]:
            place = place.setdefault(number, {})
        place[part.numbers[-1]] = (field, part)
    return found


# --- values --------------------------------------------------------------------------------------------------------------


def _text(value: Value) -> str:
    return _bytes(value).decode()


def _whole(value: Value) -> int:
    if isinstance(value, bytes):
        return 0 if not value else _signed(int.from_bytes(value, "little"))
    return _signed(value)


def _signed(value: int) -> int:
    return value - WRAP if value & SIGN else value


def _double(value: Value) -> float:
    found: float = struct.unpack("<d", _bytes(value))[0]
    return found


def _parts(value: Value) -> dict[int, Value]:
    return dict(_fields(_bytes(value)))


def _time(value: Value) -> str | None:
    parts = _parts(value)
    seconds = _whole(parts.get(1, 0))
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if parts else None


def _microtime(value: Value) -> str | None:
    whole, nanos = _time(value), _whole(_parts(value).get(2, 0))
    return None if whole is None else f"{whole.removesuffix('Z')}.{nanos // 1000:06d}Z"


def _quantity(value: Value) -> str:
    return _text(_parts(value).get(1, b""))


def _int_or_string(value: Value) -> int | str:
    parts = _parts(value)
    return _text(parts.get(3, b"")) if parts.get(1) else _whole(parts.get(2, 0))


def _any(value: Value) -> Any:  # Any: whatever JSON holds
    raw = _bytes(_parts(value).get(1, b""))
    return msgspec.json.decode(raw) if raw else None


SCALARS: Mapping[str, Callable[[Value], Any]] = {
    "string": _text, "int32": _whole, "int64": _whole, "bool": bool, "double": _double,
    "bytes": lambda value: b64encode(_bytes(value)).decode(), "time": _time, "microtime": _microtime, "quantity": _quantity,
    "intOrString": _int_or_string, "any": _any,
}  # fmt: skip
