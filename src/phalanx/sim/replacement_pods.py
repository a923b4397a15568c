"""Pods that were evicted, failed or lost their node come back and wait, as their controllers would bring them back."""

from collections.abc import Callable

from phalanx.dialects.fresh_pods import fresh
from phalanx.dialects.group_references import with_group_name
from phalanx.errors import Exists, Forbidden, Missing
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.sim.settings import Settings
from phalanx.sim.virtual_time import Precedence, VirtualTime
from phalanx.store.memory import MemoryStore


class ReplacementPods:
    """Brings back whom it was told to."""

    def __init__(self, store: MemoryStore, time: VirtualTime, settings: Settings, is_managed: Callable[[Document], bool]) -> None:
        """Begin to listen; pods that are managed are left to their controllers."""
        self._store, self._time, self._settings, self.is_managed = store, time, settings, is_managed
        self._expected: set[str] = set()
        store.listen(self._hear)

    def expect(self, uid: str) -> None:
        """Bring a pod back once it is gone."""
        if self._settings.restart_after is not None:
            self._expected.add(uid)

    def _hear(self, event: WatchEvent) -> None:
        uid = event.object["metadata"]["uid"]
        if event.kind is not POD or uid not in self._expected:
            return
        if event.type != DELETED:
            return
        self._expected.discard(uid)
        if event.object.get("status", {}).get("phase") != "Succeeded" and not self.is_managed(event.object):
            pod = self._without_own_group(event.object)
            self._time.after(self._settings.restart_after or 0.0, Precedence.WORLD, lambda: self._create(pod))

    def _without_own_group(self, pod: Document) -> Document:
        """Return a pod without the link to a group that was made for it alone, and goes with it."""
        owns_one = any(self._store.owned(pod["metadata"]["uid"], kind) for kind in GROUP_BY_DIALECT.values())
        return with_group_name(pod, None) if owns_one else pod

    def _create(self, pod: Document) -> None:
        try:
            self._store.create(fresh(pod))
        except (Exists, Missing, Forbidden):
            return  # somebody else was quicker, or its namespace is gone or going
