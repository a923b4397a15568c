"""One scheduling session: the snapshot, the books, the plugins, and every question an action may ask.

Actions ask the session; the session asks the plugins (`questions.py`). Changes go through a `Statement`.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from phalanx.model.queue import Queue
from phalanx.model.resources import Resources
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey
from phalanx.model.task_status import EVICTABLE, Status
from phalanx.placement import Amounts, Index, Vector
from phalanx.placement.ledger import Ledger, Request
from phalanx.session import hooks
from phalanx.session.amounts import Wanted
from phalanx.session.coupled_view import CoupledNodeView
from phalanx.session.decision import Decisions
from phalanx.session.eligible import sort_out
from phalanx.session.node_view import NodeView
from phalanx.session.policy import Policy
from phalanx.session.questions import PluginFactory, Questions
from phalanx.session.shards import shard_parts
from phalanx.session.statement import Operation, OperationKind, Purpose, Statement
from phalanx.session.statement_trace import note_undone
from phalanx.session.trace import Trace
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.gang_topology import locate_gang
from phalanx.state.node_table import request_of, vector_of
from phalanx.state.snapshot import EMPTY, Snapshot

MOST_NODE_VIEWS = 128
"""Kept at once, the least recently used dropped first: 0.7 MB each on 10,000 nodes."""


class Book(Protocol):
    """Something that several plugins keep about the session together; it follows every change."""

    def changed(self, operation: Operation, undone: bool) -> None: ...


AnyBook = TypeVar("AnyBook", bound=Book)
State = TypeVar("State")


class Session(Questions):
    """What one cycle knows and does."""

    def __init__(self, snapshot: Snapshot, policy: Policy, factories: Mapping[str, PluginFactory], trace: Trace) -> None:
        """Open the session: take the books, ask every plugin to open."""
        self.snapshot, self.policy, self.trace = snapshot, policy, trace
        self.now = snapshot.now
        used, releasing = snapshot.used.copy(), snapshot.releasing.copy()
        self.ledger = Ledger(snapshot.nodes.allocatable, snapshot.nodes.reported, used, releasing)
        self.ledger.scored, self.ledger.pods = snapshot.scored.copy(), snapshot.pods.copy()
        self.decisions = Decisions(
            binds_by_request=policy.binds_by_request, options=policy.options, counts_unplaced=policy.counts_unplaced
        )
        self.queues = snapshot.queues
        self._on_node: dict[int, list[TaskState]] = {}
        self.books_are_live = policy.books_are_live
        """Placements of this session are entered in the book that Kubernetes' filters and scores read."""
        self.is_guarded = False
        """Some plugin holds gangs to their minima; outcomes carry it, so that statuses tell whether each gang is whole."""
        self.version = 0
        """A number for the state of the books: equal numbers mean equal states, also after something was undone."""
        self._latest_version = 0
        self.latest: Operation | None = None
        """The operation that took effect last, whether or not it was undone since."""
        self._requests: dict[Shape, Request] = {}
        self._requests_by_amounts: dict[Hashable, Request] = {}
        self._minima: dict[Hashable, Wanted] = {}
        self._minimum_by_gang: dict[GangState, Wanted] = {}
        self._admission_by_gang: dict[GangState, Wanted] = {}
        self._books: dict[Any, Any] = {}
        self._node_views: dict[Hashable, NodeView] = {}
        self._node_view_keys: dict[Shape, Hashable] = {}
        self._local: dict[Shape, bool] = {}
        self._of_gangs: dict[tuple[GangState, Hashable], tuple[int, Any]] = {}
        self._apart: dict[Hashable, Shape | None] = {}
        self._apart_of: dict[Shape, Shape | None] = {}
        self.shard_parts = shard_parts(policy.flags, snapshot)
        self.gangs, self.left_out = sort_out(map(self._make_gang, snapshot.active), self._queues_with_gangs())
        for state in self.gangs.values():
            locate_gang(state, snapshot.hypernodes)
        self._state: dict[type, object] = {}
        self._take_plugins(factories)
        self._ask(hooks.OPEN)

    def _queues_with_gangs(self) -> Mapping[str, Queue]:
        """Return the queues that gangs can be in."""
        if not self.policy.reads_kai_queues:
            return self.queues
        return {name: queue for name, queue in self.queues.items() if queue.bounds is not None}

    def _make_gang(self, key: GangKey) -> GangState:
        numbers = self.snapshot.nodes.number_by_name
        members = self.snapshot.members_of(key).values()
        placed = [(task, numbers.get(task.node, -1) if task.node else -1) for task in members]
        return GangState(self.snapshot.gangs[key], placed, counts_unplaced=self.policy.counts_unplaced)

    def gang(self, key: GangKey) -> GangState | None:
        """Return the state of any gang of the snapshot, complete ones included; None without group object or queue."""
        if key not in self.gangs:
            gang = self.snapshot.gangs.get(key)
            if gang is None or gang.queue not in self.queues:
                return None
            self.gangs[key] = self._make_gang(key)
            locate_gang(self.gangs[key], self.snapshot.hypernodes)
        return self.gangs[key]

    def remembered(self, gang: GangState, question: Hashable, answer: Callable[[], State]) -> State:
        """Return what depends on the statuses of a gang's members alone; it is found out again when one of them has changed."""
        known = self._of_gangs.get((gang, question))
        if known is None or known[0] != gang.version:
            known = self._of_gangs[gang, question] = (gang.version, answer())
        found: State = known[1]
        return found

    @property
    def is_moot(self) -> bool:
        """Tell whether it need not be finished: it evicts although gangs were left out, so one with all of them replaces it."""
        return self.snapshot.is_partial and bool(self.decisions.evictions)

    def close(self) -> None:
        """Ask every plugin to close."""
        self._ask(hooks.CLOSE)

    def write_state(self, value: object) -> None:
        """Leave something for actions, one of each type: what a plugin knows as a whole, as in the CycleState of kube-scheduler."""
        self._state[type(value)] = value

    def read_state(self, kind: type[State]) -> State | None:
        """Return what a plugin left of this type; None when no plugin of the session does."""
        found = self._state.get(kind)
        assert found is None or isinstance(found, kind), "written under its own type"
        return found

    # --- books -----------------------------------------------------------------------------------------------------

    def node_name(self, number: int) -> str:
        """Return the name of a node."""
        return self.snapshot.nodes.names[number]

    def request_of(self, shape: Shape) -> Request:
        """Return what a task of this shape takes, as a vector."""
        request = self._requests.get(shape)
        if request is None:
            # Every gang has a shape of its own, and many of them ask for the same.
            asked = (*shape.request.items(), shape.booked_request)
            request = self._requests_by_amounts.get(asked)
            if request is None:
                request = request_of(shape.request, self.snapshot.space, shape.booked_request)
            self._requests[shape] = self._requests_by_amounts[asked] = request
        return request

    def vector(self, resources: Resources | None) -> Vector:
        """Return amounts as a row vector of floats."""
        return vector_of(resources or {}, self.snapshot.space)

    def minimum_of(self, gang: GangState) -> Wanted:
        """Return the least that a gang asks for, as its group says; nothing if it says nothing."""
        wanted = self._minimum_by_gang.get(gang)
        if wanted is None:
            minimum = gang.gang.min_resources or {}
            key = tuple(minimum.items())
            wanted = self._minima.get(key)
            if wanted is None:
                wanted = self._minima[key] = Wanted.of(self.vector(minimum), self.snapshot.space)
            self._minimum_by_gang[gang] = wanted
        return wanted

    def minimum_to_admit(self, gang: GangState) -> Wanted:
        """Return with how much a gang counts once it is admitted: its minimum less what its gated tasks ask for."""
        counted = self._admission_by_gang.get(gang)
        if counted is None:
            counted, gated = self.minimum_of(gang), [task.task.shape.request for task in gang.tasks if task.task.is_gated]
            if gated:
                counted = Wanted.of(counted.amounts - sum(map(self.vector, gated)), self.snapshot.space)
            self._admission_by_gang[gang] = counted
        return counted

    def statement(self) -> Statement:
        """Begin a transaction."""
        return Statement(self)

    def trial(self) -> Statement:
        """Begin a transaction that no task remembers when it is discarded."""
        return Statement(self, Purpose.TRIAL)

    def dry_run(self) -> Statement:
        """Begin a transaction that is undone in any case; tasks remember what they nearly had."""
        return Statement(self, Purpose.DRY_RUN)

    def question(self) -> Statement:
        """Begin a transaction that is undone in any case and only answers a question; nobody remembers it."""
        return Statement(self, Purpose.QUESTION)

    def apply(self, operation: Operation) -> None:
        """Let an operation take effect. Only statements call this."""
        operation.move_tasks()
        self._book(operation, 1)
        self._count_version(operation)

    def bind_run(self, gangs: Sequence[Sequence[TaskState]], nodes: Sequence[int]) -> None:
        """Give tasks of one class and queue places for good, gang by gang; nobody looks at anything in between."""
        names, binds = self.snapshot.nodes.names, self.decisions.binds
        run = Operation(OperationKind.ALLOCATE, [task for tasks in gangs for task in tasks], nodes, ())
        for tasks in gangs:
            tasks[0].gang.move_all(tasks, Status.BINDING)
        for task, node in zip(run.tasks, nodes, strict=True):
            task.node, task.attempt = node, None
            binds[task.task.key] = names[node]
        self._book_on_nodes(run, 1)
        self._tell_of_run(run)
        self._count_version(run)

    def _tell_of_run(self, run: Operation) -> None:
        """Tell books and plugins of a run: as a whole those who say that they follow runs, gang by gang the others."""
        if run.tasks[-1].gang is run.gang:
            self._tell(run, 1)
            return
        books = list(self._books.values()) if self.books_are_live else []
        alone = [method for method in self._told_of_changes() if not getattr(method.__self__, "follows_runs", False)]
        for part in run.by_gang() if books or alone else ():
            for book in books:
                book.changed(part, False)
            for method in alone:
                method(self, part, False)
        for method in self._told_of_changes():
            if method not in alone:
                method(self, run, False)

    def hold(self, amounts: Amounts, nodes: Index) -> None:
        """Keep room on nodes from whoever is tried next, as if somebody were pipelined there; negative amounts let it go."""
        self.ledger.hold(amounts, nodes)
        self._latest_version += 1
        self.version = self._latest_version

    def _count_version(self, operation: Operation) -> None:
        operation.version_before, self._latest_version = self.version, self._latest_version + 1
        operation.version_after = self.version = self._latest_version
        self.latest = operation

    def revert(self, operation: Operation) -> None:
        """Undo an operation. Only statements call this."""
        evicts = operation.kind is OperationKind.EVICT
        for task, before, place in zip(operation.tasks, operation.before, operation.places, strict=True):
            task.gang.move(task, before)
            if not evicts:
                task.node = place
        self._book(operation, -1)
        if self.version == operation.version_after:
            self.version = operation.version_before
        else:
            self._latest_version += 1
            self.version = self._latest_version

    def withdraw(self, task: TaskState) -> None:
        """Make a pipelined task pending again; others are left alone."""
        if task.status is Status.PIPELINED:
            operation = Operation(OperationKind.PIPELINE, [task], [task.node], [Status.PENDING])
            self.revert(operation)
            task.node = -1
            if self.trace.level >= Purpose.DECIDE.level:
                note_undone(self, operation)

    def _book(self, operation: Operation, sign: int) -> None:
        self._book_on_nodes(operation, sign)
        self._tell(operation, sign)

    def _book_on_nodes(self, operation: Operation, sign: int) -> None:
        nodes, counts = operation.tally()
        counts = counts * sign
        request = self.request_of(operation.shape)
        if operation.kind is OperationKind.ALLOCATE:
            self.ledger.take(request, nodes, counts)
        elif operation.kind is OperationKind.PIPELINE:
            self.ledger.pipeline(request, nodes, counts)
        else:
            self.ledger.release(request, nodes, counts)
        if self.books_are_live:
            self.ledger.book(request, nodes, -counts if operation.kind is OperationKind.EVICT else counts)
        if operation.kind is OperationKind.ALLOCATE and (node_view := self._plain_view(operation.shape)) is not None:
            node_view.take(nodes, counts)

    def _plain_view(self, shape: Shape) -> NodeView | None:
        """Return how nodes look to tasks of the shape, other pods aside, if anybody has looked."""
        plain = shape if self.is_local(shape) else self.apart_from_pods(shape)
        return None if plain is None else self._node_views.get(self.class_of(plain))

    def _tell(self, operation: Operation, sign: int) -> None:
        for book in self._books.values() if self.books_are_live else ():
            book.changed(operation, sign < 0)
        self._ask(hooks.CHANGED, operation, sign < 0)

    def book(self, kind: Callable[["Session"], AnyBook]) -> AnyBook:
        """Return the session's one book of this kind, made when first asked for and told of every change from then on."""
        if kind not in self._books:
            book = kind(self)
            for operation in self._operations_so_far():
                book.changed(operation, False)
            self._books[kind] = book
        found: AnyBook = self._books[kind]
        return found

    def _operations_so_far(self) -> list[Operation]:
        """Return what this session changed so far, for a book that is made in the middle of it."""
        if not self.books_are_live:
            return []
        found = []
        for gang in self.gangs.values():
            for task in gang.tasks:
                if task.status is not task.task.status and task.node >= 0:
                    kind = OperationKind.EVICT if task.status is Status.RELEASING else OperationKind.ALLOCATE
                    found.append(Operation(kind, [task], [task.node], [task.task.status]))
        return found

    # --- nodes -----------------------------------------------------------------------------------------------------

    def running_on(self, node: int) -> list[TaskState]:
        """Return the tasks of known gangs that are on a node since before this session and may be evicted by their status.

        By name: plugins that name as many victims as a gang can spare take the first ones, whatever order the objects came in.
        """
        if node not in self._on_node:
            on_node = sorted(self.snapshot.on_node.get(self.node_name(node), EMPTY).items())
            gangs = [(task, self.gang(task.gang)) for _, task in on_node if task.gang is not None]
            states = [gang.task(task.key) for task, gang in gangs if gang is not None]
            self._on_node[node] = [state for state in states if state is not None]
        return [task for task in self._on_node[node] if task.status in EVICTABLE]

    def is_local(self, shape: Shape) -> bool:
        """Tell whether a placement of this shape changes the node view of the next one only on its own node."""
        answer = self._local.get(shape)
        if answer is None:
            answer = self._local[shape] = shape.is_self_contained and not self.couples_nodes(shape)
        return answer

    def node_view(self, shape: Shape) -> NodeView:
        """Return how the nodes look to tasks of this shape, up to date."""
        node_view = self.known_view(shape)
        node_view.refresh()
        return node_view

    def known_view(self, shape: Shape) -> NodeView:
        """Return how the nodes looked to tasks of this shape when somebody looked last.

        Shapes that differ only in labels share one node view when labels do not matter.
        """
        key = self.class_of(shape)
        node_view = self._node_views.pop(key, None)
        if node_view is None:
            node_view = self._new_node_view(shape)
            if len(self._node_views) >= MOST_NODE_VIEWS:
                del self._node_views[next(iter(self._node_views))]
        self._node_views[key] = node_view
        return node_view

    def _new_node_view(self, shape: Shape) -> NodeView:
        apart = None if self.is_local(shape) else self.apart_from_pods(shape)
        return NodeView(self, shape) if apart is None else CoupledNodeView(self, shape, self.node_view(apart))

    def apart_from_pods(self, shape: Shape) -> Shape | None:
        """Return what is left of a shape without other pods; None if more than other pods ties its places together."""
        if shape not in self._apart_of:
            self._apart_of[shape] = self._find_apart(shape) if shape.looks_at_pods_only else None
        return self._apart_of[shape]

    def _find_apart(self, shape: Shape) -> Shape | None:
        key = shape.placement_key()
        if key not in self._apart:
            apart = shape.apart()
            self._apart[key] = apart if self.is_local(apart) else None
        return self._apart[key]

    def class_of(self, shape: Shape) -> Hashable:
        """Return what shapes have in common that no node can tell apart."""
        key = self._node_view_keys.get(shape)
        if key is None:
            key = self._node_view_keys[shape] = shape.placement_key() if self.is_local(shape) else shape
        return key
