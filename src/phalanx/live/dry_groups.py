"""Groups for pods that name none, made as the controllers of a cluster would, and entered only here.

`phalanx explain` does the same for what it reads. A cluster that is followed changes: groups are made again when other pods wait
without one.
"""

from collections.abc import Callable, Iterable

from phalanx.controllers.builtin import ControllerSettings, grouping_controllers
from phalanx.model.kinds import POD, Document, kind_of, object_key
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.model.watch_event import ADDED, DELETED, WatchEvent
from phalanx.scheduling.cache import SchedulerCache
from phalanx.store.bare_pods import grouped_pods

Tell = Callable[[WatchEvent], None]


class DryGroups:
    """Keeps groups for pods that wait without one."""

    def __init__(self, cache: SchedulerCache, everything: Callable[[], Iterable[Document]], names: tuple[str, ...]) -> None:
        """Look at pods of schedulers with these names, or of all that controllers serve."""
        self._cache, self._everything = cache, everything
        settings = ControllerSettings(schedulers=frozenset(names)) if names else ControllerSettings()
        self._served = {*settings.schedulers, *settings.grouper.scheduler_names}
        self._controllers = grouping_controllers(settings)
        self._alone: set[str] = set()
        self._is_stale = False
        self.made: dict[tuple[str, str], Document] = {}
        """What exists only here, by kind and key."""
        self.told: list[Tell] = []
        """Called with what is made, changed and taken away here."""

    def notice(self, event: WatchEvent) -> None:
        """Note a change of a pod that the cache knows by now."""
        if event.kind is not POD:
            return
        key = object_key(event.object)
        task = self._cache.cluster.state.task(TaskKey(key))
        is_alone = (
            task is not None and task.status is Status.PENDING and task.gang is None and task.scheduler in self._served
            and event.type != DELETED
        )  # fmt: skip
        if is_alone or key in self._alone:
            (self._alone.add if is_alone else self._alone.discard)(key)
            self._is_stale = True

    def update(self, now: float) -> None:
        """Make the groups anew if other pods are alone than before."""
        if not self._is_stale:
            return
        self._is_stale = False
        found = grouped_pods(self._everything(), sorted(self._alone), self._controllers, now).documents if self._alone else []
        fresh = {(str(document["kind"]), object_key(document)): document for document in found}
        for place in [place for place in self.made if place not in fresh and place[0] != POD.kind]:
            self._tell(DELETED, self.made[place])
        for document in fresh.values():
            self._tell(ADDED, document)
        self.made = fresh

    def _tell(self, type_: str, document: Document) -> None:
        event = WatchEvent(0, type_, kind_of(document), document, None)
        self._cache.notice(event)
        for listener in self.told:
            listener(event)
