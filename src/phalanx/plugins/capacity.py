"""Queues with fixed shares: each queue deserves what it says, may use up to its capability, and belongs to a tree.

Without `enableHierarchy` every queue stands alone. With it, a queue's limit also bounds everything below it, and a queue that
has children takes no gangs itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from phalanx.errors import ConfigError
from phalanx.model.queue import ROOT, Queue
from phalanx.model.resources import PODS, ResourceSpace
from phalanx.model.shape import Shape
from phalanx.model.task_status import HOLDING
from phalanx.placement import Vector
from phalanx.session.amounts import (
    Claim,
    as_amounts,
    bounded,
    covers,
    covers_requested,
    divide,
    dominant_share,
    requested_rows,
    room_or_reason,
    short_of,
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


@dataclass(slots=True)
class Account:
    """What a queue and everything below it has, wants, deserves and may use."""

    queue: Queue
    allocated: Vector
    requested: Vector
    inqueue: Vector
    elastic: Vector
    guarantee: Vector
    deserved: Vector
    capability: Vector
    limit: Vector
    parent: "Account | None" = None
    children: list["Account"] = field(default_factory=list)

    def line(self) -> list["Account"]:
        """Return the queue and its ancestors, the queue first."""
        found: list[Account] = []
        account: Account | None = self
        while account is not None:
            found.append(account)
            account = account.parent
        return found

    @property
    def share(self) -> float:
        """The largest part of what it deserves that it has; 1 for a queue that deserves nothing."""
        return dominant_share(self.allocated, self.deserved) if self.deserved.any() else 1.0


class CapacityPlugin:
    """Keeps queues to their capability and orders them by how much of their own they have."""

    name = "capacity"
    protects = "its queue has no more than it deserves, or not of what is asked for"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings."""
        settings = Arguments(self.name, policy.arguments)
        self.ancestor_level = settings.integer("ancestorReclaimLevel", 0)
        self.counts_devices = settings.switch("capacity.DynamicResourceAllocationEnable", False)
        settings.switch("capacity.DRAConsumableCapacityEnable", False)
        self.needs_all_dimensions = _choice(settings, "preemptive", "any-dimension", "all-dimensions") == "all-dimensions"
        self.refuses_alone = _choice(settings, "brokenQueues", "refuse-all", "refuse-alone") == "refuse-alone"
        self.shares_by_weight = _choice(settings, "deserved", "spec", "weight") == "weight"
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
            self._faults = _build_tree(self._accounts, total, {gang.gang.queue for gang in session.gangs.values()})
        else:
            _settle_flat(self._accounts, total)
        if self.shares_by_weight:
            _share_by_weight(self._accounts, total, is_tree=self._is_tree)
        space = session.snapshot.space
        for name in session.snapshot.totals:
            if name in self._accounts:
                account = self._accounts[name]
                session.decisions.queues[name] = {
                    "deserved": as_amounts(account.deserved, space), "allocated": as_amounts(account.allocated, space),
                }  # fmt: skip

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
        """Higher priority, then the smaller share, then queues that deserve something; in a tree below the common ancestor."""
        mine, its = _diverging(self._accounts[left.name], self._accounts[right.name])
        return _compare(mine, its)

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

    def gang_enqueueable(self, session: Session, gang: GangState) -> Vote:
        """Vote against a gang whose minimum would lift its queue or an ancestor over its limit."""
        queue, space = session.queues[gang.gang.queue], session.snapshot.space
        if not self._fault(queue.name).ok:
            return Vote(-1, self._fault(queue.name))
        if not queue.is_open:
            return Vote(-1, _closed(queue))
        wanted = session.vector(gang.gang.min_resources)
        for account in self._accounts[queue.name].line():
            taken = account.allocated + account.inqueue - account.elastic
            if not covers_requested(account.limit, taken + wanted, wanted, space):
                return Vote(-1, short_of(self.name, account.queue.name, account.limit, taken, wanted, space, "it may use"))
        return PERMITTED

    def gang_enqueued(self, session: Session, gang: GangState) -> None:
        """Count an admitted gang, up to the root."""
        gated = [session.vector(task.task.shape.request) for task in gang.tasks if task.task.is_gated]
        wanted = session.vector(gang.gang.min_resources) - sum(gated, np.zeros(len(session.snapshot.space)))
        for account in self._accounts[gang.gang.queue].line():
            account.inqueue = account.inqueue + np.maximum(wanted, 0.0)

    def queue_preemptive(self, session: Session, queue: Queue, task: TaskState) -> Verdict:
        """A queue may take from others while it or an ancestor near enough stays within what it deserves in some resource."""
        fault = self._fault(queue.name)
        if not fault.ok or not queue.is_open:
            return _closed(queue) if fault.ok else fault
        account, request = self._accounts[queue.name], self._request(session, task.task.shape)
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
        return Verdict.refuse(self.name, "QueueQuotaExceeded", f"queue {queue.name} has all it deserves", queue=queue.name)

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
        walk = _ReclaimWalk(self._accounts, self._accounts[preemptor.gang.gang.queue], self.ancestor_level, session)
        return [task for task in victims_in_order(session, candidates, preemptor) if walk.takes(task, preemptor)]

    def evictable(
        self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str
    ) -> list[TaskState] | None:
        """Name victims for gangreclaim as for reclaim; inside a queue it has no say."""
        return self.reclaimable(session, preemptor, candidates) if purpose == "reclaim" else None

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
        return _shared_depth(self._accounts[right.name], mine) - _shared_depth(self._accounts[left.name], mine)

    def giving_order(self, session: Session, queue: Queue, preemptor: Queue) -> tuple[float, ...] | None:
        """Near queues of a tree first, then those that have most of their own, then those that have most; none within its share."""
        account = self._accounts[queue.name]
        share = _plenty(account, session.snapshot.space)
        if share <= 1:
            return None
        depth = _shared_depth(account, self._accounts[preemptor.name]) if self._is_tree else 0
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


def _compare(left: Account, right: Account) -> int:
    if left.queue.priority != right.queue.priority:
        return -1 if left.queue.priority > right.queue.priority else 1
    if left.share != right.share:
        return -1 if left.share < right.share else 1
    return int(bool(right.deserved.any())) - int(bool(left.deserved.any()))


def _diverging(left: Account, right: Account) -> tuple[Account, Account]:
    """Return the ancestors just below the lowest common one, or the queues themselves."""
    if left.parent is None or right.parent is None:
        return left, right
    for mine, its in zip(reversed(left.line()), reversed(right.line()), strict=False):
        if mine is not its:
            return mine, its
    return left, right


def _settle_flat(accounts: dict[str, Account], total: Vector) -> None:
    guaranteed = sum((account.guarantee for account in accounts.values()), np.zeros(len(total)))
    for account in accounts.values():
        _settle(account, total - guaranteed + account.guarantee)


def _settle(account: Account, available: Vector) -> None:
    account.limit = np.minimum(np.maximum(available, 0.0), account.capability)
    account.deserved = np.maximum(np.minimum(account.deserved, account.limit), account.guarantee)


def _build_tree(accounts: dict[str, Account], total: Vector, used_queues: set[str]) -> dict[str, Verdict]:
    """Link queues, hand limits down and sums up; return what is wrong with which queue."""
    root, faults = accounts[ROOT], dict[str, Verdict]()
    for account in accounts.values():
        parent = accounts.get(account.queue.parent or ROOT)
        if account is root:
            continue
        if parent is None:
            text = f"queue {account.queue.name} names the parent {account.queue.parent!r}, which does not exist"
            faults[account.queue.name] = _broken(text)
        else:
            account.parent = parent
            parent.children.append(account)
    for name, account in accounts.items():
        if name not in faults and not _reaches(account, root, len(accounts)):
            faults[name] = _broken(f"queue {name} does not lead up to the root: a parent is missing or queues form a circle")
    _cut_off(accounts, faults)
    _sum_up(root)
    root.limit = np.minimum(total, root.capability)
    _hand_down(root)
    for name in sorted(used_queues):
        if name in accounts and accounts[name].children and accounts[name] is not root:
            faults[name] = _broken(f"queue {name} has queues below it and gangs of its own; move the gangs to a leaf queue")
    return faults


def _cut_off(accounts: dict[str, Account], faults: dict[str, Verdict]) -> None:
    """Take queues that do not reach the root out of the tree."""
    for name in faults:
        accounts[name].parent, accounts[name].children = None, []
    for account in accounts.values():
        account.children = [child for child in account.children if child.parent is account]


def _broken(message: str) -> Verdict:
    return Verdict.refuse("capacity", "QueueTreeInvalid", message)


def _reaches(account: Account, root: Account, steps: int) -> bool:
    current: Account | None = account
    for _ in range(steps + 1):
        if current is root:
            return True
        current = current.parent if current else None
    return False


def _sum_up(account: Account) -> None:
    for child in account.children:
        _sum_up(child)
        account.allocated = account.allocated + child.allocated
        account.requested = account.requested + child.requested
        account.inqueue = account.inqueue + child.inqueue
        account.elastic = account.elastic + child.elastic
    if account.parent is None and account.children:
        account.deserved = sum((child.deserved for child in account.children), np.zeros(len(account.deserved)))
        account.guarantee = sum((child.guarantee for child in account.children), np.zeros(len(account.guarantee)))


def _hand_down(account: Account) -> None:
    guaranteed = sum((child.guarantee for child in account.children), np.zeros(len(account.guarantee)))
    for child in account.children:
        child.capability = np.where(np.isinf(child.capability), account.capability, child.capability)
        _settle(child, account.limit - guaranteed + child.guarantee)
        _hand_down(child)


def _choice(settings: Arguments, key: str, *allowed: str) -> str:
    """Read one of a few words, the first by default."""
    word = settings.text(key, allowed[0])
    if word not in allowed:
        raise ConfigError(f"plugin 'capacity', argument {key!r}: {word!r} is unknown; write {' or '.join(map(repr, allowed))}")
    return word


def _share_by_weight(accounts: dict[str, Account], total: Vector, *, is_tree: bool) -> None:
    """Let queues that say nothing of what they deserve share by weight what is left of their parent's part, or of the cluster."""
    if not is_tree:
        _divide_among([account for account in accounts.values() if account.queue.name != ROOT], total)
        return
    accounts[ROOT].deserved = total
    line = [accounts[ROOT]]
    for account in line:
        _divide_among(account.children, account.deserved)
        line.extend(account.children)


def _divide_among(accounts: list[Account], total: Vector) -> None:
    silent = [account for account in accounts if not account.queue.deserved]
    spoken = sum((account.deserved for account in accounts if account.queue.deserved), np.zeros(len(total)))
    claims = [Claim(account.queue.weight, account.requested, account.limit, account.guarantee) for account in silent]
    for account, part in zip(silent, divide(claims, np.maximum(total - spoken, 0.0)), strict=True):
        account.deserved = part


def _shared_depth(left: Account, right: Account) -> int:
    """Return how many queues from the root down both lines share."""
    depth = 0
    for mine, its in zip(reversed(left.line()), reversed(right.line()), strict=False):
        if mine is not its:
            break
        depth += 1
    return depth


class _ReclaimWalk:
    """Walks over victims and remembers what their queues would be left with."""

    def __init__(self, accounts: dict[str, Account], reclaimer: Account, level: int, session: Session) -> None:
        self._accounts, self._level, self._session = accounts, level, session
        self._line = {id(account) for account in reclaimer.line()}
        self._left: dict[str, Vector] = {}

    def takes(self, task: TaskState, preemptor: TaskState) -> bool:
        """Tell whether the task may go; if so it is counted as gone."""
        account, space = self._accounts[task.gang.gang.queue], self._session.snapshot.space
        request = self._session.request_of(task.task.shape).amounts.astype(np.float64)
        wanted = self._session.request_of(preemptor.task.shape).amounts.astype(np.float64)
        if not (requested_rows(request, space) & requested_rows(wanted, space)).any():
            return False
        if not covers(self._allocated(account) - request, account.guarantee) or not self._is_over(account, request):
            return False
        if not all(self._is_over(ancestor, request) for ancestor in self._unshared_ancestors(account)):
            return False
        for each in account.line():
            self._left[each.queue.name] = self._allocated(each) - request
        return True

    def _unshared_ancestors(self, account: Account) -> list[Account]:
        return [each for each in account.line()[1 : 1 + self._level] if id(each) not in self._line]

    def _allocated(self, account: Account) -> Vector:
        return self._left.get(account.queue.name, account.allocated)

    def _is_over(self, account: Account, request: Vector) -> bool:
        """A queue that deserves nothing of what the victim uses lets it go; else it must have more than it deserves of it."""
        rows = (request > 0) & (account.deserved > 0)
        rows[self._session.snapshot.space.row_by_name[PODS]] = False
        if not rows.any():
            return True
        return bool((self._allocated(account)[rows] > account.deserved[rows]).any())
