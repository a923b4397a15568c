"""What the gangs of each queue hold and ask for together, kept with every change of a gang.

A gang that changes is subtracted as it was and added as it is. Sums are changed in place, because a snapshot may come after ten
thousand changes; those that it gets are copies, made again only for queues that have changed.
"""

from collections.abc import Mapping

from phalanx.model.gang import Gang
from phalanx.model.resources import Resources, add
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import HOLDING, Status
from phalanx.state.snapshot import Totals


class QueueTotals:
    """Sums per queue over its gangs."""

    def __init__(self) -> None:
        """Start without gangs."""
        self._by_gang: dict[GangKey, tuple[str, Totals]] = {}
        self._sums: dict[str, _Sums] = {}
        self._totals: dict[str, Totals] = {}
        """The sums as the last snapshot got them, without queues that have changed since."""

    def replace(self, key: GangKey, gang: Gang | None, members: Mapping[TaskKey, Task]) -> None:
        """Recount one gang; None takes it out."""
        old = self._by_gang.pop(key, None)
        if old is not None:
            self._change(*old, -1)
        if gang is not None:
            new = self._by_gang[key] = (gang.queue, gang_totals(gang, members))
            self._change(*new, 1)

    def _change(self, queue: str, totals: Totals, sign: int) -> None:
        sums = self._sums.get(queue)
        if sums is None:
            sums = self._sums[queue] = _Sums()
        sums.add(totals, sign)
        self._totals.pop(queue, None)
        if not sums.gangs:
            del self._sums[queue]

    def totals(self) -> dict[str, Totals]:
        """Return the sums of every queue that has gangs, in the order of their names: sums of floats depend on the order."""
        for name, sums in self._sums.items():
            if name not in self._totals:
                self._totals[name] = sums.totals()
        return {name: self._totals[name] for name in sorted(self._totals)}


class _Sums:
    """The totals of a queue that can be changed."""

    __slots__ = ("allocated", "elastic", "gangs", "inqueue", "requested")

    def __init__(self) -> None:
        self.gangs = 0
        self.allocated, self.requested = dict[str, int](), dict[str, int]()
        self.inqueue, self.elastic = dict[str, int](), dict[str, int]()

    def add(self, totals: Totals, sign: int) -> None:
        self.gangs += sign * totals.gangs
        _add(self.allocated, totals.allocated, sign)
        _add(self.requested, totals.requested, sign)
        _add(self.inqueue, totals.inqueue, sign)
        _add(self.elastic, totals.elastic, sign)

    def totals(self) -> Totals:
        return Totals(self.gangs, *map(dict, (self.allocated, self.requested, self.inqueue, self.elastic)))


def _add(total: dict[str, int], part: Resources, sign: int) -> None:
    for name, amount in part.items():
        total[name] = total.get(name, 0) + sign * amount
        if total[name] == 0:
            del total[name]


def gang_totals(gang: Gang, members: Mapping[TaskKey, Task]) -> Totals:
    """Return what one gang holds, asks for, may still take of what it was admitted with, and has beyond its minimum."""
    # Most members have one shape: they are counted, and what they ask for is added up once.
    held: dict[Shape, int] = {}
    waiting: dict[Shape, int] = {}
    blocked: dict[Shape, int] = {}
    for task in members.values():
        shape, status = task.shape, task.status
        if status is Status.PENDING:
            waiting[shape] = waiting.get(shape, 0) + 1
            if task.is_gated:
                blocked[shape] = blocked.get(shape, 0) + 1
        elif status in HOLDING:
            held[shape] = held.get(shape, 0) + 1
    is_admitted = gang.phase == "Inqueue" or (gang.phase == "Running" and sum(held.values()) >= gang.min_member)
    if not held and not is_admitted:
        return Totals(1, {}, _requested(waiting))  # most gangs of a backlog: nothing to compare with what they hold
    allocated, pending, gated = _requested(held), _requested(waiting), _requested(blocked)
    minimum = gang.min_resources or {}
    inqueue = _positive(minimum, add(allocated, gated)) if is_admitted else {}
    return Totals(1, allocated, add(allocated, pending), inqueue, _positive(allocated, minimum))


def _requested(counts: Mapping[Shape, int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for shape, count in counts.items():
        for name, amount in shape.request.items():
            total[name] = total.get(name, 0) + count * amount
    return total


def _positive(left: Resources, right: Resources) -> dict[str, int]:
    return {name: amount - right.get(name, 0) for name, amount in left.items() if amount > right.get(name, 0)}
