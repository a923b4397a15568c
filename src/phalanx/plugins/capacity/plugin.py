"""Queues with fixed shares: each queue deserves what it says, may use up to its capability, and belongs to a tree.

Without `enableHierarchy` every queue stands alone. With it, a queue's limit also bounds everything below it, and a queue that
has children takes no gangs itself.
"""

from collections.abc import Sequence

import numpy as np

from phalanx.errors import ConfigError
from phalanx.model.queue import ROOT, Queue
from phalanx.model.resources import PODS, ResourceSpace
from phalanx.model.shape import Shape
from phalanx.model.task_status import HOLDING
from phalanx.placement import Vector
from phalanx.plugins.capacity.accounts import (
    Account,
    bound_deserved,
    build_tree,
    compare_shares,
    diverging,
    keep_shares,
    no_limit,
    settle_flat,
    share_by_weight,
    shared_depth,
)
from phalanx.plugins.capacity.reclaim_walk import ReclaimWalk
from phalanx.session.amounts import (
    as_amounts,
    bounded,
    dominant_share,
    requested_rows,
    room_or_reason,
    short_of,
    within_share,
)
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.session.victim_order import victims_in_order
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Totals
from phalanx.state.verdict import PERMITTED, YES, Room, Verdict, Vote

DEVICE_CLASS = "deviceclass/"
"""Queues count devices of a class under this prefix."""


class CapacityPlugin:
    """Keeps queues to their capability and orders them by how much of their own they have."""

    name = "capacity"
    protects = "its queue has no more than it deserves, or not of what is asked for"
    follows_runs = True

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings."""
        settings = Arguments(self.name, policy.arguments)
        self.ancestor_level = settings.integer("ancestorReclaimLevel", 0)
        self.counts_devices = settings.switch("capacity.DynamicResourceAllocationEnable", False)
        settings.switch("capacity.DRAConsumableCapacityEnable", False)
        self.needs_all_dimensions = _choice(settings, "preemptive", "any-dimension", "all-dimensions") == "all-dimensions"
        self.refuses_alone = _choice(settings, "brokenQueues", "refuse-all", "refuse-alone") == "refuse-alone"
        self.shares_by_weight = _choice(settings, "deserved", "spec", "weight") == "weight"
        self.is_bounded_by_cluster = _choice(settings, "treeLimit", "capability", "cluster") == "cluster"
        self.ranks_by_level = _choice(settings, "queuePriority", "leaves-first", "by-level") == "by-level"
        self.keeps_shares = _choice(settings, "ancestorShares", "at-open", "live") == "at-open"
        settings.done()
        self._is_tree = "enableHierarchy" in policy.enabled
        self._accounts: dict[str, Account] = {}
        self._faults: dict[str, Verdict] = {}

    def open(self, session: Session) -> None:
        """Open an account for each queue and compute what each may use."""
        total = _without_bound_on_devices(session.ledger.allocatable.sum(axis=1, dtype=np.float64), session.snapshot.space)
        self._total = total
        for queue in session.queues.values():
            self._accounts[queue.name] = self._account(session, queue, session.snapshot.totals.get(queue.name, Totals()))
        if self.counts_devices:
            self._count_held_devices(session)
        if self._is_tree:
            self._open_tree(session)
        else:
            settle_flat(self._accounts, total)
        if self.shares_by_weight:
            share_by_weight(self._accounts, total, is_tree=self._is_tree)
        if self._is_tree and self.keeps_shares:
            keep_shares(self._accounts)
        space = session.snapshot.space
        for name in session.snapshot.totals:
            if name in self._accounts:
                account = self._accounts[name]
                session.decisions.queues[name] = {
                    "deserved": as_amounts(account.deserved, space), "allocated": as_amounts(account.allocated, space),
                }  # fmt: skip

    def _open_tree(self, session: Session) -> None:
        """Link the queues. In Volcano the size of the cluster bounds nothing, so that guarantees reserve nothing at the top."""
        root_limit = self._total if self.is_bounded_by_cluster else no_limit(self._total)
        self._faults = build_tree(self._accounts, root_limit, {gang.gang.queue for gang in session.gangs.values()})
        if self.is_bounded_by_cluster:
            for account in self._accounts.values():
                bound_deserved(account)

    def _account(self, session: Session, queue: Queue, totals: Totals) -> Account:
        space = session.snapshot.space
        capability = bounded(queue.capability, space, unbounded_zero=True)
        return Account(
            queue, session.vector(totals.allocated), session.vector(totals.requested), session.vector(totals.inqueue),
            session.vector(totals.elastic), session.vector(queue.guarantee), session.vector(queue.deserved), capability, capability,
        )  # fmt: skip

    def _count_held_devices(self, session: Session) -> None:
        """Add the devices that running tasks hold through claims to what their queues have."""
        for key, members in session.snapshot.members.items():
            account = self._accounts.get(session.snapshot.gangs[key].queue) if key in session.snapshot.gangs else None
            for task in members.values() if account is not None else ():
                if task.shape.resource_claims and task.status in HOLDING and account is not None:
                    account.allocated = account.allocated + self._devices(session, task.shape)

    def _request(self, session: Session, shape: Shape) -> Vector:
        """Return what a task takes from a queue: its request, and the devices of its claims if they count."""
        request = session.request_of(shape).amounts.astype(np.float64)
        return request + self._devices(session, shape) if self.counts_devices and shape.resource_claims else request

    def _devices(self, session: Session, shape: Shape) -> Vector:
        rows, claims = session.snapshot.space.row_by_name, session.snapshot.surroundings.resource_claims
        devices = np.zeros(len(rows))
        for use in shape.resource_claims:
            claim = claims.get(f"{shape.namespace}/{use.claim}")
            for wanted in claim.requests if claim is not None else ():
                if (row := rows.get(f"{DEVICE_CLASS}{wanted.device_class}")) is not None:
                    devices[row] += wanted.count * 1000
        return devices

    def _fault(self, queue: str) -> Verdict:
        """Return what is wrong with the place of a queue in the tree; one fault is everybody's unless faults are refused alone."""
        if self.refuses_alone or not self._faults:
            return self._faults.get(queue, YES)
        return next(iter(self._faults.values()))

    def queue_order(self, session: Session, left: Queue, right: Queue) -> int:
        """Higher priority, then the smaller share, then queues that deserve something; in a tree below the common ancestor.

        As in Volcano the priorities that count in a tree are those of the queues themselves, unless `queuePriority` says otherwise.
        """
        mine, its = diverging(self._accounts[left.name], self._accounts[right.name])
        first, second = (mine.queue, its.queue) if self.ranks_by_level else (left, right)
        return second.priority - first.priority or compare_shares(mine, its)

    def queue_room(self, session: Session, queue: Queue, shape: Shape) -> Room:
        """Return how many tasks the queue and all its ancestors may still take."""
        if not self._fault(queue.name).ok:
            return Room(0, self._fault(queue.name))
        if not queue.is_open:
            return Room(0, _closed(queue))
        account = self._accounts[queue.name]
        if account.children:
            message = f"queue {queue.name} has queues below it; submit to one of them"
            return Room(0, Verdict.refuse(self.name, "QueueNotLeaf", message, queue=queue.name))
        request = self._request(session, shape)
        rooms = [
            room_or_reason(self.name, each.queue.name, each.limit, each.allocated, request, session.snapshot.space, "it may use")
            for each in account.line()
        ]
        return min(rooms, key=lambda room: room.tasks)

    def queue_limits(self, session: Session, queue: Queue) -> dict[str, Vector]:
        """Return what the capabilities of the queue and of its ancestors leave."""
        line = self._accounts[queue.name].line()
        return {each.queue.name: each.capability - each.allocated for each in line if np.isfinite(each.capability).any()}

    def gang_enqueueable(self, session: Session, gang: GangState) -> Vote:
        """Vote against a gang whose minimum would lift its queue or an ancestor over its limit."""
        queue, space = session.queues[gang.gang.queue], session.snapshot.space
        if not self._fault(queue.name).ok:
            return Vote(-1, self._fault(queue.name))
        if not queue.is_open:
            return Vote(-1, _closed(queue))
        wanted = session.minimum_of(gang)
        for account in self._accounts[queue.name].line():
            taken = account.allocated + account.inqueue - account.elastic
            if wanted.short(account.limit, taken):
                return Vote(-1, short_of(self.name, account.queue.name, account.limit, taken, wanted.amounts, space, "it may use"))
        return PERMITTED

    def gang_enqueued(self, session: Session, gang: GangState) -> None:
        """Count an admitted gang, up to the root."""
        wanted = np.maximum(session.minimum_to_admit(gang).amounts, 0.0)
        for account in self._accounts[gang.gang.queue].line():
            account.inqueue = account.inqueue + wanted

    def queue_preemptive(self, session: Session, queue: Queue, tasks: Sequence[TaskState]) -> Verdict:
        """A queue may take from others while it or an ancestor near enough stays within what it deserves in some resource."""
        fault = self._fault(queue.name)
        if not fault.ok or not queue.is_open:
            return _closed(queue) if fault.ok else fault
        account = self._accounts[queue.name]
        request = sum((self._request(session, task.task.shape) for task in tasks), np.zeros(len(session.snapshot.space)))
        room = room_or_reason(
            self.name, queue.name, account.limit, account.allocated, request, session.snapshot.space, "it may use"
        )
        if room.tasks <= 0:
            return room.verdict
        for account in self._accounts[queue.name].line()[: 1 + self.ancestor_level]:
            if account.parent is None and account.queue.name == ROOT and self._is_tree:
                break
            if self._deserves(session, account, request):
                return YES
        account, space = self._accounts[queue.name], session.snapshot.space
        return short_of(self.name, queue.name, account.deserved, account.allocated, request, space, "it deserves")

    def _deserves(self, session: Session, account: Account, request: Vector) -> bool:
        rows = requested_rows(request, session.snapshot.space)
        within = account.allocated[rows] + request[rows] <= account.deserved[rows]
        return bool(within.all() if self.needs_all_dimensions else within.any())

    def reclaimable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name victims of queues that have more than they deserve, least important first, never below their guarantee.

        Nobody knows what a queue without a place in the tree deserves: a wrong name costs no running pods.
        """
        if not self._fault(preemptor.gang.gang.queue).ok:
            return []
        candidates = [task for task in candidates if self._fault(task.gang.gang.queue).ok]
        line = victims_in_order(session, candidates, preemptor)
        return ReclaimWalk(self._accounts, preemptor, self.ancestor_level, session).victims(line, asks_both=True)

    def evictable(
        self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str
    ) -> list[TaskState] | None:
        """Name victims for gangreclaim in the order of the action, inside a queue all of them; ancestors are not asked."""
        if purpose != "reclaim":
            return list(candidates) if purpose == "preempt" else None
        if not self._fault(preemptor.gang.gang.queue).ok:
            return []
        near = (task for task in candidates if self._fault(task.gang.gang.queue).ok)
        return ReclaimWalk(self._accounts, preemptor, 0, session).victims(near, asks_both=False)

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Say what the queue of a victim has and deserves, or that it holds nothing of what is asked for."""
        account, space = self._accounts[victim.gang.gang.queue], session.snapshot.space
        if not ReclaimWalk(self._accounts, preemptor, 0, session).shares_resources(victim):
            return Verdict.refuse(self.name, "NothingInCommon", "holds nothing of what is asked for")
        request = self._request(session, victim.task.shape)
        return within_share(self.name, account.queue.name, account.allocated, account.deserved, request, space)

    def queue_surplus(self, session: Session, queue: Queue) -> Vector:
        """Return what the queue has beyond what it deserves; without bound for a resource of which it deserves nothing."""
        account = self._accounts[queue.name]
        if not self._fault(queue.name).ok:
            return np.zeros_like(account.allocated)
        surplus = np.where(account.deserved > 0, np.maximum(account.allocated - account.deserved, 0.0), np.inf)
        surplus[account.allocated <= 0] = 0.0
        surplus[session.snapshot.space.row_by_name[PODS]] = 0.0
        return surplus

    def victim_queue_order(self, session: Session, left: Queue, right: Queue, preemptor: Queue) -> int:
        """In a tree, queues that share a nearer ancestor with the preemptor lose tasks first."""
        if not self._is_tree:
            return 0
        mine = self._accounts[preemptor.name]
        return shared_depth(self._accounts[right.name], mine) - shared_depth(self._accounts[left.name], mine)

    def giving_order(self, session: Session, queue: Queue, preemptor: Queue) -> tuple[float, ...] | None:
        """Near queues of a tree first, then those that have most of their own, then those that have most; none within its share."""
        account = self._accounts[queue.name]
        share = _plenty(account, session.snapshot.space)
        if share <= 1:
            return None
        depth = shared_depth(account, self._accounts[preemptor.name]) if self._is_tree else 0
        return -depth, -share, -dominant_share(account.allocated, self._total)

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Follow what queues hold, pipelined tasks included, up to the root."""
        sign = -1 if (operation.kind is OperationKind.EVICT) != undone else 1
        amounts = self._request(session, operation.shape) * (sign * len(operation.tasks))
        for account in self._accounts[operation.gang.gang.queue].line():
            account.allocated = account.allocated + amounts


def _without_bound_on_devices(total: Vector, space: ResourceSpace) -> Vector:
    """Nodes do not report devices of a class as resources: only what a queue says bounds them."""
    for name, row in space.row_by_name.items():
        if DEVICE_CLASS in name:
            total[row] = np.inf
    return total


def _plenty(account: Account, space: ResourceSpace) -> float:
    """Return the largest part of what it deserves that a queue has, without bound for what it has and does not deserve."""
    rows = account.allocated > 0
    rows[space.row_by_name[PODS]] = False
    parts = [held / due if due else np.inf for held, due in zip(account.allocated[rows], account.deserved[rows], strict=True)]
    return float(max(parts, default=0.0))


def _closed(queue: Queue) -> Verdict:
    state = queue.state or "not open"
    return Verdict.refuse("capacity", "QueueNotOpen", f"queue {queue.name} is {state}", queue=queue.name, state=state)


def _choice(settings: Arguments, key: str, *allowed: str) -> str:
    """Read one of a few words, the first by default."""
    word = settings.text(key, allowed[0])
    if word not in allowed:
        raise ConfigError(f"plugin 'capacity', argument {key!r}: {word!r} is unknown; write {' or '.join(map(repr, allowed))}")
    return word
