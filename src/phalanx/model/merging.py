"""JSON merge patches: how the parts of one document take the place of those of another."""

from collections.abc import Mapping
from typing import Any


def merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the fields of another: null removes, objects are merged, everything else is replaced."""
    found = dict(document)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, Mapping):
            old = found.get(name)
            found[name] = merged(old if isinstance(old, Mapping) else {}, value)
        else:
            found[name] = value
    return found
