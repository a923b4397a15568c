"""Gangs that run longer than they may: since when, and which of them say so."""

from collections.abc import Mapping
from math import inf

from phalanx.model.gang import OVERDUE, Gang
from phalanx.model.queue import Queue
from phalanx.model.run_times import RunTimes
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.work_annotations import EVICT, OVERDUE_SINCE, OWNER_DEADLINE
from phalanx.model.work_annotations import OVERDUE as OVERDUE_RULE
from phalanx.state.run_times import begun, run_times, speaker
from phalanx.state.snapshot import Snapshot

Members = Mapping[TaskKey, Task]


def evicts_overdue(queue: Queue) -> bool:
    """Tell whether a queue says that gangs are evicted that run longer than they may."""
    return queue.annotations.get(OVERDUE_RULE) == EVICT


def overdue_in_evicting_queues(snapshot: Snapshot) -> list[GangKey]:
    """Return the gangs that run longer than they may and whose queue evicts such gangs."""
    found = [(key, snapshot.gangs[key].queue) for key in sorted(snapshot.overdue) if key in snapshot.gangs]
    return [key for key, name in found if name in snapshot.queues and evicts_overdue(snapshot.queues[name])]


def due_of(gang: Gang, members: Members, queue: Queue | None, times: RunTimes) -> float:
    """Return when a running gang has run as long as it may; `inf` if nobody bounds it, or if it does not run.

    `times` is its run time as it is without knowing when it began.
    """
    if times.maximum == inf:  # most gangs have none
        return inf
    since = begun(gang, members)
    return since + run_times(gang, speaker(members), queue, since=since).maximum if since else inf


def says_overdue(gang: Gang, members: Members) -> bool:
    """Tell whether a gang says that it runs longer than it may: its group, or one of its pods where they alone make it."""
    if not gang.has_object:
        return any(OVERDUE_SINCE in task.annotations for task in members.values())
    return OVERDUE_SINCE in gang.annotations or any(item.type == OVERDUE and item.status == "True" for item in gang.conditions)


class DueGangs:
    """Knows for each running gang with a maximum when it is over, and which gangs say that theirs is."""

    def __init__(self) -> None:
        """Start without any."""
        self._due: dict[GangKey, float] = {}
        self._saying: set[GangKey] = set()
        self.times: dict[GangKey, RunTimes] = {}
        """The run times of all gangs but those whose owners have a deadline: what is left of that depends on when they began."""

    def __bool__(self) -> bool:
        """Tell whether there is any such gang."""
        return bool(self._due or self._saying)

    def replace(self, key: GangKey, gang: Gang | None, members: Members, queue: Queue | None) -> None:
        """Enter a gang as it is now; None if it is gone."""
        self.times.pop(key, None)
        due = inf if gang is None else self._read(gang, members, queue)
        if due < inf:
            self._due[key] = due
        else:
            self._due.pop(key, None)
        if gang is not None and says_overdue(gang, members):
            self._saying.add(key)
        else:
            self._saying.discard(key)

    def _read(self, gang: Gang, members: Members, queue: Queue | None) -> float:
        times = run_times(gang, speaker(members), queue)
        if OWNER_DEADLINE not in gang.annotations:
            self.times[gang.key] = times
        return due_of(gang, members, queue, times)

    def overdue(self, now: float) -> dict[GangKey, float]:
        """Return the gangs that run longer than they may, and since when."""
        return {key: due for key, due in self._due.items() if due <= now}

    def next(self, now: float) -> float:
        """Return when the next one will; `inf` if none."""
        return min((due for due in self._due.values() if due > now), default=inf)

    def to_say(self, overdue: Mapping[GangKey, float]) -> set[GangKey]:
        """Return the gangs that do not say it yet, and those that say it and should not any more."""
        return overdue.keys() ^ self._saying
