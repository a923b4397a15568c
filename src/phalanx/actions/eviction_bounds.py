"""What evictions could do at most, by sums over everybody who may go at all: the most room for a gang, the least cost of a node.

A gang of equal tasks that would not find enough places even then needs no search, and a search begins where it may be cheapest.

The invariant: room is never estimated too low, cost never too high. Everything left out of the sums (filters, protection by
plugins, tasks that may go alone but not together) can only make room less and costs higher, so leaving it out is safe. A bound
that was wrong in the other direction would keep a gang waiting that could start, and nothing would show it.

The sums are array operations over columns of who runs where (`state/holders.py`), because they are asked for each waiting gang of a
full cluster: a loop over 40,000 running tasks for each of them is what they replace. They are made once for each set of victims
and kept for the session.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

import numpy as np

from phalanx.actions.dry_run import may_give
from phalanx.model.gang import Gang
from phalanx.placement import Amounts, Counts, Mask
from phalanx.placement.fit import copies
from phalanx.placement.future_room import Moments
from phalanx.placement.ledger import Request
from phalanx.session.session import Session
from phalanx.session.statement import Operation
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.holders import numbers_of
from phalanx.state.lost_work import RESTART_SECONDS, last_checkpoint, weight_of

Cost = tuple[int, int, int, int, int, int]
"""Whether a gang is broken, the highest priority of a victim, work lost, victims, gangs broken, and the place of the queue that
gives last."""
NOTHING: Cost = (0, -(1 << 62), 0, 0, 0, 0)


class Lack(Enum):
    """What evictions cannot do for a gang."""

    VICTIMS = auto()
    """Nobody may go who has anything of what it asks for."""
    ROOM = auto()
    """The nodes have too few places even without all who may go."""
    SURPLUS = auto()
    """The queues that give have too little beyond what they keep."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """The first check that a gang fails, with its numbers."""

    lack: Lack
    places: int = 0
    """How many of its tasks would have room."""
    row: int = 0
    """The resource that queues have too little of."""


@dataclass(frozen=True, slots=True)
class _Holdings:
    """Who holds what where, in columns: numbers of nodes and gangs, and amounts."""

    nodes: Counts
    gangs: Counts
    requests: Amounts


@dataclass(frozen=True, slots=True)
class _Evictable(_Holdings):
    """Every task that could be evicted by its status, and what is lost with it."""

    lost: Counts


class EvictionBounds:
    """Answers for all gangs of a session. Sums are over the tasks that ran when it was opened: none starts to run during it."""

    def __init__(self, session: Session) -> None:
        """Start without any sum; each is made when it is first asked for."""
        self._session = session
        self._victims: dict[Hashable, Mask] = {}
        self._gains: dict[Hashable, Amounts] = {}
        self._most_per_unit_by_key: dict[tuple[str, int, int], tuple[float, float]] = {}

    def changed(self, operation: Operation, undone: bool) -> None:
        """Keep the sums whatever the operation is.

        A task that was evicted is still in them, while its room is in the ledger already: counted twice, the bound on room is too
        high, which is the side it may be wrong on. Sums that followed every eviction on trial would cost more than they save.
        """

    def shortage(self, gang: GangState, tasks: Sequence[TaskState], purpose: str) -> Shortage | None:
        """Return why equal tasks of a gang could not find room even if everybody left who may; None if they could.

        Without anybody who may leave, `allocate` has had its chance on the same room. It takes tasks in their order, though: a gang
        of roles may have failed with tasks of one role where it fits with those of another.
        """
        request, future = self._session.request_of(tasks[0].task.shape), self._session.ledger.future
        givers = self._givers(gang.gang) if purpose == "reclaim" else ()
        gain = self._gain(self.victims_of(gang, purpose), gang.gang, request)
        if not gain.any() and not gang.gang.role_minima:
            return Shortage(Lack.VICTIMS)
        room = np.minimum(copies(future + gain, request), len(tasks))
        if int(room.sum()) < len(tasks):
            return Shortage(Lack.ROOM, places=int(room.sum()))
        if purpose == "preempt" or self._session.policy.victim_rule != "all-agree":
            return None
        # Nodes have the room, but queues give only what they have beyond their share: compare with the least that must go.
        for row, amount in request.rows:
            if _least_eviction(future[row], amount, room, len(tasks)) > sum(self._most_given_by(name, row) for name in givers):
                return Shortage(Lack.SURPLUS, row=row)
        return None

    def victims_of(self, gang: GangState, purpose: str) -> tuple[object, ...]:
        """Return a key for the victims of a gang: the less important gangs of its queue, or the queues that give."""
        mine = gang.gang
        return (purpose, mine.queue, mine.priority) if purpose == "preempt" else self._givers(mine)

    def least_costs(self, gang: GangState, request: Request, purpose: str) -> dict[int, Cost]:
        """Return the least that one more task can cost on each node; nodes where it can have no room are left out.

        A gang on the node that can spare a task might give just one. A gang that cannot goes as a whole; if what it holds here
        is not enough, one more task goes, of another gang that is broken too: had it one to spare, its own row would be cheaper.
        """
        key, future = self.victims_of(gang, purpose), self._session.ledger.future
        found = dict.fromkeys(np.flatnonzero(copies(future, request) > 0).tolist(), NOTHING)
        has_room = copies(future + self._gain(key, gang.gang, request), request) > 0
        pairs, may_go = self._pairs, self._victim_mask(key, gang.gang)[self._pairs.gangs] & has_room[self._pairs.nodes]
        nodes, gangs = pairs.nodes[may_go], pairs.gangs[may_go]
        if not len(nodes):
            return found
        suffices = np.ones(len(nodes), dtype=np.bool_)
        for row, amount in request.rows:
            suffices &= future[row, nodes] + pairs.requests[row, may_go] >= amount
        spares = self._may_spare[gangs]
        broken = np.where(spares, 0, np.where(suffices, 1, 2))
        tasks = np.where(spares, 1, self._sizes[gangs] + ~suffices)
        lost = np.where(spares, 0, self._work_lost[gangs])
        columns = (nodes, (broken > 0).astype(np.int64), self._priorities[gangs], lost, tasks, broken, np.zeros_like(nodes))
        # The cheapest row of each node: sort by node and cost, and keep the first row of each node.
        order = np.lexsort(columns[::-1])
        first = order[np.unique(nodes[order], return_index=True)[1]]
        return {row[0]: row[1:] for row in zip(*(column[first].tolist() for column in columns), strict=True)} | found

    def _givers(self, mine: Gang) -> tuple[str, ...]:
        return tuple(name for name in self._session.snapshot.totals if name != mine.queue and self._may_give_any(name))

    def _may_give_any(self, name: str) -> bool:
        queue = self._session.queues.get(name)
        return queue is not None and queue.is_reclaimable and may_give(self._session, queue)

    def _gain(self, key: tuple[object, ...], mine: Gang, request: Request) -> Amounts:
        """Return what the victims hold on each node, in the rows that are asked for; `key` is that of `victims_of`."""
        rows = tuple(row for row, _ in request.rows)
        if (key, rows) not in self._gains:
            holders, gain = self._holders, np.zeros_like(self._session.ledger.future)
            chosen = self._victim_mask(key, mine)[holders.gangs]
            for row in rows:
                held = np.bincount(holders.nodes[chosen], weights=holders.requests[row, chosen], minlength=gain.shape[1])
                gain[row] = held.astype(np.int64)
            self._gains[key, rows] = gain
        return self._gains[key, rows]

    def _victim_mask(self, key: tuple[object, ...], mine: Gang) -> Mask:
        """Mark the gangs that may lose tasks, by their number."""
        if key not in self._victims:
            if key[:1] == ("preempt",):
                found = [gang.queue == mine.queue and gang.priority < mine.priority for gang in self._gangs]
            else:
                found = [gang.queue in key for gang in self._gangs]
            mask = np.array(found, dtype=np.bool_) & self._may_lose
            self._victims[key] = mask if key[:1] == ("preempt",) else mask & self._within_surplus(mask)
        return self._victims[key]

    def _within_surplus(self, mask: Mask) -> Mask:
        """Mark the gangs that their queue could lose, in part or as a whole, while it has more than it deserves.

        Of a gang that goes as a whole the last task goes too: what went before it must leave a surplus of something it asks for.
        """
        if self._session.policy.victim_rule != "all-agree":
            return mask
        holders, count = self._holders, len(self._gangs)
        held, largest = np.zeros((2, len(holders.requests), count))
        for row, amounts in enumerate(holders.requests):
            held[row] = np.bincount(holders.gangs, weights=amounts, minlength=count)
            np.maximum.at(largest[row], holders.gangs, amounts)
        surplus = np.zeros_like(held)
        for number in np.flatnonzero(mask):
            surplus[:, number] = self._session.queue_surplus(self._session.queues[self._gangs[number].queue])
        fits = ((surplus > 0) & (held > 0) & (held - largest <= surplus)).any(axis=0)
        return self._may_spare | fits

    def _most_given_by(self, name: str, row: int) -> float:
        """Return the most of a resource that one queue can lose.

        Tasks go while the queue has a surplus of something they ask for. Consider the resource whose surplus lasts longest: all
        tasks that go ask for some of it, and together for no more than the surplus and one task. So what they hold of the wanted
        resource is bounded by the highest ratio of both in any task.
        """
        surplus = self._session.queue_surplus(self._session.queues[name])
        most = 0.0
        for other in np.flatnonzero(surplus):
            per_unit, largest = self._most_per_unit(name, row, int(other))
            most = max(most, per_unit * (float(surplus[other]) + largest))
        return most

    def _most_per_unit(self, name: str, row: int, other: int) -> tuple[float, float]:
        """Return how much of a resource goes with one unit of another at most, and the most that one task has of the other."""
        if (name, row, other) not in self._most_per_unit_by_key:
            held = self._holders.requests[:, self._victim_mask((name,), self._gangs[0])[self._holders.gangs]]
            asking = held[:, held[row] > 0]
            # A task that asks for none of the other resource can go without using up its surplus: then there is no bound.
            has_all = bool((asking[other] > 0).all())
            per_unit = float((asking[row] / asking[other]).max(initial=0.0)) if has_all else float("inf")
            self._most_per_unit_by_key[name, row, other] = (per_unit, float(asking[other].max(initial=0)))
        return self._most_per_unit_by_key[name, row, other]

    @cached_property
    def _pairs(self) -> _Holdings:
        """Return what each gang holds on each node, one column for each pair that exists."""
        holders, count = self._holders, max(len(self._gangs), 1)
        marks, where = np.unique(holders.nodes * count + holders.gangs, return_inverse=True)
        held = [np.bincount(where, weights=amounts, minlength=len(marks)).astype(np.int64) for amounts in holders.requests]
        return _Holdings(marks // count, marks % count, np.array(held, dtype=np.int64).reshape(len(held), len(marks)))

    @cached_property
    def _priorities(self) -> Counts:
        return np.array([gang.priority for gang in self._gangs], dtype=np.int64)

    @cached_property
    def _sizes(self) -> Counts:
        """Count what each gang has that could go."""
        return np.bincount(self._holders.gangs, minlength=len(self._gangs))

    @cached_property
    def _work_lost(self) -> Counts:
        """Add up what is lost with all that each gang has that could go."""
        sums = np.bincount(self._holders.gangs, weights=self._holders.lost, minlength=len(self._gangs))
        return sums.astype(np.int64)

    @cached_property
    def _may_spare(self) -> Mask:
        """Mark gangs that may have a task to spare, or are broken already. Only of a gang whose members are all needed and all run
        is it certain that it has none; roles and sub-groups, which could say more, are not looked at.
        """
        members = self._session.snapshot.members_of
        needed = [gang.min_member if len(members(gang.key)) == gang.min_member else -1 for gang in self._gangs]
        return np.not_equal(self._sizes, np.array(needed, dtype=np.int64))

    @cached_property
    def _gangs(self) -> list[Gang]:
        return list(self._session.snapshot.gangs.values())

    @cached_property
    def _may_lose(self) -> Mask:
        return np.array([gang.is_preemptable is not False for gang in self._gangs], dtype=np.bool_)

    @cached_property
    def _holders(self) -> _Evictable:
        snapshot, table = self._session.snapshot, self._session.snapshot.holders
        numbers: dict[str, int] = {gang.key: number for number, gang in enumerate(self._gangs)}
        on_node = np.asarray(table.nodes)
        there = np.flatnonzero((on_node >= 0) & (np.asarray(table.preemptable) > 0))
        nodes = numbers_of(table.code_by_node, snapshot.nodes.number_by_name)[on_node[there]]
        gangs = numbers_of(table.code_by_gang, numbers)[np.asarray(table.gangs)[there]]
        known = (nodes >= 0) & (gangs >= 0)
        shapes, started = np.asarray(table.shapes)[there][known], np.asarray(table.started)[there][known]
        since = np.maximum(started, self._checkpoints[gangs[known]])
        seconds = np.maximum((snapshot.now - since).astype(np.int64), 0) + RESTART_SECONDS
        lost = np.where(started > 0, seconds * self._weights_by_shape(shapes)[shapes], 0)
        return _Evictable(nodes[known], gangs[known], self._requests_by_shape(shapes)[:, shapes], lost)

    @cached_property
    def _checkpoints(self) -> Moments:
        """Return when each gang last saved its work, 0 if nobody says."""
        members = self._session.snapshot.members_of
        found = [last_checkpoint(gang, next(iter(members(gang.key).values()), None)) for gang in self._gangs]
        return np.array(found, dtype=np.float64)

    def _weights_by_shape(self, shapes: Counts) -> Counts:
        """Return on how many devices tasks of these shapes work, at the places of their codes."""
        weights = np.zeros(int(shapes.max(initial=-1)) + 1, dtype=np.int64)
        for shape, code in self._session.snapshot.holders.code_by_shape.items():
            if code < len(weights):
                weights[code] = weight_of(shape)
        return weights

    def _requests_by_shape(self, shapes: Counts) -> Amounts:
        """Return what tasks of these shapes ask for, in the columns of their codes."""
        table = self._session.snapshot.holders
        known = set(np.unique(shapes).tolist())
        requests = np.zeros((len(self._session.snapshot.space), max(known, default=-1) + 1), dtype=np.int64)
        for shape, code in table.code_by_shape.items():
            if code in known:
                requests[:, code] = self._session.request_of(shape).amounts
        return requests


def _least_eviction(free: Counts, amount: int, room: Counts, wanted: int) -> float:
    """Return the least amount that has to go for so many tasks: what each place on each node lacks, the cheapest places first.

    The first task on a node uses what is free there, the second what the first one left, and so on; no arrangement needs less.
    """
    costs = [np.zeros(0)]
    for copy in range(1, int(room.max(initial=0)) + 1):
        has_copy = room >= copy
        lacks = np.clip(copy * amount - np.maximum(free[has_copy], 0), 0, amount)
        costs.append(lacks.astype(np.float64))
    return float(np.sort(np.concatenate(costs))[:wanted].sum())
