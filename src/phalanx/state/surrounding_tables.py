"""What filters read besides nodes, tasks and gangs, as events change it: tables that snapshots share until one of them changes.

A table is copied when a snapshot is taken after a change, once, however many changes there were: ten thousand volumes that are
listed one after the other cost one copy, not ten thousand.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from phalanx.state.snapshot import Surroundings

NOTHING: Mapping[str, Any] = {}


class SurroundingTables:
    """The tables of a cluster."""

    def __init__(self) -> None:
        """Begin with empty ones."""
        self._tables: dict[str, dict[str, Any]] = {}  # Any: each table has entries of its own kind
        self._changed: set[str] = set()
        self._shared = Surroundings()

    def table(self, name: str) -> Mapping[str, Any]:  # Any: see above
        """Return a table as it is now; read it before the next event."""
        return self._tables.get(name, NOTHING)

    def put(self, name: str, key: str, value: Any) -> None:  # Any: see above
        """Set an entry of a table."""
        self._tables.setdefault(name, {})[key] = value
        self._changed.add(name)

    def drop(self, name: str, key: str) -> bool:
        """Remove an entry of a table; tell whether it was there."""
        if self._tables.get(name, {}).pop(key, None) is None:
            return False
        self._changed.add(name)
        return True

    def note(self, **values: Any) -> None:  # Any: fields of `Surroundings`
        """Set what is no table."""
        self._shared = replace(self._shared, **values)

    def shared(self) -> Surroundings:
        """Return all tables as nobody changes them."""
        if self._changed:
            self._shared = replace(self._shared, **{name: _copied(name, self._tables[name]) for name in self._changed})
            self._changed.clear()
        return self._shared


def _copied(name: str, entries: dict[str, Any]) -> Any:  # Any: see above
    return frozenset(entries) if name == "capacity_drivers" else dict(entries)
