"""The state of the cluster, kept up to date by events. An event touches only what it names; a snapshot copies arrays and
shares the rest. Events may come in any order: a task before its gang, a gang before its queue, a task before its node.

Building everything anew for each session is simpler, and is what most of a cycle goes into where it is done. Three rules make the
state that is kept as good as a fresh one (`tests/properties/test_events.py` compares them after any history of events):

- *Replacing is dropping and putting.* Every `put_x` first takes out what was there under the key, with the very object that was
  entered then. Nothing computes the difference of two versions, so nothing can forget a part of it.
- *What depends on several objects waits.* The sums of a gang depend on the gang and on all its tasks; an event only marks the
  gang as changed, and sums are made again before the next snapshot. A thousand events about one gang cost one recount.
- *A snapshot is never changed.* Inner mappings are shared with it and copied on the first write after it (`_writable`); nouns are
  frozen. So a quiet cluster costs a copy of some arrays and outer mappings, whatever number of pods runs in it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from phalanx.model.bind_request import BindRequest
from phalanx.model.gang import DEFAULT_QUEUE, Gang
from phalanx.model.node import HyperNode, Node
from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import COMPLETED, HOLDING, ON_NODE, READY, Status
from phalanx.model.work_annotations import DEFAULT_DURATION, MAX_DURATION
from phalanx.state.bind_requests import BindRequests
from phalanx.state.failing_rounds import failing_rounds
from phalanx.state.finished_runs import FinishedRuns
from phalanx.state.gang_state import GangState
from phalanx.state.holders import Holders
from phalanx.state.hypernodes import HyperTree
from phalanx.state.node_books import NodeBooks
from phalanx.state.overdue import DueGangs
from phalanx.state.queue_totals import QueueTotals
from phalanx.state.quorum import counts_by_role
from phalanx.state.snapshot import EMPTY, Snapshot
from phalanx.state.staleness import is_short
from phalanx.state.surrounding_tables import SurroundingTables

_TasksByKey = dict[str, dict[TaskKey, Task]] | dict[GangKey, dict[TaskKey, Task]]
_STEADY = frozenset({Status.RUNNING, *COMPLETED})


class ClusterState:
    """The nouns by key, what holds by queue and by node, and which gangs a session has to look at."""

    def __init__(self) -> None:
        """Start with an empty cluster."""
        self._nodes: dict[str, Node] = {}
        self._tasks: dict[TaskKey, Task] = {}
        self._gangs: dict[GangKey, Gang] = {}
        self._queues: dict[str, Queue] = {}
        self._namesakes: dict[str, Queue] = {}
        self._hypernodes: dict[str, HyperNode] = {}
        self._priorities: dict[str, int] = {}
        self._default_priority: dict[str, int] = {}
        """Classes that say they are the global default, with their values. Of several the highest counts."""
        self._gangs_by_class: dict[str, set[GangKey]] = {}
        self._gangs_by_preferred_queue: dict[str, set[GangKey]] = {}
        self._followers: set[GangKey] = set()
        """Gangs whose pods say how important they are."""
        self._members: dict[GangKey, dict[TaskKey, Task]] = {}
        self._on_node: dict[str, dict[TaskKey, Task]] = {}
        self._holders = Holders()
        self._finished = FinishedRuns()
        self._writable_groups: set[str] = set()
        self._affine: dict[TaskKey, Task] = {}
        self._reservations: dict[TaskKey, Task] = {}
        self._refused: dict[TaskKey, Task] = {}
        self._refused_gangs: set[GangKey] = set()
        self._binds = BindRequests()
        self._books = NodeBooks()
        self._queue_totals = QueueTotals()
        self._due = DueGangs()
        self._changed_gangs: set[GangKey] = set()
        self._active: set[GangKey] = set()
        self._tree: HyperTree | None = None
        self.tables = SurroundingTables()
        """What filters read besides nodes, tasks and gangs."""

    def put_node(self, node: Node) -> None:
        """Add a node or replace the one of that name."""
        is_new = node.name not in self._nodes
        self._nodes[node.name] = node
        self._books.add_rows_for(node.allocatable, node.reported)
        self._forget_layout()
        if is_new:
            self._reenter(self._binds.tasks_for(node.name))

    def drop_node(self, name: str) -> None:
        """Take a node away; its tasks stay known and are counted again when it returns."""
        if self._nodes.pop(name, None):
            self._forget_layout()
            self._reenter(self._binds.tasks_for(name))

    def put_task(self, task: Task) -> None:
        """Add a task or replace the one of that key."""
        before = self._tasks.get(task.key)
        is_booked = before is not None and self._takes_the_same(before, task)
        self._drop_task(task.key, is_booked=is_booked)
        task = self._binds.with_requests(task, self._nodes)
        self._tasks[task.key] = task
        self._books.add_rows_for(task.shape.request)
        if task.gang is not None:
            self._writable(self._members, task.gang)[task.key] = task
            self._changed_gangs.add(task.gang)
            if before is not None and before.status is Status.RUNNING and task.status is Status.SUCCEEDED:
                self._finished.note(task, len(self._members[task.gang]))
        if task.failed_binds and task.status is Status.PENDING:
            self._refused[task.key] = task
        if task.node and task.status in ON_NODE:
            self._writable(self._on_node, task.node)[task.key] = task
            if not is_booked:
                self._books.enter(task, 1)
            self._holders.put(task)
            if task.shape.has_affinity:
                self._affine[task.key] = task
            if task.reserved_gpu:
                self._reservations[task.key] = task

    def _takes_the_same(self, before: Task, task: Task) -> bool:
        """Tell whether a task takes the same room as before: most events tell of pods that stay where they are."""
        is_same = before.node == task.node and before.shape is task.shape
        return is_same and before.status in HOLDING and task.status in HOLDING and not self.has_request(task.key)

    def drop_task(self, key: TaskKey) -> None:
        """Take a task away; an unknown key is not an error."""
        self._drop_task(key)

    def _drop_task(self, key: TaskKey, *, is_booked: bool = False) -> None:
        """Take a task away, but for the books of its node if what follows takes the same room there."""
        task = self._tasks.pop(key, None)
        self._binds.forget(key)
        self._refused.pop(key, None)
        if task is None:
            return
        if task.gang is not None:
            self._remove_from(self._members, task.gang, key)
            self._changed_gangs.add(task.gang)
        if task.node and task.status in ON_NODE:
            self._remove_from(self._on_node, task.node, key)
            if not is_booked:
                self._books.enter(task, -1)
            self._holders.drop(task)
            self._affine.pop(key, None)
            self._reservations.pop(key, None)

    def reshape(self, shape_of: Callable[[Task], Shape]) -> None:
        """Put tasks again whose shape has become another one."""
        for key, task in list(self._tasks.items()):
            shape = shape_of(task)
            if shape is not task.shape:
                self.put_task(replace(self._binds.without_requests(key) or task, shape=shape))

    def put_bind_request(self, request: BindRequest) -> None:
        """Add a bind request or replace the one of that key; its task is bound to the node, or remembers the failure."""
        self.drop_bind_request(request.key)
        self._binds.put(request)
        self._reenter([request.task])

    def drop_bind_request(self, key: str) -> None:
        """Take a bind request away."""
        request = self._binds.drop(key)
        if request is not None:
            self._reenter([request.task])

    def has_request(self, key: TaskKey) -> bool:
        """Tell whether a bind request names the task."""
        return self._binds.without_requests(key) is not None

    def _reenter(self, keys: Iterable[TaskKey]) -> None:
        """Put tasks again for which a bind request, or the node it names, has changed: a request changes what they are."""
        for key in keys:
            task = self._binds.without_requests(key) or self._tasks.get(key)
            if task is not None:
                self.put_task(task)

    def put_gang(self, gang: Gang) -> None:
        """Add a gang or replace the one of that key; its priority follows its class, its queue follows those that exist."""
        self.drop_gang(gang.key)
        self._books.add_rows_for(gang.min_resources or {})
        self._gangs[gang.key] = replace(gang, priority=self._priority(gang), queue=self._queue_of(gang))
        if gang.preferred_queue:
            self._gangs_by_preferred_queue.setdefault(gang.preferred_queue, set()).add(gang.key)
        self._gangs_by_class.setdefault(gang.priority_class, set()).add(gang.key)
        if gang.failed_binds:
            self._refused_gangs.add(gang.key)
        if gang.follows_pods:
            self._followers.add(gang.key)
        self._changed_gangs.add(gang.key)

    def drop_gang(self, key: GangKey) -> None:
        """Take a gang away; its tasks stay and wait for it."""
        gang = self._gangs.pop(key, None)
        if gang is not None:
            self._gangs_by_class[gang.priority_class].discard(key)
            self._gangs_by_preferred_queue.get(gang.preferred_queue, set()).discard(key)
            self._followers.discard(key)
            self._refused_gangs.discard(key)
            self._changed_gangs.add(key)

    def queue(self, name: str) -> Queue | None:
        """Return a queue."""
        return self._queues.get(name)

    def put_queue(self, queue: Queue, *, namesake: Queue | None = None) -> None:
        """Add a queue or replace the one of that name; `namesake` is KAI's where the queue is Volcano's."""
        self._limit_runs(queue.name, queue)
        self._queues[queue.name] = queue
        self._namesakes.pop(queue.name, None)
        if namesake is not None:
            self._namesakes[queue.name] = namesake
        self._books.add_rows_for(queue.capability or {}, queue.deserved, queue.guarantee)
        self._choose_queues(queue.name)

    def drop_queue(self, name: str) -> None:
        """Take a queue away."""
        self._limit_runs(name, None)
        self._queues.pop(name, None)
        self._namesakes.pop(name, None)
        self._choose_queues(name)

    def _limit_runs(self, name: str, queue: Queue | None) -> None:
        """Look at the gangs of a queue again if it comes to say something else of how long they may run."""
        before, now = map(_durations, (self._queues.get(name), queue))
        if before != now:
            self._changed_gangs.update(key for key, gang in self._gangs.items() if gang.queue == name)

    def _queue_of(self, gang: Gang) -> str:
        if not gang.preferred_queue:
            return gang.queue
        return gang.preferred_queue if gang.preferred_queue in self._queues else DEFAULT_QUEUE

    def _choose_queues(self, name: str) -> None:
        """Put gangs again that prefer a queue which has come or gone."""
        for key in tuple(self._gangs_by_preferred_queue.get(name, ())):
            if self._gangs[key].queue != self._queue_of(self._gangs[key]):
                self.put_gang(self._gangs[key])

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
        self._update_priorities(name, changes_default=is_default or was_default)

    def drop_priority(self, name: str) -> None:
        """Take a priority class away."""
        self._priorities.pop(name, None)
        self._update_priorities(name, changes_default=self._default_priority.pop(name, None) is not None)

    def _priority(self, gang: Gang) -> int:
        default = max(self._default_priority.values(), default=gang.default_priority)
        if gang.own_priority is not None:
            return gang.own_priority
        if not gang.follows_pods:
            return self._priorities.get(gang.priority_class, default)
        # The class counts with its present value. A pod has the value of the time when it was created, also of a class now gone.
        ranks = {(task.priority_class, task.rank) for task in self.members(gang.key).values()}
        return max((self._priorities.get(name, rank or default) for name, rank in ranks), default=default)

    def _update_priorities(self, name: str, *, changes_default: bool) -> None:
        concerned = self._gangs.keys() if changes_default else self._gangs_by_class.get(name, set()) | self._followers
        for key in tuple(concerned):
            self._update_priority(self._gangs[key])

    def _update_priority(self, gang: Gang) -> Gang:
        """Return a gang with the priority that it has now."""
        if gang.priority != self._priority(gang):
            gang = self._gangs[gang.key] = replace(gang, priority=self._priority(gang))
        return gang

    def _forget_layout(self) -> None:
        self._books.forget_layout()
        self._tree = None

    def _writable(self, groups: _TasksByKey, key: str) -> dict[TaskKey, Task]:
        """Return the inner mapping to write to, copied first when a snapshot may still read it.

        `_writable_groups` holds those that were copied since the last snapshot; taking a snapshot empties it.
        """
        table: dict[str, dict[TaskKey, Task]] = groups  # type: ignore[assignment]  # both key types are strings
        mark = f"{id(groups)}:{key}"
        if mark not in self._writable_groups:
            table[key] = dict(table.get(key, EMPTY))
            self._writable_groups.add(mark)
        return table[key]

    def _remove_from(self, groups: _TasksByKey, key: str, task: TaskKey) -> None:
        inner = self._writable(groups, key)
        inner.pop(task, None)
        if not inner:
            del groups[key]  # type: ignore[arg-type]  # both key types are strings
            self._writable_groups.discard(f"{id(groups)}:{key}")

    def task(self, key: TaskKey) -> Task | None:
        """Return one task as it is now."""
        return self._tasks.get(key)

    def gang(self, key: GangKey) -> Gang | None:
        """Return one gang as it is now."""
        return self._gangs.get(key)

    @property
    def gang_keys(self) -> Collection[GangKey]:
        """The keys of all gangs; read it before the next event."""
        return self._gangs.keys()

    def members(self, key: GangKey) -> Mapping[TaskKey, Task]:
        """Return the tasks that name a gang, whether it is there or not; read it before the next event."""
        return self._members.get(key, EMPTY)

    def on_node(self, name: str) -> Mapping[TaskKey, Task]:
        """Return the tasks on a node; read it before the next event."""
        return self._on_node.get(name, EMPTY)

    def has_active(self) -> bool:
        """Tell whether a session would have any gang to decide about, or one that may run too long."""
        self._refresh_changed_gangs()
        return bool(self._active or self._due)

    def snapshot(self, now: float) -> Snapshot:
        """Return the cluster as it is now."""
        self._refresh_changed_gangs()
        self._books.lay_out(self._nodes, self._on_node)
        if self._tree is None:
            self._tree = HyperTree(self._hypernodes.values(), self._books.table)
        self._writable_groups.clear()
        books, overdue, lost = self._books, self._due.overdue(now), self._binds.lost(self._tasks, self._nodes)
        return Snapshot(
            now=now, space=books.space, nodes=books.table, used=books.used.copy(), releasing=books.releasing.copy(),
            scored=books.scored.copy(), pods=books.pods.copy(), gangs=dict(self._gangs), members=dict(self._members),
            on_node=dict(self._on_node), queues=dict(sorted(self._queues.items())), namesakes=dict(self._namesakes),
            totals=self._queue_totals.totals(),
            active=tuple(sorted(self._active | self._due.to_say(overdue))), overdue=overdue, next_due=self._due.next(now),
            hypernodes=self._tree, run_times=dict(self._due.times), surroundings=self.tables.shared(),
            affine=dict(self._affine), bind_requests=dict(self._binds.by_key),
            lost_requests=lost, failing_rounds=self._failing_rounds(lost), refused=dict(self._refused),
            refused_gangs=frozenset(self._refused_gangs),
            reservations=dict(self._reservations), holders=self._holders.table(), finished_runs=self._finished.runs(),
        )  # fmt: skip

    def _failing_rounds(self, lost: Mapping[str, str]) -> Mapping[GangKey, TaskKey]:
        return failing_rounds([self._binds.by_key[key] for key in lost], self._tasks, self._gangs, self._members)

    def _refresh_changed_gangs(self) -> None:
        """Recount the gangs that events have touched, and note whether a session has to look at them."""
        for key in self._changed_gangs:
            gang, members = self._gangs.get(key), self._members.get(key, EMPTY)
            if gang is not None and gang.follows_pods:
                gang = self._update_priority(gang)
            self._queue_totals.replace(key, gang, members)
            self._due.replace(key, gang, members, None if gang is None else self._queues.get(gang.queue))
            if gang is None or is_inactive(gang, members):
                self._active.discard(key)
            else:
                self._active.add(key)
        self._changed_gangs.clear()


def is_inactive(gang: Gang, members: Mapping[TaskKey, Task]) -> bool:
    """Tell whether a session has nothing to decide or to write for the gang: complete, and its status says so.

    Sessions leave these gangs out. When in doubt the answer is no: that costs time, while a wrong yes leaves a gang waiting, or its
    status wrong, for ever.
    """
    if gang.is_always_active:
        return False
    for task in members.values():
        if task.status not in _STEADY:
            return False
    statuses = [task.status for task in members.values()]
    if not statuses:
        return False
    # Its status says how many members run: it has to be written again when that has changed.
    if gang.reported is not None and gang.reported != counts_by_role(members.values(), gang.reported):
        return False
    types = {condition.type for condition in gang.conditions if condition.status == "True"}
    if all(status in COMPLETED for status in statuses):
        return not gang.has_object or gang.phase == "Completed" or (not gang.keeps_phase and "Scheduled" in types)
    ready = sum(status in READY for status in statuses)
    is_reported = (gang.phase == "Running" and "Scheduled" in types) or not gang.has_object
    if not is_reported or ready < gang.min_member:
        return False
    # Only roles and sub-groups need the state of a session to count them, which costs as much as opening the gang in one.
    has_parts = bool(gang.subgroups or gang.role_minima)
    return not has_parts or not is_short(GangState(gang, ((task, -1) for task in members.values())))


def _durations(queue: Queue | None) -> tuple[str | None, str | None]:
    """Return what a queue says of how long its gangs run."""
    texts = {} if queue is None else queue.annotations
    return texts.get(DEFAULT_DURATION), texts.get(MAX_DURATION)
