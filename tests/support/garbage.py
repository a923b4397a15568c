"""One object of every kind that is read, with many of its fields, and the same with garbage somewhere in it.

An API server checks the fields of its own kinds; of the kinds of others it often checks nothing, and what was stored before a
definition became stricter stays. So any field but the name may hold anything.
"""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, cast

from phalanx.dialects.documents import parse_text
from phalanx.model.kinds import Document

GARBAGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308, "", "x", "-1", "1e400", "0", "nan",
    "NaN", "inf",
    "9" * 30, "5%", "101%", "-5%", "\x00\x1b[31m", "a" * 300, "(" * 40, "^(a+)+$", [], {}, [None], [{}], [[]], {"": None},
    {"x": {}},
    {"matchExpressions": [{}]}, "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-13-40T00:00:00Z",
    "root", "default",
)  # fmt: skip
ONE_OF_EACH = Path(__file__).parents[1] / "data" / "objects" / "one-of-each-kind.yaml"


def objects() -> list[dict[str, Any]]:
    """Return one object of every kind that sessions read, and of those that controllers read besides."""
    return cast(list[dict[str, Any]], parse_text(ONE_OF_EACH.read_bytes(), ONE_OF_EACH.name))  # the file holds nothing else


def title(document: Document) -> str:
    """Name the kind of an object with its API group."""
    return f"{document['kind']}.{str(document['apiVersion']).rpartition('/')[0]}".rstrip(".")


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*path, key))


KEPT = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid")}
MAPS_OF_TEXT = {("metadata", "labels"), ("metadata", "annotations")}


def with_garbage(document: Document, random: Random) -> dict[str, Any]:
    """Return an object with garbage in one place or a few, as it might be stored."""
    found = deepcopy(dict(document))
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        places = [
            path
            for path in _places(found)
            if path not in KEPT and path not in MAPS_OF_TEXT and path[:2] != ("metadata", "ownerReferences")
        ]
        path = random.choice(places)
        _put(found, path, _stored(path, deepcopy(random.choice(GARBAGE))))
    return found


def _stored(path: tuple[Any, ...], value: Any) -> Any:
    """Return garbage of the type that the API server insists on for the metadata of every object."""
    if path[0] != "metadata":
        return value
    if path[1] in ("creationTimestamp", "deletionTimestamp"):
        return value if isinstance(value, str) and value.endswith("Z") and "-13-" not in value else None
    return value if isinstance(value, str) else str(value)


def _put(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    whole: Any = document
    for part in path[:-1]:
        whole = whole[part]
    whole[path[-1]] = value
