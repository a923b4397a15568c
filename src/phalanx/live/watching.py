"""What is followed of a cluster: every kind that is served and that somebody looks at, also those that are served later."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from math import inf

from phalanx.controllers.grouper.rules import owner_kinds
from phalanx.controllers.objects import controller_of
from phalanx.dialects.cluster import kinds_read
from phalanx.errors import ClusterError, Missing, Unreachable
from phalanx.model.kinds import KINDS, POD_TEMPLATE, PROVISIONING_REQUEST, Document, Kind, kind_of
from phalanx.store.api_client import ApiClient
from phalanx.store.kube.discovery import Discovery, discover
from phalanx.store.kube.mirror import Mirror, Place
from phalanx.store.kube.reflector import POLLED, Listeners, Reflector

UNWATCHED = frozenset({"Secret", "ConfigMap", "Event", "Lease"})
"""Nobody has to show us these; of those that we write ourselves we know from the answers."""
HIDEABLE = frozenset({*owner_kinds(), PROVISIONING_REQUEST, POD_TEMPLATE}) - frozenset(kinds_read())
"""Without these, pods are grouped by the names of their owners and nodes are not asked for; everything else goes on."""
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
"""Between two discoveries: short after a kind was missed, went or could not be asked for, then twice as long each time."""
START_PATIENCE_SECONDS = 10.0
"""For so long the start waits for groups that do not answer; measurements are not waited for at all."""
AFTER_FAULT_SECONDS = 1.0
MISSED_SECONDS = 60.0
"""For so long objects are believed in whose kind is not served: a server that starts may not know all kinds yet, and who deletes a
definition deletes the objects first. Bind requests that are thought gone give room away that is taken again when they come back."""
CATCH_UP_SECONDS, CATCH_UP_STEP_SECONDS = 10.0, 0.02
DOUBT_SECONDS = 5.0
"""After so long a watch has told of what a refusal told before; if not, everything is listed."""
BETWEEN_LISTS_SECONDS = 60.0
"""After all watches were lost, everything is listed, but not more often: a network may fail all the time."""
OUTAGE_SECONDS = 300.0
"""For so long at most one outage cuts watches: a silent one is given up after half of that."""
NOTICED_SECONDS = 10.0
"""So long after the beginning of an outage the first watch has noticed it."""
FRESH_SECONDS = 1.0
"""What was listed so shortly before we begin to lead is not listed again: at the start that is everything."""
_PLACES = {kind: place for place, kind in enumerate(KINDS)}
"""The order in which kinds are followed."""


class Watching:
    """Keeps a mirror in line with a cluster."""

    def __init__(
        self,
        client: ApiClient,
        mirror: Mirror,
        wanted: Collection[Kind],
        *,
        report: Callable[[str], None],
        single: Mapping[Kind, Place] | None = None,
    ) -> None:
        """`report` is called with what goes wrong; of the kinds in `single` one object is watched, and no others."""
        self._client, self._mirror, self._report, self._single = client, mirror, report, single or {}
        watched = {kind for kind in wanted if kind.kind not in UNWATCHED} | self._single.keys()
        self._by_resource = {kind.resource: kind for kind in KINDS if kind in watched}
        self.reflectors: dict[Kind, Reflector] = {}
        self._tasks: dict[Kind, asyncio.Task[None]] = {}
        self.hideable = HIDEABLE
        """Kinds without which one can go on where nobody may read them."""
        self.has_synced = asyncio.Event()
        """Everything that was served at the start has been listed."""
        self.on_synced: Callable[[], None] = lambda: None
        """Called before that, once."""
        self.on_event: Callable[[Kind, str], None] = lambda kind, type_: None
        """Called with the kind and type of every event of a watch."""
        self.on_set_back: Callable[[], None] = lambda: None
        """Called when the server shows an earlier state of a kind than it did before."""
        self.on_outage: Callable[[], None] = lambda: None
        """Called when everything is listed because the server may not be what it was."""
        self.longest_pause = LONGEST_PAUSE_SECONDS
        """Between two discoveries, when nothing has changed for a while."""
        self._bell, self._pause = asyncio.Event(), LONGEST_PAUSE_SECONDS
        self._unsaid_seconds = self._unsaid_until = 0.0
        """For how long, and until when, nothing is said of discoveries that go wrong."""
        self._silent: dict[str, str] = {}
        """Groups that do not say what they serve, and why."""
        self._missed: dict[Kind, float] = {}
        """Kinds with objects that are not served any more, and since when."""
        self._lost: dict[Kind, float] = {}
        """Kinds whose watches were cut since everything was listed, and when that was last."""
        self._relist_at = -BETWEEN_LISTS_SECONDS
        """When everything was listed last after an outage, or will be."""
        self._set_back_at = -BETWEEN_LISTS_SECONDS
        """When the server was last seen to be set back."""
        self._said: dict[str, float] = {}
        """What went wrong with watches that do not go on yet, and when it was last said."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds that are followed."""
        return frozenset(self.reflectors)

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sync())
            while True:
                try:
                    self._adjust(await discover(self._client, self._by_resource.values()), tasks)
                except ClusterError as problem:
                    pause = max(AFTER_FAULT_SECONDS, problem.retry_after)
                    self._complain_of_discovery(problem, pause)
                    await asyncio.sleep(pause)
                    continue
                self._unsaid_seconds = 0.0
                await self._rest()

    def _complain_of_discovery(self, problem: ClusterError, pause: float) -> None:
        """Say what is wrong, later and later as long as it lasts: in an outage of an hour nobody reads a line each second."""
        now = asyncio.get_running_loop().time()
        if self._unsaid_seconds and now < self._unsaid_until:
            return
        self._report(f"discovery: {problem}; tried again every {pause:g} s")
        self._unsaid_seconds = min(max(2 * self._unsaid_seconds, AFTER_FAULT_SECONDS), LONGEST_PAUSE_SECONDS)
        self._unsaid_until = now + self._unsaid_seconds

    async def _rest(self) -> None:
        """Wait until the next discovery."""
        await asyncio.sleep(SHORTEST_PAUSE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause - SHORTEST_PAUSE_SECONDS):
                await self._bell.wait()
        self._pause = SHORTEST_PAUSE_SECONDS if self._bell.is_set() else min(self._pause * 2, self.longest_pause)
        self._bell.clear()

    def look_for_kinds(self) -> None:
        """Ask soon which kinds there are."""
        self._bell.set()

    def look_for_owner(self, document: Document) -> None:
        """Look soon for the kind of an object's owner, if we would follow it and do not: it came a moment ago."""
        owner = controller_of(document)
        with suppress(Missing):
            kind = None if owner is None else kind_of(owner)
            if kind is not None and kind not in self.reflectors and kind.resource in self._by_resource:
                self.look_for_kinds()

    def _adjust(self, found: Discovery, tasks: asyncio.TaskGroup) -> None:
        """Begin to follow what is served, and forget what is not any more; of whom nobody can tell, that stays as it was."""
        served = {self._by_resource[kind.resource]: kind for kind in found.kinds}
        self._note_missed({*served, *found.unanswered})
        kept = [*(kind for kind in found.unanswered if kind in self.reflectors), *self._missed]
        named = served | {kind: self._client.served.get(kind, kind) for kind in kept}
        self._note_statuses(named)
        self._client.served = {own: kind for own, kind in named.items() if own != kind}
        self._mirror.unserved = frozenset(self._by_resource.values()) - named.keys()
        self._note_silence(found)
        for kind in [kind for kind in self.reflectors if kind not in named]:
            self._forget(kind)
        for kind in sorted((kind for kind in named if kind not in self.reflectors), key=_PLACES.__getitem__):
            reflector = self.reflectors[kind] = self._reflector(kind)
            reflector.listeners = self._listeners(kind)
            self._tasks[kind] = tasks.create_task(reflector.run())

    def _note_missed(self, there: Collection[Kind]) -> None:
        """Note kinds with objects that are not served now, and give up those that were missed for long."""
        now = asyncio.get_running_loop().time()
        missed = {kind: self._missed.get(kind, now) for kind in self.reflectors if kind not in there and self._mirror.within(kind)}
        if missed.keys() - self._missed.keys():
            self._pause = SHORTEST_PAUSE_SECONDS
        self._missed = {kind: since for kind, since in missed.items() if now - since < MISSED_SECONDS}

    def _listeners(self, kind: Kind) -> Listeners:
        return Listeners(
            partial(self._complain, kind), self._pass_on, self._note_return, self.look_for_kinds, partial(self._set_back, kind)
        )

    def _forget(self, kind: Kind) -> None:
        """Follow a kind no longer; it may come back soon, as when a server starts and does not serve all of its kinds yet."""
        self._tasks.pop(kind).cancel()
        del self.reflectors[kind]
        self._mirror.hidden.discard(kind)
        self._mirror.replace(kind, ())
        self._pause = SHORTEST_PAUSE_SECONDS

    def _note_silence(self, found: Discovery) -> None:
        """Say once which groups do not answer, and that they do again; ask soon."""
        silent = {kind.group: str(problem) for kind, problem in found.unanswered.items()}
        for group in sorted(silent.keys() - self._silent.keys()):
            self._report(f"discovery: {group} does not answer: {silent[group]}; its kinds stay as they were until it does")
            self._pause = SHORTEST_PAUSE_SECONDS
        for group in sorted(self._silent.keys() - silent.keys()):
            self._report(f"discovery: {group} answers again")
        self._silent = silent

    def _note_statuses(self, named: Mapping[Kind, Kind]) -> None:
        """Say once of each kind that its status has no place of its own."""
        for own, kind in named.items():
            if own.has_status and not kind.has_status and self._client.served.get(own, own).has_status:
                self._report(f"{kind.resource} have no status subresource: their status is written with the object")

    def _reflector(self, kind: Kind) -> Reflector:
        only = self._single.get(kind)
        may_be_hidden = kind in self.hideable or only is not None
        return Reflector(self._client, self._mirror, kind, report=self._report, may_be_hidden=may_be_hidden, only=only)

    def _pass_on(self, kind: Kind, type_: str) -> None:
        self.on_event(kind, type_)

    def _complain(self, kind: Kind, problem: ClusterError, then: str) -> None:
        """Say what went wrong with a watch; what many watches run into is said once in a while."""
        now, cause = asyncio.get_running_loop().time(), str(problem)
        if isinstance(problem, Unreachable):
            self._lost[kind] = now
        if now - self._said.get(cause, -LONGEST_PAUSE_SECONDS) >= LONGEST_PAUSE_SECONDS:
            self._said[cause] = now
            self._report(f"watch of {kind.resource}: {cause}; {then}, and so are all others that run into this")

    def _note_return(self) -> None:
        self.hurry()
        if self._said and all(self._is_heard(self.reflectors[kind]) for kind in self._followed()):
            self._report(f"all watches go on, after {asyncio.get_running_loop().time() - min(self._said.values()):.1f} s")
            self._said.clear()
            self._list_after_outage()

    def _list_after_outage(self) -> None:
        """List everything if no watch has survived: the server may have been restored from a backup, which nothing else tells.

        Not all of them are cut at once: a watch whose connection is half open is silent for a while and cut then, and one that was
        opened just then is not cut at all.
        """
        loop = asyncio.get_running_loop()
        lost = {kind: moment for kind, moment in self._lost.items() if loop.time() - moment < OUTAGE_SECONDS}
        begun = min(lost.values(), default=inf) - NOTICED_SECONDS
        is_lost = all(kind in lost or self.reflectors[kind].heard_since >= begun for kind in self._watched())
        if is_lost and self._relist_at <= loop.time():
            self._relist_at = max(self._relist_at + BETWEEN_LISTS_SECONDS, loop.time())
            loop.call_at(self._relist_at, self._list_all)

    def _watched(self) -> list[Kind]:
        return [kind for kind in self._followed() if not self._mirror.is_hidden(kind)]

    def _followed(self) -> list[Kind]:
        """Return the kinds that the server has watches for."""
        return [kind for kind in self.reflectors if kind.group != POLLED and kind not in self._missed]

    def _list_all(self) -> None:
        now = self._relist_at = asyncio.get_running_loop().time()
        self._lost.clear()
        for kind in self._watched():
            self.reflectors[kind].refresh(now)
        self.on_outage()

    def doubt(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """List a kind unless its watch tells soon that an object is not there, as the server has said."""

        def check() -> None:
            found, reflector = self._mirror.find(kind, namespace, name), self.reflectors.get(kind)
            if reflector is not None and found is not None and found["metadata"].get("uid") == uid:
                reflector.refresh(loop.time() - DOUBT_SECONDS)

        loop = asyncio.get_running_loop()
        loop.call_later(DOUBT_SECONDS, check)

    def _set_back(self, kind: Kind) -> None:
        """Hear that the server was set back, which one kind has shown: what is known of the others may be undone, too."""
        now = asyncio.get_running_loop().time()
        if now - self._set_back_at > FRESH_SECONDS:  # many kinds show it, and each other one is to be listed once
            self._set_back_at = now
            for reflector in (reflector for other, reflector in self.reflectors.items() if other is not kind):
                reflector.distrust()
        self.on_set_back()

    async def _sync(self) -> None:
        while not self.reflectors:
            await asyncio.sleep(CATCH_UP_STEP_SECONDS)
        deadline = asyncio.get_running_loop().time() + START_PATIENCE_SECONDS
        while not self._is_synced(has_patience=asyncio.get_running_loop().time() < deadline):
            await asyncio.sleep(CATCH_UP_STEP_SECONDS)
        self.on_synced()
        self.has_synced.set()

    def _is_synced(self, *, has_patience: bool) -> bool:
        """Tell whether everything that is served has been listed, also of groups that did not answer at once."""
        if has_patience and self._silent.keys() - {POLLED}:
            return False
        return all(reflector.is_synced.is_set() for reflector in self.reflectors.values())

    def hurry(self) -> None:
        """Let everybody who waits for the server try again: one of them has had an answer."""
        for reflector in self.reflectors.values():
            reflector.hurry()

    async def catch_up(self, *, has_others: bool = True) -> None:
        """Wait until we know what others did before now; a kind that is gone holds nobody up, one that is not needed not for long.

        A watch may be open and silent, and its bookmarks come once a minute: only a new list tells. Where there were no others,
        lists of whatever age will do, with the watches that go on from them.
        """
        since = asyncio.get_running_loop().time() - FRESH_SECONDS if has_others else -inf
        await self.has_synced.wait()
        self.hurry()
        for reflector in self.reflectors.values():
            reflector.refresh(since)
        says_at = asyncio.get_running_loop().time() + CATCH_UP_SECONDS
        while behind := self._behind(since):
            await asyncio.sleep(CATCH_UP_STEP_SECONDS)
            if asyncio.get_running_loop().time() < says_at:
                continue
            unknown = [kind.resource for kind in behind if kind not in self.hideable and not self._is_known(kind, since)]
            if not unknown:
                return
            self._report(f"nothing is decided before these are listed again: {', '.join(unknown)}")
            says_at += CATCH_UP_SECONDS

    def _behind(self, since: float) -> list[Kind]:
        """Return the kinds of which we do not know what was so at a moment; measurements are always of some time ago."""
        return [kind for kind in self._followed() if not self._is_heard(self.reflectors[kind]) or not self._is_known(kind, since)]

    def _is_known(self, kind: Kind, since: float) -> bool:
        return self._mirror.is_hidden(kind) or self.reflectors[kind].is_fresh(since)

    def _is_heard(self, reflector: Reflector) -> bool:
        return reflector.is_following or self._mirror.is_hidden(reflector.kind)
