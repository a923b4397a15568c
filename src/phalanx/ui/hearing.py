"""Changes of a cluster that somebody looks at: heard while somebody does, and passed on."""

from collections.abc import Callable
from typing import Protocol

from phalanx.model.watch_event import WatchEvent
from phalanx.ui.source import Listener


class Heard(Protocol):
    """Something that tells of changes: a mirror of an API server, or a store in memory."""

    def listen(self, listener: Listener) -> None:
        """Call a listener with every change."""
        ...

    def unlisten(self, listener: Listener) -> None:
        """Call it no more."""
        ...


class Hearing:
    """Listens from `begin` to `end`, and costs nothing otherwise."""

    def __init__(self, heard: Heard) -> None:
        """Do not listen yet."""
        self._heard = heard
        self._changed: Callable[[], None] | None = None

    @property
    def is_on(self) -> bool:
        """Tell whether somebody looks."""
        return self._changed is not None

    def begin(self, changed: Callable[[], None]) -> None:
        """Call `changed` with every change, and once now."""
        self.end()
        self._changed = changed
        self._heard.listen(self._note)
        changed()

    def end(self) -> None:
        """Listen no more."""
        if self._changed is not None:
            self._heard.unlisten(self._note)
            self._changed = None

    def tell(self) -> None:
        """Say that something has changed that is no object."""
        if self._changed is not None:
            self._changed()

    def _note(self, event: WatchEvent) -> None:
        self.tell()

    def also(self, listener: Listener) -> Callable[[], None]:
        """Call somebody else with every change; returns what ends that."""
        self._heard.listen(listener)
        return lambda: self._heard.unlisten(listener)
