"""Divide the cluster between queues by weight: each queue deserves its part, less what it does not ask for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phalanx.model.queue import Queue
from phalanx.model.resources import PODS, ResourceSpace, readable
from phalanx.model.shape import Shape
from phalanx.placement import NO_LIMIT, Vector
from phalanx.session.amounts import (
    EPSILON,
    Claim,
    as_amounts,
    bounded,
    covers,
    divide,
    dominant_share,
    room_or_reason,
    short_of,
    times_until_covered,
    within_share,
)
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Totals
from phalanx.state.verdict import PERMITTED, YES, Room, Verdict, Vote


@dataclass(slots=True)
class _Account:
    """What a queue has, wants and deserves."""

    queue: Queue
    allocated: Vector
    requested: Vector
    taken: list[float]
    """What its gangs hold for their minima and what those that were admitted have yet to take."""
    guarantee: Vector
    capability: Vector
    limit: Vector
    """The capability, and no more than the guarantees of others leave of the cluster."""
    deserved: Vector
    _share: tuple[Vector, float] | None = None
    """The last share, with what was held then: queues are compared far more often than they change."""

    @property
    def share(self) -> float:
        """The largest part of what it deserves that it has."""
        if self._share is None or self._share[0] is not self.allocated:
            self._share = (self.allocated, dominant_share(self.allocated, self.deserved))
        return self._share[1]


class ProportionPlugin:
    """Keeps queues to what they deserve."""

    name = "proportion"
    protects = "its queue has no more than it deserves"
    follows_runs = True

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, policy.arguments).done()
        self._accounts: dict[str, _Account] = {}

    def open(self, session: Session) -> None:
        """Open an account for each queue that has gangs and divide the cluster."""
        total = session.ledger.allocatable.sum(axis=1, dtype=np.float64)
        guaranteed = sum((session.vector(queue.guarantee) for queue in session.queues.values()), np.zeros(len(total)))
        for name, totals in session.snapshot.totals.items():
            if name in session.queues:
                self._accounts[name] = self._account(session, session.queues[name], totals, np.maximum(total - guaranteed, 0.0))
        claims = [Claim(each.queue.weight, each.requested, each.limit, each.guarantee) for each in self._accounts.values()]
        for account, part in zip(self._accounts.values(), divide(claims, total), strict=True):
            account.deserved = part
        space = session.snapshot.space
        for name, account in self._accounts.items():
            session.decisions.queues[name] = {
                "deserved": as_amounts(account.deserved, space), "allocated": as_amounts(account.allocated, space),
            }  # fmt: skip

    def _account(self, session: Session, queue: Queue, totals: Totals, unguaranteed: Vector) -> _Account:
        guarantee, allocated = session.vector(queue.guarantee), session.vector(totals.allocated)
        taken = (allocated + session.vector(totals.inqueue) - session.vector(totals.elastic)).tolist()
        capability = bounded(queue.capability, session.snapshot.space, unbounded_zero=True)
        return _Account(
            queue, allocated, session.vector(totals.requested), taken, guarantee, capability,
            np.minimum(unguaranteed + guarantee, capability), np.zeros(len(guarantee)),
        )  # fmt: skip

    def queue_order(self, session: Session, left: Queue, right: Queue) -> int:
        """Higher priority first, then the smaller share of what it deserves."""
        if left.priority != right.priority:
            return -1 if left.priority > right.priority else 1
        mine, its = self._share(left), self._share(right)
        return 0 if mine == its else (-1 if mine < its else 1)

    def _share(self, queue: Queue) -> float:
        account = self._accounts.get(queue.name)
        return 0.0 if account is None else account.share

    def queue_overused(self, session: Session, queue: Queue) -> Verdict:
        """Refuse a queue that has all it deserves."""
        account = self._accounts.get(queue.name)
        if account is None or not covers(account.allocated, account.deserved):
            return YES
        figures = _fullest(account, session.snapshot.space)
        return Verdict.refuse(self.name, "QueueOverused", f"queue {queue.name} has all it deserves{figures}", queue=queue.name)

    def tasks_until_overused(self, session: Session, queue: Queue, shape: Shape) -> int:
        """Return with how many more tasks the queue has all it deserves."""
        account = self._accounts.get(queue.name)
        if account is None:
            return NO_LIMIT
        return times_until_covered(account.allocated, account.deserved, session.request_of(shape).amounts.astype(np.float64))

    def queue_room(self, session: Session, queue: Queue, shape: Shape) -> Room:
        """Return how many tasks the queue may still take under what it deserves."""
        account = self._accounts[queue.name]
        if not queue.is_open:
            return Room(0, _closed(self.name, queue))
        return self._room_for(session, account, session.request_of(shape).amounts.astype(np.float64))

    def _room_for(self, session: Session, account: _Account, request: Vector) -> Room:
        space, name = session.snapshot.space, account.queue.name
        return room_or_reason(self.name, name, account.deserved, account.allocated, request, space, "it deserves")

    def queue_limits(self, session: Session, queue: Queue) -> dict[str, Vector]:
        """Return what the capability of the queue leaves; what it deserves grows with the cluster."""
        account = self._accounts.get(queue.name)
        if account is None or not np.isfinite(account.capability).any():
            return {}
        return {queue.name: account.capability - account.allocated}

    def queue_preemptive(self, session: Session, queue: Queue, tasks: Sequence[TaskState]) -> Verdict:
        """A queue may take from others only up to what it deserves."""
        if not queue.is_open:
            return _closed(self.name, queue)
        request = np.zeros(len(session.snapshot.space))
        for task in tasks:
            request += session.request_of(task.task.shape).amounts
        return self._room_for(session, self._accounts[queue.name], request).verdict

    def gang_enqueueable(self, session: Session, gang: GangState) -> Vote:
        """Vote against a gang whose minimum would lift its queue over its limit."""
        queue = session.queues[gang.gang.queue]
        account, space = self._accounts[queue.name], session.snapshot.space
        if not queue.is_open:
            return Vote(-1, _closed(self.name, queue))
        wanted = session.minimum_of(gang)
        if not wanted.short(account.limit, account.taken):
            return PERMITTED
        taken = np.array(account.taken)
        return Vote(-1, short_of(self.name, queue.name, account.limit, taken, wanted.amounts, space, "it may use"))

    def gang_enqueued(self, session: Session, gang: GangState) -> None:
        """Count an admitted gang."""
        taken = self._accounts[gang.gang.queue].taken
        for row, amount in session.minimum_to_admit(gang).parts:
            taken[row] += amount

    def reclaimable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name victims of queues that have more than they deserve, in any resource."""
        left: dict[str, Vector] = {}
        victims = []
        for task in candidates:
            account = self._accounts[task.gang.gang.queue]
            allocated = left.get(account.queue.name, account.allocated)
            if not covers(account.deserved, allocated):
                left[account.queue.name] = allocated - session.request_of(task.task.shape).amounts
                victims.append(task)
        return victims

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Say what the queue of a victim has and deserves."""
        account, request = self._accounts[victim.gang.gang.queue], session.vector(victim.task.shape.request)
        return within_share(self.name, account.queue.name, account.allocated, account.deserved, request, session.snapshot.space)

    def evictable(
        self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str
    ) -> list[TaskState] | None:
        """Name victims for gangreclaim as for reclaim; inside a queue it has no say."""
        return self.reclaimable(session, preemptor, candidates) if purpose == "reclaim" else None

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Follow what queues hold, pipelined tasks included."""
        sign = -1 if (operation.kind is OperationKind.EVICT) != undone else 1
        request, count = session.request_of(operation.shape), sign * len(operation.tasks)
        account = self._accounts[operation.gang.gang.queue]
        account.allocated = account.allocated + count * request.amounts
        for row, amount in request.rows:
            account.taken[row] += count * amount


def _fullest(account: _Account, space: ResourceSpace) -> str:
    """Write what a queue has and deserves of the resource of which it has the largest part: `` (4 of 4 cpu)``."""
    rows = [row for row, name in enumerate(space.names) if name != PODS and account.deserved[row] >= EPSILON]
    row = max(rows, key=lambda row: float(account.allocated[row] / account.deserved[row]), default=None)
    if row is None:
        return ""
    name = space.names[row]
    return f" ({readable(name, float(account.allocated[row]))} of {readable(name, float(account.deserved[row]))} {name})"


def _closed(plugin: str, queue: Queue) -> Verdict:
    state = queue.state or "not open"
    return Verdict.refuse(plugin, "QueueNotOpen", f"queue {queue.name} is {state}", queue=queue.name, state=state)
