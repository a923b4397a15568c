"""What happened, in order: for watches that start in the past, and for those that follow."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from phalanx.errors import Gone
from phalanx.store.kinds import Document, Kind

ADDED, MODIFIED, DELETED, BOOKMARK = "ADDED", "MODIFIED", "DELETED", "BOOKMARK"
MOST_EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one object."""

    version: int
    type: str
    kind: Kind
    object: Document


class Watch:
    """The changes since a point; take them when you like."""

    def __init__(self, wants: Callable[[Event], bool]) -> None:
        """Begin with nothing seen."""
        self.wants = wants
        self._events: deque[Event] = deque()

    def take(self) -> Iterator[Event]:
        """Yield what has happened since the last call."""
        while self._events:
            yield self._events.popleft()

    def add(self, event: Event) -> None:
        """Note an event, if it is of a kind that was asked for."""
        if event.type == BOOKMARK or self.wants(event):
            self._events.append(event)


class History:
    """Keeps the last events; older ones are gone, as they are after etcd was compacted."""

    def __init__(self) -> None:
        """Begin at version 0."""
        self.version = 0
        self._oldest = 0
        self._events: deque[Event] = deque()
        self._watches: list[Watch] = []

    def next_version(self) -> int:
        """Return the version of the next change."""
        self.version += 1
        return self.version

    def add(self, event: Event) -> None:
        """Note an event and tell those who watch."""
        self._events.append(event)
        if len(self._events) > MOST_EVENTS:
            self._oldest = self._events.popleft().version
        for watch in self._watches:
            watch.add(event)

    def compact(self, version: int) -> None:
        """Forget everything up to a version."""
        while self._events and self._events[0].version <= version:
            self._events.popleft()
        self._oldest = max(self._oldest, version)

    def watch(self, wants: Callable[[Event], bool], since: int) -> Watch:
        """Follow the changes after a version."""
        self.check(since)
        watch = Watch(wants)
        for event in self._events:
            if event.version > since:
                watch.add(event)
        self._watches.append(watch)
        return watch

    def check(self, since: int) -> None:
        """Raise unless everything after a version is still known."""
        if since < self._oldest:
            raise Gone(f"too old resource version: {since} ({self._oldest})")

    def bookmark(self, watch: Watch, kind: Kind) -> None:
        """Tell a watch how far it has come."""
        mark = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"resourceVersion": str(self.version)}}
        watch.add(Event(self.version, BOOKMARK, kind, mark))

    def leave(self, watch: Watch) -> None:
        """Stop following."""
        if watch in self._watches:
            self._watches.remove(watch)
