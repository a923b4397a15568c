"""Gangs whose binds are under way: a gang has started when the last of them is through."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from phalanx.explain.gang_status import GangStatus, GangWithStatus
from phalanx.model.task import GangKey, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.snapshot import Snapshot


@dataclass(slots=True)
class _Start:
    created: float
    missing: set[TaskKey]


@dataclass(slots=True)
class Starting:
    """Knows which binds a gang still waits for."""

    _starts: dict[GangKey, _Start] = field(default_factory=dict)
    _gang_by_task: dict[TaskKey, GangKey] = field(default_factory=dict)

    def note(self, snapshot: Snapshot, found: Iterable[GangWithStatus]) -> None:
        """Expect the binds of every gang that gets its minimum in this session, and no more of gangs that are gone."""
        for key in [key for key in self._starts if key not in snapshot.gangs]:
            self._forget(key)
        for gang, standing in found:
            if standing is GangStatus.STARTS:
                tasks = {task.task.key for task in gang.tasks if task.status is Status.BINDING is not task.task.status}
                self._expect(GangKey(gang.key), _Start(gang.gang.created, tasks))

    def _expect(self, gang: GangKey, start: _Start) -> None:
        self._forget(gang)
        self._starts[gang] = start
        self._gang_by_task |= dict.fromkeys(start.missing, gang)

    def bound(self, task: TaskKey) -> float | None:
        """A bind is through; return when the gang was created if it was the last one of its start."""
        gang = self._gang_by_task.pop(task, None)
        if gang is None:
            return None
        start = self._starts[gang]
        start.missing.discard(task)
        if start.missing:
            return None
        del self._starts[gang]
        return start.created

    def failed(self, task: TaskKey) -> None:
        """A bind failed: its gang starts in a later session, or not at all."""
        gang = self._gang_by_task.get(task)
        if gang is not None:
            self._forget(gang)

    def _forget(self, gang: GangKey) -> None:
        start = self._starts.pop(gang, None)
        for task in start.missing if start is not None else ():
            self._gang_by_task.pop(task, None)
