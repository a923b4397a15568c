"""Keeps a mirror in line with an API server: one list, then a watch; a new list when the server has forgotten where we were."""

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing, suppress
from time import monotonic

from phalanx.errors import ClusterError, Forbidden, Gone, Missing, Unreachable
from phalanx.model.kinds import Kind
from phalanx.store.kube.client import Client, WatchEvent
from phalanx.store.kube.mirror import Mirror, Place
from phalanx.store.watch_history import BOOKMARK, DELETED

SHORTEST_WATCH_SECONDS = 300
TOO_SHORT_SECONDS = 1.0
"""A watch that ends sooner and told nothing is taken for a fault, so that nobody asks for one after the other."""
BETWEEN_BOOKMARKS_SECONDS = 90.0
"""A watch that has told a bookmark and then nothing for so long is taken for dead, and replaced: a server sends one every minute.

Before the first one two minutes may pass, and of some quiet kinds none ever comes: there the client waits longer.
"""
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0
HIDDEN_SECONDS = 60.0
"""After so long we try again whether somebody lets us look."""
POLLED, BETWEEN_POLLS_SECONDS = "metrics.k8s.io", 15.0
"""A group whose objects nobody can watch."""


class Reflector:
    """Follows one kind."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        kind: Kind,
        *,
        report: Callable[[str], None],
        may_be_hidden: bool = False,
        only: Place | None = None,
    ) -> None:
        """Follow nothing yet; `report` is told what goes wrong.

        A kind that may be hidden holds nobody up when it is forbidden. With `only`, one object is followed, and others are left
        as they are.
        """
        self._client, self._mirror, self.kind, self._report = client, mirror, kind, report
        self._may_be_hidden, self._only = may_be_hidden, only
        self.is_synced = asyncio.Event()
        self.is_following = False
        """While we hear what the server tells."""
        self.returned: Callable[[], None] = lambda: None
        """Told when we hear the server again, after it was gone for us."""
        self.failed: Callable[[ClusterError, str], None] = lambda problem, then: report(
            f"watch of {kind.resource}: {problem}; {then}"
        )
        """Told what went wrong, and what is done about it."""
        self.missed: Callable[[], None] = lambda: None
        """Told when the server does not know the kind any more."""
        self._hurry = asyncio.Event()
        self.lists = 0
        """How often everything was listed."""
        self.heard: Callable[[Kind, str], None] = lambda kind, type_: None
        """Told of the kind and type of every event."""
        self._version = ""
        self._wait = FIRST_WAIT
        self._listed_at, self._wanted_since = float("-inf"), float("-inf")
        """When the last list that came through was asked for, and the moment after which one is wanted."""
        self._listening: asyncio.Timeout | None = None

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._step()
            except Gone:
                self._version = ""
                self.is_following = False
            except Missing:
                self._version, self.is_following = "", False
                self.missed()
                await self._rest(self._wait)
            except ClusterError as problem:
                self.is_following = False
                if self._may_be_hidden and isinstance(problem, Forbidden):
                    await self._hide(problem)
                    continue
                self.failed(problem, f"tried again in {self._wait:.1f} s")
                await self._rest(self._wait * random.uniform(0.5, 1.5))

    async def _hide(self, problem: Forbidden) -> None:
        """Go on without the kind, and say so once."""
        if not self._mirror.is_hidden(self.kind):
            self._mirror.hidden.add(self.kind)
            self._report(f"{self.kind.resource} are left out: {problem}; allow get, list and watch of them")
        self._version = ""
        self.is_synced.set()
        await asyncio.sleep(HIDDEN_SECONDS)

    async def _rest(self, seconds: float) -> None:
        """Wait, longer the next time, unless somebody knows that the server is back."""
        self._wait = min(self._wait * 2, LONGEST_WAIT)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
                self._wait = FIRST_WAIT
        self._hurry.clear()

    def is_fresh(self, since: float) -> bool:
        """Tell whether we know what was so at a moment of the monotonic clock."""
        return self._listed_at >= since

    def refresh(self, since: float) -> None:
        """List anew unless that was done since a moment: a watch can be open and tell nothing, and nobody can see that it does."""
        self._wanted_since = max(self._wanted_since, since)
        if self._listening is not None and not self._listening.expired() and not self.is_fresh(since):
            self._listening.reschedule(asyncio.get_running_loop().time())

    def hurry(self) -> None:
        """Try again at once, if we wait: the server is back."""
        if not self.is_following:
            self._hurry.set()

    def _note_contact(self) -> None:
        if not self.is_following:
            self.is_following = True
            self.returned()

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
        begun = monotonic()
        listing = await self._client.list(self.kind, self._namespace, fields=self._fields)
        self._mirror.hidden.discard(self.kind)
        if self._only is None:
            self._mirror.replace(self.kind, listing.items, version=listing.version)
        else:
            self._mirror.replace_one(self.kind, self._only, listing.items)
        self._version, self._wait, self.lists = listing.version, FIRST_WAIT, self.lists + 1
        self._listed_at = begun
        self.is_synced.set()

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        begun, before, has_bookmarks = clock(), self._version, False
        seconds = SHORTEST_WATCH_SECONDS + random.randrange(SHORTEST_WATCH_SECONDS)
        watch = self._client.changes(self.kind, self._namespace, since=self._version, seconds=seconds, fields=self._fields)
        try:
            async with asyncio.timeout(None) as self._listening, aclosing(watch) as told:
                async for changes in told:
                    self._note_contact()
                    for change in changes:
                        self._hear(change)
                    has_bookmarks = has_bookmarks or any(change.type == BOOKMARK for change in changes)
                    if has_bookmarks and self.is_fresh(self._wanted_since):
                        self._listening.reschedule(clock() + BETWEEN_BOOKMARKS_SECONDS)
        except TimeoutError:
            return  # a new list is wanted, or a new watch
        finally:
            self._listening = None
        if self._version == before and clock() - begun < TOO_SHORT_SECONDS:
            raise Unreachable("the server ended it at once")

    def _hear(self, change: WatchEvent) -> None:
        if change.type == DELETED:
            self._mirror.remove(self.kind, change.object)
        elif change.type != BOOKMARK:
            self._mirror.put(self.kind, change.object)
        self._version, self._wait = change.object["metadata"]["resourceVersion"], FIRST_WAIT
        self.heard(self.kind, change.type)
