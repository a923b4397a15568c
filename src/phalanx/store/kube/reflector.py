"""Keeps the mirror of one kind up to date: a list, then a watch from the version of the list.

A watch resumes where the last one ended. When the server has forgotten that version (410 Gone, after a compaction of etcd or a long
outage) everything is listed anew; the mirror finds out what was created, changed and deleted in between. A server that forgets
every version at once is asked less and less often.

Versions can also go back, when etcd is restored from a backup. Then the server does not know yet the version from which we want to
go on (`AHEAD`), and a new list shows a lower one than we have seen: lists are consistent reads, so nothing else makes them older.
Such a list replaces everything, also objects that look newer: those are of a past that did not happen. A restored server may also
have passed our version by the time that we are back, and answers as if nothing had happened. So whoever has lost all watches at
once lists again (`Watching`), and so does whoever is told that an object is not there which the mirror still shows (`doubt`).

A watch can also be open and silent for ever, behind a proxy that lost its other side: so bookmarks, which a server sends every
minute, are used as heartbeats, and whoever doubts what the mirror shows can ask for a list (`refresh`).
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from phalanx.errors import ClusterError, Forbidden, Gone, Missing, Unreachable
from phalanx.model.kinds import Kind
from phalanx.model.watch_event import BOOKMARK, DELETED
from phalanx.store.api_client import ApiClient, Change, Listing
from phalanx.store.kube.mirror import Mirror, Place

SHORTEST_WATCH_SECONDS = 300
TOO_SHORT_SECONDS = 1.0
"""A watch that ends sooner and without any event is taken for a fault, so that it is retried with a growing delay."""
BETWEEN_BOOKMARKS_SECONDS = 90.0
"""A watch that has sent a bookmark and then nothing for so long is taken for dead and replaced: a server sends one every minute.

Before the first one two minutes may pass, and of some quiet kinds none ever comes: there the client waits longer.
"""
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0
AHEAD = "ResourceVersionTooLarge"
"""The cause that a server gives when it is asked for a version that it has not come to yet."""
HIDDEN_SECONDS = 60.0
"""After so long a kind that we were not allowed to read is tried again."""
POLLED, BETWEEN_POLLS_SECONDS = "metrics.k8s.io", 15.0
"""An API group without watches: its objects are listed every so often."""


@dataclass(slots=True)
class Listeners:
    """Who is called when something happens to a reflector."""

    on_failure: Callable[[ClusterError, str], None]
    """With what went wrong, and what is done about it."""
    on_event: Callable[[Kind, str], None] = lambda kind, type_: None
    """With the kind and type of every event."""
    on_return: Callable[[], None] = lambda: None
    """When a watch is open again after the server could not be reached."""
    on_missing: Callable[[], None] = lambda: None
    """When the server does not serve the kind any more."""
    on_set_back: Callable[[], None] = lambda: None
    """When the server shows an earlier state than it did before, once the mirror shows it too."""


class Reflector:
    """Follows one kind of objects."""

    def __init__(
        self,
        client: ApiClient,
        mirror: Mirror,
        kind: Kind,
        *,
        report: Callable[[str], None],
        may_be_hidden: bool = False,
        only: Place | None = None,
    ) -> None:
        """Follow nothing yet; `report` is called with what goes wrong.

        A kind that may be hidden counts as synced when it is forbidden. With `only`, a single object is followed.
        """
        self._client, self._mirror, self.kind, self._report = client, mirror, kind, report
        self._may_be_hidden, self._only = may_be_hidden, only
        self.is_synced = asyncio.Event()
        self.is_following = False
        """True from the first answer of a watch or poll until an error."""
        self.listeners = Listeners(lambda problem, then: report(f"watch of {kind.resource}: {problem}; {then}"))
        self._hurry = asyncio.Event()
        self.lists = 0
        """How often everything was listed."""
        self._version = ""
        self._newest = 0
        """The highest version that the server has shown."""
        self._wait = FIRST_WAIT
        self._gone_wait = 0.0
        """After the next 410; only a watch that lasts sets it back, since each list in between is one more fault of its kind."""
        self._is_distrusted = False
        """Everything that is known is void once the next list is there."""
        self._listed_at, self._wanted_since = float("-inf"), float("-inf")
        """When the latest successful list was requested, and since when a newer one is wanted."""
        self._listening: asyncio.Timeout | None = None
        self.heard_since = float("-inf")
        """When the watch that is open was first answered."""

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._step()
            except Gone:  # the first one is no fault, and the next step lists at once
                self._version, self.is_following = "", False
                await self._sleep(self._gone_wait * random.uniform(0.5, 1.5))
                self._gone_wait = min(max(self._gone_wait * 2, FIRST_WAIT), LONGEST_WAIT)
            except Missing:
                self._version, self.is_following = "", False
                self.listeners.on_missing()
                await self._rest(self._wait)
            except ClusterError as problem:
                self.is_following = False
                if self._may_be_hidden and isinstance(problem, Forbidden):
                    await self._hide(problem)
                    continue
                if problem.cause is not None and problem.cause[0] == AHEAD:
                    self._version = ""
                pause = max(self._wait, problem.retry_after)
                self.listeners.on_failure(problem, f"tried again in {pause:.1f} s")
                await self._rest(self._wait * random.uniform(0.5, 1.5), at_least=problem.retry_after)

    async def _hide(self, problem: Forbidden) -> None:
        """Go on without the kind, and report it once."""
        if not self._mirror.is_hidden(self.kind):
            self._mirror.hidden.add(self.kind)
            self._report(f"{self.kind.resource} are left out: {problem}; allow get, list and watch of them")
        self._version = ""
        self.is_synced.set()
        await asyncio.sleep(HIDDEN_SECONDS)

    async def _rest(self, seconds: float, *, at_least: float = 0.0) -> None:
        """Wait, longer the next time, or until `hurry` says that the server is back; never less than the server asked for."""
        self._wait = min(self._wait * 2, LONGEST_WAIT)
        if at_least:
            await asyncio.sleep(at_least)
        if await self._sleep(max(seconds - at_least, 0.0)):
            self._wait = FIRST_WAIT

    async def _sleep(self, seconds: float) -> bool:
        """Wait; tell whether `hurry` has ended it."""
        is_hurried = False
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                is_hurried = await self._hurry.wait()
        self._hurry.clear()
        return is_hurried

    def is_fresh(self, since: float) -> bool:
        """Tell whether the latest list was requested at or after a moment of the monotonic clock."""
        return self._listed_at >= since

    def refresh(self, since: float) -> None:
        """List anew unless that was done since a moment: a watch can be open and silent, which nothing shows from outside."""
        self._wanted_since = max(self._wanted_since, since)
        if self._listening is not None and not self._listening.expired() and not self.is_fresh(since):
            self._listening.reschedule(asyncio.get_running_loop().time())

    def distrust(self) -> None:
        """List anew, and let nothing be newer than that: another kind has shown that the server was set back.

        What we know from the answers to our own writes may be undone by that, and no version of this kind tells.
        """
        self._is_distrusted = True
        self.refresh(asyncio.get_running_loop().time())

    def hurry(self) -> None:
        """Retry at once if a retry is waiting: the server is back."""
        if not self.is_following:
            self._hurry.set()

    def _note_contact(self) -> None:
        if not self.is_following:
            self.is_following = True
            self.listeners.on_return()

    async def _step(self) -> None:
        while not self._version or not self.is_fresh(self._wanted_since):
            await self._list()
        if self.kind.group == POLLED:
            self._note_contact()
            self._version = ""
            await asyncio.sleep(BETWEEN_POLLS_SECONDS)
        else:
            await self._watch()

    @property
    def _namespace(self) -> str:
        return "" if self._only is None else self._only[0]

    @property
    def _fields(self) -> str:
        return "" if self._only is None else f"metadata.name={self._only[1]}"

    async def _list(self) -> None:
        begun = asyncio.get_running_loop().time()  # not after the answer: a list need not show what happened while it was under way
        if not self._is_distrusted:  # answers to our own writes count too
            self._newest = max(self._newest, self._mirror.newest(self.kind))
        listing = await self._client.list(self.kind, self._namespace, fields=self._fields)
        begun = begun if listing.begun is None else min(begun, listing.begun)
        self._mirror.hidden.discard(self.kind)
        was_set_back = self._replace(listing, is_void=self._is_distrusted and begun >= self._wanted_since)
        self._version, self._wait, self.lists = listing.version, FIRST_WAIT, self.lists + 1
        self._newest = _number(listing.version)
        self._listed_at = begun
        self.is_synced.set()
        if was_set_back:
            self._report(f"{self.kind.resource}: the server was set back to an earlier state, and so is what we know of it")
            self.listeners.on_set_back()

    def _replace(self, listing: Listing, *, is_void: bool) -> bool:
        """Let the mirror show a list, and nothing else if all that it knows is void; tell whether the server was set back."""
        goes_back, found = _number(listing.version) < self._newest, False
        if self._only is None:
            found = self._mirror.replace(
                self.kind, listing.items, version=listing.version, was_set_back=goes_back or is_void
            )  # fmt: skip
        else:
            self._mirror.replace_one(self.kind, self._only, listing.items, was_set_back=goes_back or is_void)
        self._is_distrusted = self._is_distrusted and not is_void
        return goes_back or (found and not is_void)

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        begun, before, has_bookmarks = clock(), self._version, False
        # Random, so that the watches of all kinds and replicas do not end, and begin anew, at the same time.
        seconds = SHORTEST_WATCH_SECONDS + random.randrange(SHORTEST_WATCH_SECONDS)
        watch = self._client.changes(self.kind, self._namespace, since=self._version, seconds=seconds, fields=self._fields)
        try:
            async with asyncio.timeout(None) as self._listening, aclosing(watch) as batches:
                self.heard_since = float("inf")
                async for changes in batches:
                    self.heard_since = min(self.heard_since, clock())
                    self._note_contact()
                    for change in changes:
                        self._on_change(change)
                    has_bookmarks = has_bookmarks or any(change.type == BOOKMARK for change in changes)
                    if has_bookmarks and self.is_fresh(self._wanted_since):
                        self._listening.reschedule(clock() + BETWEEN_BOOKMARKS_SECONDS)
        except TimeoutError:
            return  # `refresh` wants a list, or no bookmark came: the next step lists or watches
        finally:
            self._listening = None
            if clock() - begun > LONGEST_WAIT:
                self._gone_wait = 0.0
        if self._version == before and clock() - begun < TOO_SHORT_SECONDS:
            raise Unreachable("the server ended it at once")

    def _on_change(self, change: Change) -> None:
        if change.type == DELETED:
            self._mirror.remove(self.kind, change.object)
        elif change.type != BOOKMARK:
            self._mirror.put(self.kind, change.object)
        self._version, self._wait = change.object["metadata"]["resourceVersion"], FIRST_WAIT
        self._newest = max(self._newest, _number(self._version))
        self.listeners.on_event(self.kind, change.type)


def _number(version: str) -> int:
    """Return a version as a number; metrics have none."""
    return int(version) if version.isdigit() else 0
