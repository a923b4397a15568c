"""The state of the cluster, kept up to date by events. An event touches only what it names; a snapshot copies arrays and
shares the rest. Events may come in any order: a task before its gang, a gang before its queue, a task before its node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from phalanx.model.bind_request import BindRequest
from phalanx.model.gang import Gang
from phalanx.model.node import HyperNode, Node
from phalanx.model.queue import Queue
from phalanx.model.resources import Resources, ResourceSpace, add
from phalanx.model.status import COMPLETED, HOLDING, ON_NODE, READY, Status
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.state.bind_requests import BindRequests
from phalanx.state.gang_state import GangState
from phalanx.state.holders import Holders
from phalanx.state.hypernodes import HyperTree
from phalanx.state.node_table import NodeTable
from phalanx.state.quorum import counts_by_role
from phalanx.state.snapshot import EMPTY, Snapshot, Surroundings, Totals
from phalanx.state.staleness import is_short

_QUIET = frozenset({Status.RUNNING, *COMPLETED})


class ClusterState:
    """Nouns by key, sums by queue, books by node."""

    def __init__(self) -> None:
        """Start with an empty cluster."""
        self._nodes: dict[str, Node] = {}
        self._tasks: dict[TaskKey, Task] = {}
        self._gangs: dict[GangKey, Gang] = {}
        self._queues: dict[str, Queue] = {}
        self._hypernodes: dict[str, HyperNode] = {}
        self._priorities: dict[str, int] = {}
        self._default_priority: dict[str, int] = {}
        self._gangs_by_class: dict[str, set[GangKey]] = {}
        self._followers: set[GangKey] = set()
        """Gangs whose pods say how important they are."""
        self._members: dict[GangKey, dict[TaskKey, Task]] = {}
        self._on_node: dict[str, dict[TaskKey, Task]] = {}
        self._holders = Holders()
        self._owned: set[str] = set()
        self._affine: dict[TaskKey, Task] = {}
        self._reservations: dict[TaskKey, Task] = {}
        self._refused: dict[TaskKey, Task] = {}
        self._binds = BindRequests()
        self._books = _Books()
        self._ledgers = _QueueLedgers()
        self._dirty_gangs: set[GangKey] = set()
        self._active: set[GangKey] = set()
        self._tree: HyperTree | None = None
        self.surroundings = Surroundings()

    def put_node(self, node: Node) -> None:
        """Add a node or replace the one of that name."""
        is_new = node.name not in self._nodes
        self._nodes[node.name] = node
        self._books.learn(node.allocatable, node.reported)
        self._forget_layout()
        if is_new:
            self._enter_again(self._binds.tasks_for(node.name))

    def drop_node(self, name: str) -> None:
        """Take a node away; its tasks stay known and find their books again when it returns."""
        if self._nodes.pop(name, None):
            self._forget_layout()
            self._enter_again(self._binds.tasks_for(name))

    def put_task(self, task: Task) -> None:
        """Add a task or replace the one of that key."""
        self.drop_task(task.key)
        task = self._binds.applied(task, self._nodes)
        self._tasks[task.key] = task
        self._books.learn(task.shape.request)
        if task.gang is not None:
            self._own(self._members, task.gang)[task.key] = task
            self._dirty_gangs.add(task.gang)
        if task.failed_binds and task.status is Status.PENDING:
            self._refused[task.key] = task
        if task.node and task.status in ON_NODE:
            self._own(self._on_node, task.node)[task.key] = task
            self._books.enter(task, 1)
            self._holders.put(task)
            if task.shape.has_affinity:
                self._affine[task.key] = task
            if task.reserved_gpu:
                self._reservations[task.key] = task

    def drop_task(self, key: TaskKey) -> None:
        """Take a task away; an unknown key is not an error."""
        task = self._tasks.pop(key, None)
        self._binds.forget(key)
        self._refused.pop(key, None)
        if task is None:
            return
        if task.gang is not None:
            self._leave(self._members, task.gang, key)
            self._dirty_gangs.add(task.gang)
        if task.node and task.status in ON_NODE:
            self._leave(self._on_node, task.node, key)
            self._books.enter(task, -1)
            self._holders.drop(task)
            self._affine.pop(key, None)
            self._reservations.pop(key, None)

    def put_bind_request(self, request: BindRequest) -> None:
        """Add a bind request or replace the one of that key; its task is bound to the node, or remembers the failure."""
        self.drop_bind_request(request.key)
        self._binds.put(request)
        self._enter_again([request.task])

    def drop_bind_request(self, key: str) -> None:
        """Take a bind request away."""
        request = self._binds.drop(key)
        if request is not None:
            self._enter_again([request.task])

    def has_request(self, key: TaskKey) -> bool:
        """Tell whether somebody asked for a task to be bound."""
        return self._binds.plain(key) is not None

    def _enter_again(self, keys: Iterable[TaskKey]) -> None:
        """Enter tasks again for which a bind request, or the node it names, has changed."""
        for key in keys:
            task = self._binds.plain(key) or self._tasks.get(key)
            if task is not None:
                self.put_task(task)

    def put_gang(self, gang: Gang) -> None:
        """Add a gang or replace the one of that key; its priority follows its class."""
        self.drop_gang(gang.key)
        self._books.learn(gang.min_resources or {})
        self._gangs[gang.key] = replace(gang, priority=self._priority(gang))
        self._gangs_by_class.setdefault(gang.priority_class, set()).add(gang.key)
        if gang.follows_pods:
            self._followers.add(gang.key)
        self._dirty_gangs.add(gang.key)

    def drop_gang(self, key: GangKey) -> None:
        """Take a gang away; its tasks stay and wait for it."""
        gang = self._gangs.pop(key, None)
        if gang is not None:
            self._gangs_by_class[gang.priority_class].discard(key)
            self._followers.discard(key)
            self._dirty_gangs.add(key)

    def queue(self, name: str) -> Queue | None:
        """Return a queue."""
        return self._queues.get(name)

    def put_queue(self, queue: Queue) -> None:
        """Add a queue or replace the one of that name."""
        self._queues[queue.name] = queue
        self._books.learn(queue.capability or {}, queue.deserved, queue.guarantee)

    def drop_queue(self, name: str) -> None:
        """Take a queue away."""
        self._queues.pop(name, None)

    def put_hypernode(self, hypernode: HyperNode) -> None:
        """Add a HyperNode or replace the one of that name."""
        self._hypernodes[hypernode.name] = hypernode
        self._tree = None

    def drop_hypernode(self, name: str) -> None:
        """Take a HyperNode away."""
        self._hypernodes.pop(name, None)
        self._tree = None

    def put_priority(self, name: str, value: int, *, is_default: bool = False) -> None:
        """Set the value of a priority class."""
        was_default = self._default_priority.pop(name, None) is not None
        self._priorities[name] = value
        if is_default:
            self._default_priority[name] = value
        self._reprice(name, changes_default=is_default or was_default)

    def drop_priority(self, name: str) -> None:
        """Take a priority class away."""
        self._priorities.pop(name, None)
        self._reprice(name, changes_default=self._default_priority.pop(name, None) is not None)

    def _priority(self, gang: Gang) -> int:
        default = max(self._default_priority.values(), default=gang.default_priority)
        if gang.own_priority is not None:
            return gang.own_priority
        if not gang.follows_pods:
            return self._priorities.get(gang.priority_class, default)
        ranks = {(task.priority_class, task.rank) for task in self.members(gang.key).values()}
        return max((self._priorities.get(name, rank or default) for name, rank in ranks), default=default)

    def _reprice(self, name: str, *, changes_default: bool) -> None:
        concerned = self._gangs.keys() if changes_default else self._gangs_by_class.get(name, set()) | self._followers
        for key in tuple(concerned):
            self._price(self._gangs[key])

    def _price(self, gang: Gang) -> Gang:
        """Return a gang with the priority that it has now."""
        if gang.priority != self._priority(gang):
            gang = self._gangs[gang.key] = replace(gang, priority=self._priority(gang))
        return gang

    def _forget_layout(self) -> None:
        self._books.forget_layout()
        self._tree = None

    def _own(self, groups: dict[str, dict[TaskKey, Task]] | dict[GangKey, dict[TaskKey, Task]], key: str) -> dict[TaskKey, Task]:
        """Return the inner mapping, copied first when a snapshot may still read it."""
        table: dict[str, dict[TaskKey, Task]] = groups  # type: ignore[assignment]  # both key types are strings
        mark = f"{id(groups)}:{key}"
        if mark not in self._owned:
            table[key] = dict(table.get(key, EMPTY))
            self._owned.add(mark)
        return table[key]

    def _leave(self, groups: dict[str, dict[TaskKey, Task]] | dict[GangKey, dict[TaskKey, Task]], key: str, task: TaskKey) -> None:
        inner = self._own(groups, key)
        inner.pop(task, None)
        if not inner:
            del groups[key]  # type: ignore[arg-type]  # both key types are strings
            self._owned.discard(f"{id(groups)}:{key}")

    def task(self, key: TaskKey) -> Task | None:
        """Return one task as it is now."""
        return self._tasks.get(key)

    def gang(self, key: GangKey) -> Gang | None:
        """Return one gang as it is now."""
        return self._gangs.get(key)

    def members(self, key: GangKey) -> Mapping[TaskKey, Task]:
        """Return the tasks that name a gang, whether it is there or not; read it before the next event."""
        return self._members.get(key, EMPTY)

    def has_active(self) -> bool:
        """Tell whether a session would have any gang to decide about."""
        self._settle_gangs()
        return bool(self._active)

    def snapshot(self, now: float) -> Snapshot:
        """Return the cluster as it is now."""
        self._settle_gangs()
        self._books.lay_out(self._nodes, self._on_node)
        if self._tree is None:
            self._tree = HyperTree(self._hypernodes.values(), self._books.table)
        self._owned.clear()
        books = self._books
        return Snapshot(
            now=now, space=books.space, nodes=books.table, used=books.used.copy(), releasing=books.releasing.copy(),
            scored=books.scored.copy(), pods=books.pods.copy(), gangs=dict(self._gangs), members=dict(self._members),
            on_node=dict(self._on_node), queues=dict(sorted(self._queues.items())), totals=self._ledgers.totals(),
            gang_totals=self._ledgers.by_gang.copy(),
            active=tuple(sorted(self._active)), hypernodes=self._tree, surroundings=self.surroundings,
            affine=dict(self._affine), bind_requests=dict(self._binds.by_key),
            lost_requests=self._binds.lost(self._tasks, self._nodes), refused=dict(self._refused),
            reservations=dict(self._reservations), holders=self._holders.table(),
        )  # fmt: skip

    def _settle_gangs(self) -> None:
        for key in self._dirty_gangs:
            gang, members = self._gangs.get(key), self._members.get(key, EMPTY)
            if gang is not None and gang.follows_pods:
                gang = self._price(gang)
            self._ledgers.replace(key, gang, members)
            if gang is None or is_settled(gang, members):
                self._active.discard(key)
            else:
                self._active.add(key)
        self._dirty_gangs.clear()


def is_settled(gang: Gang, members: Mapping[TaskKey, Task]) -> bool:
    """Tell whether a session has nothing to decide or to write for the gang."""
    if gang.is_always_active:
        return False
    statuses = [task.status for task in members.values()]
    if not statuses or not all(status in _QUIET for status in statuses):
        return False
    if gang.reported is not None and gang.reported != counts_by_role(members.values(), gang.reported):
        return False
    types = {condition.type for condition in gang.conditions if condition.status == "True"}
    if all(status in COMPLETED for status in statuses):
        return not gang.has_object or gang.phase == "Completed" or (not gang.keeps_phase and "Scheduled" in types)
    ready = sum(status in READY for status in statuses)
    is_told = (gang.phase == "Running" and "Scheduled" in types) or not gang.has_object
    if not is_told or ready < gang.min_member:
        return False
    has_parts = bool(gang.subgroups or gang.role_minima)
    return not has_parts or not is_short(GangState(gang, ((task, -1) for task in members.values())))


class _Books:
    """What running tasks hold on each node, as arrays in the order of the node table."""

    def __init__(self) -> None:
        self.space = ResourceSpace()
        self.table = NodeTable((), self.space)
        self._is_laid_out = False
        self._names: set[str] = set()
        self._clear()

    def _clear(self) -> None:
        shape = (len(self.space), len(self.table))
        self.used, self.releasing = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        self.scored, self.pods = np.zeros((2, shape[1]), dtype=np.int64), np.zeros(shape[1], dtype=np.int64)

    def forget_layout(self) -> None:
        """Nodes have changed: lay everything out anew before the next snapshot."""
        self._is_laid_out = False

    def enter(self, task: Task, count: int) -> None:
        """Add a task to the books of its node, or remove it with -1."""
        number = self.table.number_by_name.get(task.node) if self._is_laid_out else None
        if number is None:
            return
        rows = self.space.row_by_name
        for name, amount in task.shape.request.items():
            self.used[rows[name], number] += amount * count
            if task.status is Status.RELEASING:
                self.releasing[rows[name], number] += amount * count
        self.scored[0, number] += task.shape.booked_request[0] * count
        self.scored[1, number] += task.shape.booked_request[1] * count
        self.pods[number] += count

    def learn(self, *resources: Resources) -> None:
        """Make sure that every name in these has a row from the next snapshot on; rows are never given up."""
        for names in resources:
            if not self._names.issuperset(names):
                self._names.update(names)
                self._is_laid_out = False

    def lay_out(self, nodes: Mapping[str, Node], on_node: Mapping[str, Mapping[TaskKey, Task]]) -> None:
        """Bring the arrays in line with the nodes and the resource names in use, if they are not."""
        if self._is_laid_out:
            return
        self.space = ResourceSpace.of(self._names)
        self.table = NodeTable(tuple(nodes.values()), self.space)
        self._clear()
        self._is_laid_out = True
        for members in on_node.values():
            for task in members.values():
                self.enter(task, 1)


class _QueueLedgers:
    """Sums per queue over its gangs; a gang that changes is subtracted as it was and added as it is."""

    def __init__(self) -> None:
        self.by_gang: dict[GangKey, Totals] = {}
        self._queue_by_gang: dict[GangKey, str] = {}
        self._by_queue: dict[str, Totals] = {}

    def replace(self, key: GangKey, gang: Gang | None, members: Mapping[TaskKey, Task]) -> None:
        """Recount one gang; None takes it out."""
        old = self.by_gang.pop(key, None)
        if old is not None:
            self._change(self._queue_by_gang.pop(key), old, -1)
        if gang is not None:
            totals = gang_totals(gang, members)
            self.by_gang[key], self._queue_by_gang[key] = totals, gang.queue
            self._change(gang.queue, totals, 1)

    def _change(self, queue: str, totals: Totals, sign: int) -> None:
        now = self._by_queue.get(queue, Totals())
        self._by_queue[queue] = Totals(
            now.gangs + sign * totals.gangs,
            *(
                _plus(mine, other, sign)
                for mine, other in (
                    (now.allocated, totals.allocated), (now.requested, totals.requested),
                    (now.inqueue, totals.inqueue), (now.elastic, totals.elastic),
                )
            ),
        )  # fmt: skip
        if self._by_queue[queue].gangs == 0:
            del self._by_queue[queue]

    def totals(self) -> dict[str, Totals]:
        """Return the sums of every queue that has gangs, in the order of their names: sums of floats depend on the order."""
        return {name: self._by_queue[name] for name in sorted(self._by_queue)}


def _plus(left: Resources, right: Resources, sign: int) -> Resources:
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + sign * amount
        if total[name] == 0:
            del total[name]
    return total


def gang_totals(gang: Gang, members: Mapping[TaskKey, Task]) -> Totals:
    """Return what one gang holds, asks for, was promised and has beyond its minimum."""
    allocated: dict[str, int] = {}
    pending: dict[str, int] = {}
    gated: dict[str, int] = {}
    holders = 0
    for task in members.values():
        if task.status in HOLDING:
            allocated = add(allocated, task.shape.request)
            holders += 1
        elif task.status is Status.PENDING:
            pending = add(pending, task.shape.request)
            if task.is_gated:
                gated = add(gated, task.shape.request)
    minimum = gang.min_resources or {}
    is_promised = gang.phase == "Inqueue" or (gang.phase == "Running" and holders >= gang.min_member)
    inqueue = _positive(minimum, add(allocated, gated)) if is_promised else {}
    return Totals(1, allocated, add(allocated, pending), inqueue, _positive(allocated, minimum))


def _positive(left: Resources, right: Resources) -> dict[str, int]:
    return {name: amount - right.get(name, 0) for name, amount in left.items() if amount > right.get(name, 0)}
