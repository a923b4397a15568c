"""The most room that evictions could make for a gang: what is free, and what everybody holds who may go at all.

A gang of equal tasks that would not find enough places even then needs no search. Plugins that protect more can only make it less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phalanx.actions.eviction import may_give
from phalanx.core.session import Session
from phalanx.core.states import GangState, TaskState
from phalanx.model.gang import Gang
from phalanx.model.status import EVICTABLE
from phalanx.placement import Amounts, Counts, Mask
from phalanx.placement.fit import copies
from phalanx.placement.ledger import Request


@dataclass(frozen=True, slots=True)
class _Holders:
    """Every task that could be evicted by its status: its node, its gang, and what it holds."""

    nodes: Counts
    gangs: Counts
    requests: Amounts


class Ceiling:
    """Answers for all gangs of one action."""

    def __init__(self, session: Session) -> None:
        """Look at nobody yet."""
        self._session = session

    def may_hold(self, gang: GangState, tasks: Sequence[TaskState], purpose: str) -> bool:
        """Tell whether so many equal tasks of a gang could find room if everybody went who may, and whether anybody may."""
        request, future = self._session.request_of(tasks[0].task.shape), self._session.ledger.future
        victims = self._victims(gang.gang, purpose)
        gain = self._gain(victims, request)
        if not gain.any():
            return False
        room = np.minimum(copies(future + gain, request), len(tasks))
        if int(room.sum()) < len(tasks):
            return False
        if purpose == "preempt" or self._session.policy.victim_rule != "all-agree":
            return True
        return all(
            _least_eviction(future[row], amount, room, len(tasks)) <= self._most_given(victims, row) for row, amount in request.rows
        )

    def _victims(self, mine: Gang, purpose: str) -> Mask:
        """Mark the gangs that may lose tasks to this one, by their number."""
        if purpose == "preempt":
            found = [gang.queue == mine.queue and gang.priority < mine.priority for gang in self._gangs]
        else:
            givers = {name for name in self._session.snapshot.totals if name != mine.queue and self._gives(name)}
            found = [gang.queue in givers for gang in self._gangs]
        return np.array(
            [may and gang.is_preemptable is not False for may, gang in zip(found, self._gangs, strict=True)], dtype=np.bool_
        )

    def _gives(self, name: str) -> bool:
        queue = self._session.queues.get(name)
        return queue is not None and queue.is_reclaimable and may_give(self._session, queue)

    def _gain(self, victims: Mask, request: Request) -> Amounts:
        """Add up what those gangs hold on each node, of what is asked for."""
        holders, gain = self._holders, np.zeros_like(self._session.ledger.future)
        chosen = victims[holders.gangs]
        for row, _ in request.rows:
            held = np.bincount(holders.nodes[chosen], weights=holders.requests[row, chosen], minlength=gain.shape[1])
            gain[row] = held.astype(np.int64)
        return gain

    def _most_given(self, victims: Mask, row: int) -> float:
        """Return how much of a resource the queues of these gangs can lose together."""
        queues = sorted({gang.queue for gang, is_victim in zip(self._gangs, victims, strict=True) if is_victim})
        return sum(self._given_by(name, victims, row) for name in queues)

    def _given_by(self, name: str, victims: Mask, row: int) -> float:
        """Return how much one queue can lose: so many tasks as use up its surplus of another resource, and one more of each.

        Tasks go while some resource has a surplus. Take the one that had a surplus last: all tasks that went asked for some of it.
        """
        mine = np.array([gang.queue == name for gang in self._gangs], dtype=np.bool_)
        held = self._holders.requests[:, (victims & mine)[self._holders.gangs]]
        surplus = self._session.queue_surplus(self._session.queues[name])
        asking = held[:, held[row] > 0]
        most = 0.0
        for other in np.flatnonzero(surplus):
            if not np.isfinite(surplus[other]) or (asking[other] == 0).any():
                return float("inf")
            most = max(
                most, float((asking[row] / asking[other]).max(initial=0.0) * (surplus[other] + asking[other].max(initial=0)))
            )
        return most

    @cached_property
    def _gangs(self) -> list[Gang]:
        return list(self._session.snapshot.gangs.values())

    @cached_property
    def _may_lose(self) -> Mask:
        return np.array([gang.is_preemptable is not False for gang in self._gangs], dtype=np.bool_)

    @cached_property
    def _holders(self) -> _Holders:
        snapshot, numbers = self._session.snapshot, {gang.key: number for number, gang in enumerate(self._gangs)}
        found = [
            (snapshot.nodes.number_by_name[node], numbers[task.gang], task)
            for node, tasks in snapshot.on_node.items()
            if node in snapshot.nodes.number_by_name
            for task in tasks.values()
            if task.status in EVICTABLE and task.is_preemptable and task.gang in numbers
        ]
        requests = [self._session.request_of(task.shape).amounts for _, _, task in found]
        return _Holders(
            np.array([node for node, _, _ in found], dtype=np.int64), np.array([gang for _, gang, _ in found], dtype=np.int64),
            np.array(requests, dtype=np.int64).reshape(len(found), len(snapshot.space)).T,
        )  # fmt: skip


def _least_eviction(free: Counts, amount: int, room: Counts, wanted: int) -> float:
    """Return how much has to go at least for so many tasks: what each place on each node lacks, the cheapest places first."""
    costs = [np.zeros(0)]
    for copy in range(1, int(room.max(initial=0)) + 1):
        has_copy = room >= copy
        lacks = np.clip(copy * amount - np.maximum(free[has_copy], 0), 0, amount)
        costs.append(lacks.astype(np.float64))
    return float(np.sort(np.concatenate(costs))[:wanted].sum())
