"""A cluster that is followed to be looked at: listed and watched, never written to, with dry sessions that say why gangs wait."""

import asyncio
from collections.abc import Callable, Collection, Iterable

from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import Unreachable
from phalanx.live.clock import LoopClock
from phalanx.live.dry_groups import DryGroups
from phalanx.live.watching import Watching
from phalanx.manifests.permissions import kinds_listed
from phalanx.model.kinds import EVENT, NODE, POD, Document, object_key
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.scheduling.cache import SchedulerCache
from phalanx.session.cycle import Profile
from phalanx.store.api_client import ApiClient
from phalanx.store.kube.mirror import Mirror
from phalanx.ui.dry_look import Connect, DryCluster, DryLooks
from phalanx.ui.hearing import Hearing
from phalanx.ui.kept_sessions import KeptSessions
from phalanx.ui.object_events import about
from phalanx.ui.seen import SeenCluster
from phalanx.ui.source import Listener

NEEDED = frozenset({POD, NODE})
"""Whoever may not read these sees nothing; without any other kind there is still something to see."""
GROUP = "PodGroup"
EVENTS_SECONDS = 10.0


class FollowedCluster:
    """Looks at a real cluster."""

    kind = "cluster"

    def __init__(
        self, client: ApiClient, title: str, profile: Profile, connect: Connect, *, schedulers: tuple[str, ...] = (),
        ours: frozenset[str] = frozenset(), report: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Write nothing to the cluster; pods of schedulers in `ours`, if there are any, are those that sessions place."""
        client.may_write = lambda: False
        self.title, self.schedulers, self.profile = title, schedulers, profile
        self._client, self._clock, self._report = client, LoopClock(), report
        client.heard = self._clock.hear
        self.mirror = Mirror(lambda: self._clock.now)
        self.watching = Watching(client, self.mirror, kinds_listed(), report=report)
        self.watching.hideable = frozenset(kinds_listed()) - NEEDED
        self._cache = SchedulerCache(ObjectCluster(schedulers=ours), report=lambda text: None)
        self._cache.cluster.attach = profile.policy.attach_rules
        self._groups = DryGroups(self._cache, self.mirror.everything, schedulers)
        self._looks, self._hearing = DryLooks(profile, connect, self._everything), Hearing(self.mirror)
        self._groups.told.append(self._gated)
        self.mirror.listen(self._notice)

    def _notice(self, event: WatchEvent) -> None:
        try:
            self._cache.notice(event)
        except Exception as problem:  # an object that nobody understands stops nobody else
            place = f"{event.kind.resource} {object_key(event.object)}"
            self._report(f"{place}: left out, please report it: {type(problem).__name__}: {problem}")
        self._groups.notice(event)
        self._gated(event)

    def _gated(self, event: WatchEvent) -> None:
        self._looks.planner.notice(event.kind, event.object, is_gone=event.type == DELETED)

    async def run(self) -> None:
        """Follow until cancelled."""
        await self.watching.run()

    @property
    def now(self) -> float:
        """The time of the API server."""
        return self._clock.now

    @property
    def problem(self) -> str:
        """Say which kinds are not followed at the moment: what is seen of them may be old."""
        if not self.watching.has_synced.is_set():
            return "the cluster is still being listed"
        followed = self.watching.reflectors.items()
        lost = sorted(
            kind.resource for kind, reflector in followed if not reflector.is_following and not self.mirror.is_hidden(kind)
        )
        return (
            f"the API server does not answer; what is shown of {', '.join(lost[:3])} and others may be old"
            if len(lost) > len(followed) / 2
            else ""
        )

    @property
    def sessions(self) -> KeptSessions:
        """The dry sessions that were held to look."""
        return self._looks.sessions

    def follow(self, changed: Callable[[], None]) -> None:
        """Look whenever something has changed."""
        self._hearing.begin(changed)

    def leave(self) -> None:
        """Go on to follow, so that the next reader sees something at once, but take no looks."""
        self._hearing.end()

    async def look(self, version: str) -> SeenCluster:
        """Hold a dry session on the cluster as it is."""
        await self.watching.has_synced.wait()
        self._groups.update(self.now)
        quarantined = list(self._cache.quarantined.values())
        refused = {object_key(found.object): found.problem for found in quarantined if found.kind.kind == GROUP}
        hidden = sorted(kind.resource for kind in self.mirror.hidden)
        problems = [*(found.problem for found in quarantined), *([f"you may not list {', '.join(hidden)}"] if hidden else [])]
        return await self._looks.look(version, DryCluster(self._cache.snapshot(self.now), refused, problems))

    def _everything(self) -> Iterable[Document]:
        return self.objects()

    def objects(self) -> list[Document]:
        """Return all objects, with the groups that controllers would make."""
        made = self._groups.made
        own = [document for document in self.mirror.everything() if (str(document["kind"]), object_key(document)) not in made]
        return [*own, *made.values()]

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with every change."""
        end = self._hearing.also(listener)
        self._groups.told.append(listener)

        def stop() -> None:
            end()
            self._groups.told.remove(listener)

        return stop

    async def events(self, namespace: str, names: Collection[str]) -> list[Document]:
        """Return what the API server has."""
        try:
            async with asyncio.timeout(EVENTS_SECONDS):
                return about((await self._client.list(EVENT, namespace)).items, namespace, names)
        except TimeoutError as problem:
            raise Unreachable("the API server does not answer when it is asked for events") from problem
