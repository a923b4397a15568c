"""Gangs that run longer than they may."""

from math import inf

from phalanx.model.gang import Gang
from phalanx.model.queue import Queue
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.model.work_annotations import EVICT, OVERDUE
from phalanx.state.run_times import RunTimesBook
from phalanx.state.snapshot import Snapshot


def evicts_overdue(queue: Queue) -> bool:
    """Tell whether a queue says that gangs are evicted that run longer than they may."""
    return queue.annotations.get(OVERDUE) == EVICT


def begun(snapshot: Snapshot, gang: Gang) -> float:
    """Return since when a gang has had its minimum running; 0 when nobody says, or when it has not."""
    members = snapshot.members_of(gang.key).values()
    moments = sorted(task.started for task in members if task.status is Status.RUNNING and task.started)
    return moments[max(gang.min_member, 1) - 1] if len(moments) >= max(gang.min_member, 1) else 0.0


def due_at(snapshot: Snapshot, times: RunTimesBook, key: GangKey) -> float:
    """Return when a running gang has run as long as it may; `inf` if nobody bounds it, or if it does not run."""
    maximum = times.of(key).maximum
    since = begun(snapshot, snapshot.gangs[key]) if maximum < inf else 0.0
    return since + maximum if since else inf
