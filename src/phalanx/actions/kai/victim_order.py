"""Running jobs in the order in which they give: the reverse of the order in which they are placed.

The order of all jobs that may give is made once per action (`VictimOrder`); a search walks over it (`VictimLine`) and only the jobs
that it has taken something from are compared anew. Otherwise each of 4,000 reclaiming jobs would sort all running ones again.

A job is peeled: its extra tasks go one by one, then its core, the minimum of every leaf, as a whole. After each unit it is
compared again with the others, since a job at its minimum is worth more than one above it.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from heapq import heappop, heappush
from typing import Any

from phalanx.kai.amounts import ZERO, Figures, plus
from phalanx.kai.fair_shares import FairShares
from phalanx.kai.podsets import ACTIVE, PodSet, leaves_in_order, pod_sets, size_class, spare_leaves, suffice
from phalanx.kai.queue_order import Contender, Standing, gives_first
from phalanx.kai.shares import QueueShare
from phalanx.model.task_status import HOLDING
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState

JobVictims = list[TaskState]
"""Tasks that go together: one extra, or the core of a gang."""
Key = tuple[Any, ...]


def holders(gang: GangState) -> list[TaskState]:
    """Return the tasks of a job that hold room and can be evicted; pipelined ones hold nothing yet."""
    return [task for task in gang.tasks if task.status in HOLDING and task.node >= 0]


class VictimOrder:
    """All jobs that may ever give in an action, by queue, the worst first."""

    def __init__(self, session: Session, jobs: Iterable[GangState]) -> None:
        """Sort the jobs."""
        self._session = session
        self._by_priority, self._by_size = session.plugin("priority") is not None, session.plugin("elastic") is not None
        self.by_queue: dict[str, list[tuple[Key, GangState]]] = {}
        self._keys = {gang.key: (self.key(gang, frozenset()), gang) for gang in jobs}
        for key, gang in self._keys.values():
            self.by_queue.setdefault(gang.gang.queue, []).append((key, gang))
        for line in self.by_queue.values():
            line.sort(key=lambda entry: entry[0])

    def key(self, gang: GangState, gone: frozenset[int] | set[int]) -> Key:
        """Return the sort key of a job, worst first, as if the tasks in `gone` had left."""
        size_class = _size_class(gang, gone) if self._by_size else 0
        priority = gang.gang.priority if self._by_priority else 0
        return priority, -size_class, -gang.gang.created, _Reversed(gang.gang.uid)

    def update(self, gangs: dict[str, GangState]) -> None:
        """Put jobs that have given in their new place, and take those out that have nothing left."""
        for gang in gangs.values():
            line = self.by_queue.setdefault(gang.gang.queue, [])
            known = self._keys.pop(gang.key, None)
            if known is not None:
                del line[bisect_left(line, known[0], key=_key_of)]
            if holders(gang):
                self._keys[gang.key] = (self.key(gang, frozenset()), gang)
                insort(line, self._keys[gang.key], key=_key_of)


def _key_of(entry: tuple[Key, GangState]) -> Key:
    return entry[0]


class _Reversed:
    """A text that sorts the other way round."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __lt__(self, other: "_Reversed") -> bool:
        return self.text > other.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def _size_class(gang: GangState, gone: frozenset[int] | set[int]) -> int:
    """Return 0 for a job below its minimum, 1 exactly at it, 2 above: the more it has to spare, the sooner it gives."""
    return size_class(gang, lambda leaf: _left(leaf, gone))


def _left(leaf: PodSet, gone: frozenset[int] | set[int]) -> int:
    return sum(task.status in ACTIVE and id(task) not in gone for task in leaf.tasks)


class VictimLine:
    """Gives unit after unit of the jobs that may be victims, the worst job of the queue that gives first."""

    def __init__(
        self, session: Session, order: VictimOrder, may_give: Callable[[GangState], bool], queues: Iterable[str] | None = None
    ) -> None:
        """Walk over the jobs of these queues, or of all, that may give to this preemptor."""
        self._session, self._order, self._may_give = session, order, may_give
        self._shares = session.read_state(FairShares)
        self._place = dict.fromkeys(order.by_queue if queues is None else queues, 0)
        self._again: dict[str, list[tuple[Key, GangState]]] = {}
        self._gone: set[int] = set()
        self._started: set[str] = set()
        self._losses: dict[str, Figures] = {}

    def skip(self, tasks: list[TaskState]) -> None:
        """Leave out tasks that are victims already."""
        for task in tasks:
            self._take(task.gang, [task])

    def pop(self) -> JobVictims:
        """Take the next unit; empty when nothing is left."""
        name = self._next_queue()
        gang = self._worst(name) if name is not None else None
        if gang is None:
            return []
        unit = self._unit(gang)
        self._take(gang, unit)
        return unit

    def _take(self, gang: GangState, unit: JobVictims) -> None:
        name = gang.gang.queue
        self._gone.update(map(id, unit))
        if gang.key not in self._started:
            self._started.add(gang.key)
            if self._shares is not None:
                self._losses[name] = plus(self._losses.get(name, ZERO), self._shares.held_by(holders(gang)))
        if self._has_left(gang) and self._may_give(gang):
            heappush(self._again.setdefault(name, []), (self._order.key(gang, self._gone), gang))

    def _has_left(self, gang: GangState) -> bool:
        return any(id(task) not in self._gone for task in holders(gang))

    def _worst(self, name: str) -> GangState | None:
        """Return the job of a queue that gives next: an untouched one, or one that has given already."""
        if name not in self._place:
            return None
        line, again = self._order.by_queue.get(name, []), self._again.get(name, [])
        place = self._place[name]
        while place < len(line) and not self._is_untouched(line[place][1]):
            place += 1
        self._place[name] = place
        # Entries of jobs that gave more since are out of date: a newer entry of the same job is in the heap.
        while again and (again[0][0] != self._order.key(again[0][1], self._gone) or not self._has_left(again[0][1])):
            heappop(again)
        if place == len(line) or (again and again[0][0] < line[place][0]):
            return again[0][1] if again else None
        return line[place][1]

    def _is_untouched(self, gang: GangState) -> bool:
        return gang.key not in self._started and self._may_give(gang) and bool(holders(gang))

    def _unit(self, gang: GangState) -> JobVictims:
        """Take one extra task of a leaf above its minimum, then a sub-group that the gang can do without, then all that is left."""
        left = {leaf.name: self._left_in(leaf) for leaf in pod_sets(gang)}
        smaller = [PodSet(leaf.name, leaf.minimum, left[leaf.name], leaf.policy) for leaf in pod_sets(gang)]
        for leaf in reversed(leaves_in_order(smaller)):
            if len(left[leaf.name]) > leaf.minimum and not gang.gang.goes_whole:
                return [self._session.sorted_tasks(left[leaf.name])[-1]]
        spare = self._spare(gang, smaller)
        return [task for leaf in spare or smaller for task in self._session.sorted_tasks(left[leaf.name])]

    def _spare(self, gang: GangState, leaves: list[PodSet]) -> list[PodSet]:
        """Return leaves that go together and that the gang can do without, broken ones first; empty when there are none."""
        full = [leaf for leaf in leaves if len(leaf.tasks) >= leaf.minimum]
        if gang.gang.goes_whole or not suffice(gang, full):
            return []
        broken, spare = [leaf for leaf in leaves if leaf.tasks and leaf not in full], spare_leaves(gang, full)
        return broken or [leaf for leaf in leaves if leaf.tasks and leaf.name in spare]

    def _left_in(self, leaf: PodSet) -> list[TaskState]:
        return [task for task in leaf.tasks if task.status in HOLDING and id(task) not in self._gone]

    def _next_queue(self) -> str | None:
        if self._shares is not None:
            return self._giver(self._shares, self._shares.tree.roots)
        names = [name for name in self._place if self._worst(name) is not None]
        return max(names, key=lambda name: (self._session.queues[name].created, name), default=None)

    def _giver(self, shares: FairShares, queues: Sequence[QueueShare]) -> str | None:
        """Return the leaf below these queues that gives next."""
        losses = ((queue, self._loss(shares, queue)) for queue in queues)
        able = [shares.standing(Contender(queue, victims=loss)) for queue, loss in losses if loss is not None]
        if not able:
            return None

        def compare(left: Standing, right: Standing) -> int:
            return -1 if gives_first(left, right) else 1

        first = min(able, key=cmp_to_key(compare)).queue
        return self._giver(shares, first.children) if first.children else first.name

    def _loss(self, shares: FairShares, queue: QueueShare) -> Figures | None:
        """Return what a queue has lost so far and would lose next; None when nothing is left in it."""
        if not queue.children:
            gang = self._worst(queue.name)
            if gang is None:
                return None
            lost = self._losses.get(queue.name, ZERO)
            return lost if gang.key in self._started else plus(lost, shares.held_by(holders(gang)))
        parts = [loss for child in queue.children if (loss := self._loss(shares, child)) is not None]
        total = ZERO
        for part in parts:
            total = plus(total, part)
        return total if parts else None
