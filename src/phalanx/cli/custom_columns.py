"""`-o custom-columns=TITLE:PATH,...` and `--sort-by=PATH`, as kubectl reads them."""

import re
from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any, NamedTuple

from phalanx.cli.jsonpath import check_path, text_of, values_at
from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.kinds import Document
from phalanx.model.quantity import parse_quantity
from phalanx.web.columns import TableColumn

NOTHING = "<none>"
_COLUMN = re.compile(r",(?=[^,:\[\]]+:)")
"""Between two columns; commas inside of a path stay."""
_NUMBER = re.compile(r"(\d+)")


def custom_columns(spec: str) -> list[TableColumn]:
    """Return the columns of a specification such as ``NAME:.metadata.name,NODE:.spec.nodeName``."""
    if not spec:
        raise ConfigError("custom-columns: no columns given; write for example custom-columns=NAME:.metadata.name")
    return [_column(part) for part in _COLUMN.split(spec)]


def _column(part: str) -> TableColumn:
    title, colon, path = part.partition(":")
    if not (title and colon and path):
        raise ConfigError(f"custom-columns: {part!r} is no column; write TITLE:PATH, such as NAME:.metadata.name")
    check_path(path)
    return TableColumn(title, lambda item: ",".join(map(text_of, values_at(path, item))) or NOTHING)


def sorted_by(path: str, items: Sequence[Document]) -> list[Document]:
    """Return objects ordered by a field: numbers and quantities by their value, texts with the numbers in them in order.

    Objects without the field come first, as in kubectl.
    """
    check_path(path)
    found = [(_sort_key(next(iter(values_at(path, item)), None)), item) for item in items]
    if items and all(key is None for key, _ in found):
        raise ConfigError(f"--sort-by: no object has a field {path!r}; write a path such as .metadata.creationTimestamp")
    return [item for _, item in sorted(found, key=lambda each: _by_key(each[0]))]


class _SortKey(NamedTuple):
    """A value as a number, if it is one, and as a text."""

    number: float | None
    text: list[tuple[bool, int, str]]


def _sort_key(value: Any) -> _SortKey | None:  # Any: whatever stands in the object
    return None if value is None else _SortKey(_number(value), _natural(text_of(value)))


def _compared(left: _SortKey | None, right: _SortKey | None) -> int:
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if left.number is not None and right.number is not None:
        return (left.number > right.number) - (left.number < right.number)
    return (left.text > right.text) - (left.text < right.text)


_by_key = cmp_to_key(_compared)


def _number(value: Any) -> float | None:  # Any: as above
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(parse_quantity(value)) if isinstance(value, str) else None
    except SnapshotError:
        return None


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """Return a key by which node-10 comes after node-9."""
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in _NUMBER.split(text) if part]
