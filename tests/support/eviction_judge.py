"""An exhaustive search over small clusters, as the judge of evictions: which sets of victims the rules allow, and whether a gang
has a place without them. Written for clarity and without the engine's shortcuts; eight running tasks are about the most.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, permutations

from phalanx.model.gang import Gang
from phalanx.model.queue import Queue
from phalanx.model.resources import CPU, scale_of
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import HOLDING, READY, Status
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot

Amounts = Mapping[str, float]
Rooms = Mapping[str, Amounts]
"""What is free, by node."""


class Judge:
    """Knows the cluster before a cycle, and what the cycle decided."""

    def __init__(self, snapshot: Snapshot, decisions: Decisions) -> None:
        """Judge the decisions of one cycle on the snapshot."""
        self._snapshot, self._decisions = snapshot, decisions

    @cached_property
    def running(self) -> list[Task]:
        """Every task of a gang that holds a place."""
        members = [task for gang in self._snapshot.gangs for task in self._snapshot.members_of(gang).values()]
        return [task for task in members if task.status in HOLDING]

    @cached_property
    def deserved(self) -> dict[str, Amounts]:
        """What each queue with gangs deserves, as the cycle reports it, in the engine's units."""
        return {
            queue: {name: amount if name == CPU else amount * scale_of(name) for name, amount in figures["deserved"].items()}
            for queue, figures in self._decisions.queues.items()
        }

    def gang_of(self, task: Task) -> Gang:
        """Return the gang of a task."""
        assert task.gang is not None
        return self._snapshot.gangs[task.gang]

    def waiting(self, gang: GangKey) -> list[Task]:
        """Return the members that wait for a place."""
        return [task for task in self._snapshot.members_of(gang).values() if task.status is Status.PENDING]

    def victims(self) -> list[Task]:
        """Return who was evicted."""
        return [eviction.task for eviction in self._decisions.evictions.values()]

    # --- room ------------------------------------------------------------------------------------------------------

    def rooms(self, gone: Collection[Task] = ()) -> dict[str, dict[str, float]]:
        """Return what is free on each node once some tasks are gone."""
        nodes, names = self._snapshot.nodes, self._snapshot.space.names
        rooms = {
            node: dict(zip(names, nodes.allocatable[:, number].tolist(), strict=True)) for number, node in enumerate(nodes.names)
        }
        leaving = {task.key for task in gone}
        for node, tasks in self._snapshot.on_node.items():
            for task in tasks.values():
                if task.key not in leaving:
                    rooms[node] = less(rooms[node], task.shape.request)
        return rooms

    def overfull(self) -> list[str]:
        """Return the nodes that hold and will hold more than they offer, evicted tasks gone."""
        rooms = self.rooms(self.victims())
        places = {**self._decisions.binds, **self._decisions.pipelined}
        for task, node in places.items():
            rooms[node] = less(rooms[node], self._task(task).shape.request)
        return [node for node, room in rooms.items() if any(amount < 0 for amount in room.values())]

    def _task(self, key: TaskKey) -> Task:
        return next(members[key] for members in self._snapshot.members.values() if key in members)

    # --- gangs -----------------------------------------------------------------------------------------------------

    def is_whole(self, gang: Gang, members: Collection[Task]) -> bool:
        """Tell whether these members meet every minimum of the gang."""
        if len(members) < gang.min_member:
            return False
        if sum(gang.role_minima.values()) > gang.min_member:
            return True
        return all(sum(task.role == role for task in members) >= minimum for role, minimum in gang.role_minima.items())

    def members_with_a_place(self, key: GangKey) -> list[Task]:
        """Return the members that keep their place, or have a new one, now or once others have left."""
        placed = {*self._decisions.binds, *self._decisions.pipelined}
        members = self._snapshot.members_of(key).values()
        return [
            task for task in members if (task.status in READY or task.key in placed) and task.key not in self._decisions.evictions
        ]

    def is_broken(self, key: GangKey, gone: Collection[Task]) -> bool:
        """Tell whether a gang that was whole is left with members, but too few, once some tasks are gone."""
        gang, leaving = self._snapshot.gangs[key], {task.key for task in gone}
        before = [task for task in self.running if task.gang == key]
        left = [task for task in before if task.key not in leaving]
        return bool(left) and self.is_whole(gang, before) and not self.is_whole(gang, left)

    # --- who may go ------------------------------------------------------------------------------------------------

    def is_protected(self, task: Task) -> bool:
        """Tell whether nobody may evict the task."""
        gang = self.gang_of(task)
        is_system = task.namespace == "kube-system" or task.priority_class.startswith("system-")
        return is_system or not task.is_preemptable or gang.is_preemptable is False

    def may_go(self, task: Task, gang: Gang, purpose: str) -> bool:
        """Tell whether a task may be evicted for the gang, what its queue deserves aside."""
        its = self.gang_of(task)
        if self.is_protected(task) or its is gang:
            return False
        return its.queue == gang.queue and its.priority < gang.priority if purpose == "preempt" else its.queue != gang.queue

    def sets(self, gang: Gang, purpose: str) -> Iterator[list[Task]]:
        """Yield every set of tasks that may be evicted together for the gang in any order, small ones first."""
        candidates = [task for task in self.running if self.may_go(task, gang, purpose)]
        for size in range(len(candidates) + 1):
            for chosen in combinations(candidates, size):
                if self.may_go_together(chosen, purpose, in_order=all):
                    yield list(chosen)

    def may_go_together(self, tasks: Sequence[Task], purpose: str, *, in_order: Callable[[Iterable[bool]], bool] = any) -> bool:
        """Tell whether no gang is left broken, and every queue has more than it deserves before each of its tasks goes.

        That depends on the order in which they go: `in_order` is any, or all of them.
        """
        if any(self.is_broken(key, tasks) for key in {task.gang for task in tasks if task.gang is not None}):
            return False
        if purpose == "preempt":
            return True
        groups = [[task for task in tasks if self.gang_of(task).queue == queue] for queue in self.deserved]
        return all(
            in_order(self._gives(queue, order) for order in permutations(group))
            for queue, group in zip(self.deserved, groups, strict=True)
        )

    def _gives(self, queue: str, tasks: Sequence[Task]) -> bool:
        held, deserved = self.held(queue), self.deserved[queue]
        for task in tasks:
            if not _is_over(held, deserved, task):
                return False
            held = less(held, task.shape.request)
        return True

    def held(self, queue: str) -> dict[str, float]:
        """Return what the tasks of a queue hold."""
        total: dict[str, float] = {}
        for task in self.running:
            if self.gang_of(task).queue == queue:
                total = less(total, {name: -amount for name, amount in task.shape.request.items()})
        return total

    # --- places ----------------------------------------------------------------------------------------------------

    def could_start(self, key: GangKey, gone: Collection[Task], purpose: str) -> bool:
        """Tell whether any choice of waiting members that makes the gang whole has a place once some tasks are gone."""
        gang, waiting = self._snapshot.gangs[key], self.waiting(key)
        held = [task for task in self.running if task.gang == key]
        for size in range(1, len(waiting) + 1):
            for chosen in combinations(waiting, size):
                if self.is_whole(gang, [*held, *chosen]) and self.has_place(chosen, gone, purpose):
                    return True
        return False

    def has_place(self, tasks: Sequence[Task], gone: Collection[Task], purpose: str) -> bool:
        """Tell whether the tasks fit onto the nodes and into their queue once others are gone."""
        return self._has_quota(tasks, gone, purpose) and packs(self.rooms(gone), tasks)

    def _has_quota(self, tasks: Sequence[Task], gone: Collection[Task], purpose: str) -> bool:
        queue: Queue = self._snapshot.queues[self.gang_of(tasks[0]).queue]
        held = self.held(queue.name)
        for task in gone:
            if self.gang_of(task).queue == queue.name:
                held = less(held, task.shape.request)
        for task in tasks:
            held = less(held, {name: -amount for name, amount in task.shape.request.items()})
        asked = {name for task in tasks for name, amount in task.shape.request.items() if amount and name != "pods"}
        if any(held[name] > (queue.capability or {}).get(name, held[name]) for name in asked):
            return False
        deserved = self.deserved[queue.name]
        return purpose == "preempt" or all(held[name] <= deserved.get(name, 0) for name in asked)


def less(left: Amounts, right: Amounts) -> dict[str, float]:
    """Return what is left of amounts."""
    return {name: left.get(name, 0) - right.get(name, 0) for name in {**left, **right}}


def _is_over(held: Amounts, deserved: Amounts, task: Task) -> bool:
    names = [name for name, amount in task.shape.request.items() if amount and name != "pods" and deserved.get(name, 0) > 0]
    return not names or any(held[name] > deserved[name] for name in names)


def packs(rooms: Rooms, tasks: Sequence[Task]) -> bool:
    """Tell whether the tasks fit onto the nodes together, by trying every way."""
    if not tasks:
        return True
    request = tasks[0].shape.request
    for node, room in rooms.items():
        has_room = all(room.get(name, 0) >= amount for name, amount in request.items())
        if has_room and packs({**rooms, node: less(room, request)}, tasks[1:]):
            return True
    return False
