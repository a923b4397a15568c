"""The latest changes in order, for watches that start at an earlier version and for those that follow."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import takewhile

from phalanx.errors import Gone
from phalanx.model.kinds import Kind
from phalanx.model.watch_event import ADDED, DELETED, MODIFIED, WatchEvent
from phalanx.store.selection import EVERYTHING, Selection

MOST_EVENTS = 20_000


class Watch:
    """The changes of a kind since a version, queued until they are taken."""

    def __init__(self, kind: Kind, chosen: Selection = EVERYTHING) -> None:
        """Watch a kind; History.watch feeds it."""
        self.kind, self.chosen = kind, chosen
        self.wake: Callable[[], None] = lambda: None
        """Called when there is something to take."""
        self._events: deque[WatchEvent] = deque()

    @property
    def has_news(self) -> bool:
        """Tell whether there is something to take."""
        return bool(self._events)

    def take(self) -> Iterator[WatchEvent]:
        """Yield the changes since the last call."""
        while self._events:
            yield self._events.popleft()

    def add(self, event: WatchEvent) -> None:
        """Queue a change if it concerns what is watched."""
        seen = self._seen(event)
        if seen is not None:
            self._events.append(seen)
            self.wake()

    def _seen(self, event: WatchEvent) -> WatchEvent | None:
        """Return the change as the selection sees it: an object that begins to match is ADDED, one that ceases to match DELETED."""
        if event.kind is not self.kind:
            return None
        was = event.before is not None and self.chosen.wants(event.before)
        will_be = event.type != DELETED and self.chosen.wants(event.object)
        if not was and not will_be:
            return None
        change = DELETED if not will_be else MODIFIED if was else ADDED
        return event if change == event.type else replace(event, type=change)


class History:
    """Keeps the latest changes; older ones are gone, as they are after a compaction of etcd."""

    def __init__(self) -> None:
        """Begin at version 0."""
        self.version = 0
        self._oldest = 0
        self._events: deque[WatchEvent] = deque()
        self._watches: dict[Kind, list[Watch]] = {}

    def next_version(self) -> int:
        """Return the version of the next change."""
        self.version += 1
        return self.version

    def add(self, event: WatchEvent) -> None:
        """Keep a change and pass it to the watches."""
        self._events.append(event)
        if len(self._events) > MOST_EVENTS:
            self._oldest = self._events.popleft().version
        for watch in self._watches.get(event.kind, ()):
            watch.add(event)

    def compact(self, version: int) -> None:
        """Forget everything up to a version."""
        while self._events and self._events[0].version <= version:
            self._events.popleft()
        self._oldest = max(self._oldest, version)

    def go_back(self, version: int) -> None:
        """Forget everything, and count on from an earlier version; those who watch are woken, and miss what is undone."""
        self._events.clear()
        self.version = self._oldest = version
        for watch in (watch for watches in self._watches.values() for watch in watches):
            watch.wake()

    def watch(self, watch: Watch, since: int) -> Watch:
        """Feed a watch with the changes after a version and all later ones."""
        for event in self.since(since):
            watch.add(event)
        self._watches.setdefault(watch.kind, []).append(watch)
        return watch

    def since(self, version: int) -> list[WatchEvent]:
        """Return the changes after a version."""
        self.check(version)
        return list(takewhile(lambda event: event.version > version, reversed(self._events)))[::-1]

    def check(self, since: int) -> None:
        """Raise unless everything after a version is still known."""
        if since < self._oldest:
            raise Gone(f"too old resource version: {since} ({self._oldest})")

    def leave(self, watch: Watch) -> None:
        """Feed a watch no longer."""
        watches = self._watches.get(watch.kind, [])
        if watch in watches:
            watches.remove(watch)
