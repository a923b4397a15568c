"""Running jobs in the order in which they give: the reverse of the order in which they are placed."""

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from phalanx.core.podsets import ACTIVE, PodSet, leaves_in_order, pod_sets
from phalanx.core.session import Session
from phalanx.core.states import GangState, TaskState
from phalanx.kai.figures import ZERO, Figures, plus
from phalanx.kai.order import Contender, gives_first
from phalanx.kai.shares import QueueShare
from phalanx.model.status import HOLDING

Unit = list[TaskState]
"""Tasks that go together: one extra, or the core of a gang."""


def holders(gang: GangState) -> list[TaskState]:
    """Return the tasks of a job that hold room and can be asked to leave; promised ones hold nothing yet."""
    return [task for task in gang.tasks if task.status in HOLDING and task.node >= 0]


class VictimLine:
    """Gives unit after unit of the jobs that may be victims, the worst job of the queue that gives first."""

    def __init__(self, session: Session, jobs: list[GangState]) -> None:
        """Line the jobs up by queue."""
        self._session, self._proportion = session, session.instance("proportion")
        self._jobs: dict[str, list[GangState]] = {}
        for gang in jobs:
            self._jobs.setdefault(gang.gang.queue, []).append(gang)
        self._gone: set[int] = set()
        self._taken: dict[str, Figures] = {}

    def skip(self, tasks: list[TaskState]) -> None:
        """Leave out tasks that are victims already."""
        self._gone.update(map(id, tasks))

    def pop(self) -> Unit:
        """Take the next unit; empty when nothing is left."""
        while (name := self._next_queue()) is not None:
            gang = self._worst(name)
            if gang is None:
                self._jobs.pop(name)
                continue
            unit = self._unit(gang)
            self._gone.update(map(id, unit))
            return unit
        return []

    def _left(self, gang: GangState) -> list[TaskState]:
        return [task for task in holders(gang) if id(task) not in self._gone]

    def _worst(self, name: str) -> GangState | None:
        jobs = [gang for gang in self._jobs[name] if self._left(gang)]
        return max(jobs, key=self._key, default=None)

    def _key(self, gang: GangState) -> tuple[Any, ...]:
        """Order jobs as they are placed, seen without the tasks that are gone."""
        counts = [
            (len([task for task in leaf.tasks if task.status in ACTIVE and id(task) not in self._gone]), leaf.minimum)
            for leaf in pod_sets(gang)
        ]
        standing = 0 if any(have < need for have, need in counts) else 1 if all(have == need for have, need in counts) else 2
        elastic = standing if self._session.instance("elastic") else 0
        priority = -gang.gang.priority if self._session.instance("priority") else 0
        return priority, elastic, gang.gang.created, gang.gang.uid

    def _unit(self, gang: GangState) -> Unit:
        """Take one extra task of a leaf above its minimum, or all that is left."""
        left = {
            leaf.name: [task for task in leaf.tasks if task.status in HOLDING and id(task) not in self._gone]
            for leaf in pod_sets(gang)
        }
        for leaf in reversed(self._leaves(gang, left)):
            if len(left[leaf.name]) > leaf.minimum:
                return [self._session.sorted_tasks(left[leaf.name])[-1]]
        return [task for tasks in left.values() for task in self._session.sorted_tasks(tasks)]

    def _leaves(self, gang: GangState, left: dict[str, list[TaskState]]) -> list[PodSet]:
        smaller = [PodSet(leaf.name, leaf.minimum, left[leaf.name], leaf.policy) for leaf in pod_sets(gang)]
        return leaves_in_order(smaller)

    def _next_queue(self) -> str | None:
        names = [name for name in self._jobs if self._worst(name) is not None]
        if not names:
            return None
        if self._proportion is None:
            return max(names, key=lambda name: (self._session.queues[name].created, name))
        return self._giver(self._proportion.tree.roots)

    def _giver(self, queues: list[QueueShare]) -> str | None:
        """Return the leaf below these queues that gives next."""
        able = [(queue, loss) for queue in queues if (loss := self._loss(queue)) is not None]
        if not able:
            return None
        total = self._proportion.total
        compare: Callable[[Any, Any], int] = lambda left, right: -1 if gives_first(left[1], right[1], total) else 1  # noqa: E731
        first = sorted(((queue, Contender(queue, victims=loss)) for queue, loss in able), key=cmp_to_key(compare))[0][0]
        return self._giver(first.children) if first.children else first.name

    def _loss(self, queue: QueueShare) -> Figures | None:
        """Return what a queue has lost so far and would lose next; None when nothing is left in it."""
        if queue.children:
            parts = [loss for child in queue.children if (loss := self._loss(child)) is not None]
            total = ZERO
            for part in parts:
                total = plus(total, part)
            return total if parts else None
        gang = self._worst(queue.name) if queue.name in self._jobs else None
        if gang is None:
            return None
        return self._lost(queue.name, gang)

    def _lost(self, name: str, upcoming: GangState) -> Figures:
        jobs = [gang for gang in self._jobs[name] if gang is upcoming or any(id(task) in self._gone for task in gang.tasks)]
        total = ZERO
        for gang in jobs:
            for task in holders(gang):
                total = plus(total, self._proportion.amounts(self._session, task.task.shape, task.node))
        return total
