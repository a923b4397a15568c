"""One scheduling session: the snapshot, the books, the plugins, and every question an action may ask.

Actions ask the session; the session asks the plugins through `combine.py`. Changes go through a `Statement`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from phalanx.model.queue import Queue
from phalanx.model.resources import Resources
from phalanx.model.shape import Shape
from phalanx.model.status import EVICTABLE, Status
from phalanx.model.task import GangKey
from phalanx.placement import NO_LIMIT, Counts, Index, Mask, Scores, Vector
from phalanx.placement.ledger import Ledger, Request
from phalanx.session import combine
from phalanx.session.decision import Decisions
from phalanx.session.eligible import sort_out
from phalanx.session.hooks import Layer, Room, Scope, Site, SortKey, Term
from phalanx.session.node_view import NodeView, Valuation
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.session.shards import shard_parts
from phalanx.session.statement import Kind, Operation, Statement
from phalanx.session.task_order import tasks_in_order
from phalanx.session.trace import Trace, note_votes
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.gang_topology import locate_gang
from phalanx.state.node_table import request_of, vector_of
from phalanx.state.snapshot import EMPTY, Snapshot
from phalanx.state.verdict import Verdict, Vote

MOST_NODE_VIEWS = 128
"""Kept at once, the least recently used given up first: 0.7 MB each on 10,000 nodes."""


class Book(Protocol):
    """Something that several plugins keep about the session together; it follows every change."""

    def changed(self, operation: Operation, undone: bool) -> None: ...


AnyBook = TypeVar("AnyBook", bound=Book)


class PluginFactory(Protocol):
    """Makes a plugin for one session."""

    def __call__(self, policy: PluginPolicy) -> Any: ...


class Session:
    """What one cycle knows and does."""

    def __init__(self, snapshot: Snapshot, policy: Policy, factories: Mapping[str, PluginFactory], trace: Trace) -> None:
        """Open the session: take the books, ask every plugin to open."""
        self.snapshot, self.policy, self.trace = snapshot, policy, trace
        self.now = snapshot.now
        used, releasing = snapshot.used.copy(), snapshot.releasing.copy()
        self.ledger = Ledger(snapshot.nodes.allocatable, snapshot.nodes.reported, used, releasing)
        self.ledger.scored, self.ledger.pods = snapshot.scored.copy(), snapshot.pods.copy()
        self.decisions = Decisions(family=policy.family, options=policy.options, counts_unplaced=policy.counts_unplaced)
        self.queues = snapshot.queues
        self._voters: list[Any] = []
        self._surplus: dict[str, tuple[int, Vector]] = {}
        self._on_node: dict[int, list[TaskState]] = {}
        self.books_are_live = policy.family == "kai"
        """Placements of this session are entered in the book that Kubernetes' filters and scores read."""
        self.is_guarded = False
        """Some plugin says at the end whether each gang is whole."""
        self.version = 0
        """Names the state of the books: the same number again means the same state again."""
        self._latest_version = 0
        self._requests: dict[int, Request] = {}
        self._books: dict[Any, Any] = {}
        self._node_views: dict[Hashable, NodeView] = {}
        self._node_view_keys: dict[int, Hashable] = {}
        self._local: dict[int, bool] = {}
        self.shard_parts = shard_parts(policy.flags, snapshot)
        self.gangs, self.left_out = sort_out(map(self._make_gang, snapshot.active), self.queues)
        for state in self.gangs.values():
            locate_gang(state, snapshot.hypernodes)
        self.plugins = [
            (tier, plugin, factories[plugin.name](plugin)) for tier, plugins in enumerate(policy.tiers) for plugin in plugins
        ]
        self._hooks = self._collect()
        for _, _, plugin in self.plugins:
            if hasattr(plugin, "open"):
                plugin.open(self)

    def _collect(self) -> dict[str, combine.Tiers]:
        """Return the methods of all plugins by hook, tier by tier; a tier that has none is left out."""
        found: dict[str, dict[int, list[combine.Asked]]] = {hook: {} for hook in combine.RULES}
        for tier, plugin, instance in self.plugins:
            for hook, flag in combine.hooks_of(type(instance)):
                if flag is None or flag in plugin.enabled:
                    found[hook].setdefault(tier, []).append(getattr(instance, hook))
        return {hook: [tiers[number] for number in sorted(tiers)] for hook, tiers in found.items()}

    def _make_gang(self, key: GangKey) -> GangState:
        numbers = self.snapshot.nodes.number_by_name
        members = self.snapshot.members_of(key).values()
        placed = ((task, numbers.get(task.node, -1) if task.node else -1) for task in members)
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

    def close(self) -> None:
        """Ask every plugin to close."""
        for _, _, plugin in self.plugins:
            if hasattr(plugin, "close"):
                plugin.close(self)

    def instance(self, name: str) -> Any:
        """Return a plugin of this session by name; None when it is not loaded."""
        return next((instance for _, plugin, instance in self.plugins if plugin.name == name), None)

    def placement_scores(self, task: TaskState, offered: Mask) -> Scores:
        """Return the scores of all nodes for one task that is offered some of them."""
        total = np.zeros(len(offered))
        for method in combine.flat(self._hooks["placement_scores"]):
            total += method(self, task, offered)
        return total

    def node_subsets(self, gang: GangState, subgroup: str, tasks: Sequence[TaskState], offered: Mask) -> list[Mask]:
        """Return the sets of nodes to try for a part of a gang, best first."""
        return next(combine.answers(self._hooks["node_subsets"], self, gang, subgroup, tasks, offered), [offered])

    def plugin(self, name: str) -> PluginPolicy | None:
        """Return the settings of a plugin that is loaded."""
        return next((plugin for _, plugin, _ in self.plugins if plugin.name == name), None)

    # --- books -----------------------------------------------------------------------------------------------------

    def node_name(self, number: int) -> str:
        """Return the name of a node."""
        return self.snapshot.nodes.names[number]

    def request_of(self, shape: Shape) -> Request:
        """Return what a task of this shape takes, as a vector."""
        request = self._requests.get(id(shape))
        if request is None:
            request = self._requests[id(shape)] = request_of(shape.request, self.snapshot.space, shape.booked_request)
        return request

    def vector(self, resources: Resources | None) -> Vector:
        """Return amounts as a row vector of floats."""
        return vector_of(resources or {}, self.snapshot.space)

    def statement(self) -> Statement:
        """Begin a transaction."""
        return Statement(self)

    def trial(self) -> Statement:
        """Begin a transaction that leaves no trace when it is discarded."""
        return Statement(self, is_trial=True)

    def apply(self, operation: Operation) -> None:
        """Let an operation take effect. Only statements call this."""
        status, evicts = operation.kind.value, operation.kind is Kind.EVICT
        assert status is not None, "a restoration reverts an eviction"
        operation.gang.move_all(operation.tasks, status)
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            task.node = node
        self._book(operation, 1)
        operation.version_before, self._latest_version = self.version, self._latest_version + 1
        operation.version_after = self.version = self._latest_version
        if self.trace.level >= 3:
            self._note_operation(operation, "evicted" if evicts else status.word.lower())

    def revert(self, operation: Operation) -> None:
        """Undo an operation. Only statements call this."""
        evicts = operation.kind is Kind.EVICT
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
        """Take back the promise of a place, if the task has one."""
        if task.status is Status.PIPELINED:
            self.revert(Operation(Kind.PIPELINE, [task], [task.node], [Status.PENDING]))
            task.node = -1

    def _book(self, operation: Operation, sign: int) -> None:
        nodes, counts = operation.tally()
        counts = counts * sign
        request = self.request_of(operation.shape)
        if operation.kind is Kind.ALLOCATE:
            self.ledger.take(request, nodes, counts)
        elif operation.kind is Kind.PIPELINE:
            self.ledger.pipeline(request, nodes, counts)
        else:
            self.ledger.release(request, nodes, counts)
        if self.books_are_live:
            self.ledger.book(request, nodes, -counts if operation.kind is Kind.EVICT else counts)
            for book in self._books.values():
                book.changed(operation, sign < 0)
        for changed in combine.flat(self._hooks["changed"]):
            changed(self, operation, sign < 0)

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
        """Return what this session changed so far, for a book that is made late."""
        if not self.books_are_live:
            return []
        found = []
        for gang in self.gangs.values():
            for task in gang.tasks:
                if task.status is not task.task.status and task.node >= 0:
                    kind = Kind.EVICT if task.status is Status.RELEASING else Kind.ALLOCATE
                    found.append(Operation(kind, [task], [task.node], [task.task.status]))
        return found

    def _note_operation(self, operation: Operation, verb: str) -> None:
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            name = self.node_name(node)
            self.trace.note(3, verb, f"{verb} task {task.task.key} on node {name}", task=task.task.key, node=name)

    # --- orders ----------------------------------------------------------------------------------------------------

    def gang_key(self, gang: GangState) -> SortKey:
        """Return the key that orders gangs inside a queue."""
        return (*self.gang_order_key(gang), gang.gang.created, gang.gang.key)

    def gang_order_key(self, gang: GangState) -> tuple[SortKey, ...]:
        """Return what the plugins say about the place of a gang, without the tie-break by age."""
        return tuple(order(self, gang) for order in combine.flat(self._hooks["gang_order"]))

    def subgroup_key(self, subgroup: SubGroupState) -> SortKey:
        """Return the key that orders the sub-groups of a gang."""
        keys = tuple(order(self, subgroup) for order in combine.flat(self._hooks["subgroup_order"]))
        return (*keys, subgroup.ordinal, subgroup.id)

    def sorted_tasks(self, tasks: Iterable[TaskState]) -> list[TaskState]:
        """Return tasks in the order in which they are placed."""
        orders = list(combine.flat(self._hooks["task_order"]))
        return tasks_in_order(tasks, lambda task: tuple(order(self, task) for order in orders))

    def queue_compare(self, left: Queue, right: Queue) -> int:
        """Return -1 when the left queue is served before the right one now, else 1."""
        return -1 if self.queue_comes_first(left, right) else 1

    def queue_comes_first(self, left: Queue, right: Queue) -> bool:
        """Tell whether the left queue is served before the right one now."""
        answer = combine.first_difference(self._hooks["queue_order"], self, left, right)
        return answer < 0 if answer else (left.created, left.name) < (right.created, right.name)

    # --- gangs -----------------------------------------------------------------------------------------------------

    def gang_valid(self, gang: GangState) -> Verdict:
        """Tell whether the gang may be considered at all."""
        return combine.first_refusal(self._hooks["gang_valid"], self, gang)

    def gang_ready(self, gang: GangState) -> Verdict:
        """Tell whether enough members have a place now."""
        return combine.first_refusal(self._hooks["gang_ready"], self, gang)

    def gang_pipelined(self, gang: GangState) -> bool:
        """Tell whether enough members have a place once promises are kept."""
        return combine.vote(self._hooks["gang_pipelined"], self, gang).value > 0

    def subgroup_ready(self, subgroup: SubGroupState) -> bool:
        """Tell whether the sub-group has enough members; a gang without sub-groups answers for itself."""
        if not subgroup.gang.has_subgroups:
            return self.gang_ready(subgroup.gang).ok
        return combine.first_refusal(self._hooks["subgroup_ready"], self, subgroup).ok

    def subgroup_pipelined(self, subgroup: SubGroupState) -> bool:
        """The same once promises are kept."""
        if not subgroup.gang.has_subgroups:
            return self.gang_pipelined(subgroup.gang)
        return combine.vote(self._hooks["subgroup_pipelined"], self, subgroup).value > 0

    def gang_starving(self, gang: GangState) -> Verdict:
        """Tell whether the gang may take room from others."""
        verdict = combine.first_tier_agrees(self._hooks["gang_starving"], self, gang)
        if self.trace.level >= 4:
            self.trace.note(4, "starving", f"gang {gang.key} {'starves' if verdict.ok else 'does not starve'}", gang=gang.key)
        return verdict

    def tolerated_gap(self, gang: GangState) -> int | None:
        """Return how many members a gang may lack and still keep the places that others found; None: it keeps none."""
        return next(combine.answers(self._hooks["tolerated_gap"], self, gang), None)

    def gang_enqueueable(self, gang: GangState) -> Vote:
        """Ask whether a waiting gang may be admitted."""
        return combine.vote(self._hooks["gang_enqueueable"], self, gang)

    def gang_enqueued(self, gang: GangState) -> None:
        """Tell everybody that a gang was admitted."""
        for told in combine.flat(self._hooks["gang_enqueued"]):
            told(self, gang)

    def ready_in(self, subgroup: SubGroupState, role: str) -> int:
        """Return how many tasks of a role can be placed before anybody needs to ask whether the sub-group is ready."""
        has_subgroups = subgroup.gang.has_subgroups
        methods = list(combine.flat(self._hooks["subgroup_ready" if has_subgroups else "gang_ready"]))
        if len(methods) != 1 or not getattr(methods[0].__self__, "counts_members", False):
            return 1
        return max(subgroup.shortfall() if has_subgroups else subgroup.gang.shortfall(role), 1)

    # --- queues ----------------------------------------------------------------------------------------------------

    def queue_overused(self, queue: Queue) -> Verdict:
        """Refuse when the queue has all it should have."""
        return combine.first_refusal(self._hooks["queue_overused"], self, queue)

    def queue_room(self, queue: Queue, shape: Shape) -> Room:
        """Return how many more tasks of the shape the queue may take."""
        return combine.smallest_room(self._hooks["queue_room"], self, queue, shape)

    def queue_preemptive(self, queue: Queue, task: TaskState) -> Verdict:
        """Tell whether the queue may take room from other queues."""
        return combine.first_refusal(self._hooks["queue_preemptive"], self, queue, task)

    def queue_surplus(self, queue: Queue) -> Vector:
        """Return what the queue may lose to others: a task goes only while something it asks for is among it."""
        if self._surplus.get(queue.name, (-1, None))[0] != self.version:
            self._surplus[queue.name] = (self.version, combine.smallest_vector(self._hooks["queue_surplus"], self, queue))
        return self._surplus[queue.name][1]

    # --- victims ---------------------------------------------------------------------------------------------------

    def running_on(self, node: int) -> list[TaskState]:
        """Return the tasks of known gangs that are on a node since before this session and may be evicted by their status.

        By name: plugins that let go as many as a gang can spare take the first ones, whatever order the objects came in.
        """
        if node not in self._on_node:
            on_node = sorted(self.snapshot.on_node.get(self.node_name(node), EMPTY).items())
            gangs = [(task, self.gang(task.gang)) for _, task in on_node if task.gang is not None]
            states = [gang.task(task.key) for task, gang in gangs if gang is not None]
            self._on_node[node] = [state for state in states if state is not None]
        return [task for task in self._on_node[node] if task.status in EVICTABLE]

    def preemptable(self, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Return the candidates that may be evicted for a task of their own queue."""
        return self._victims("preemptable", self, preemptor, candidates)

    def reclaimable(self, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Return the candidates that may be evicted for a task of another queue."""
        return self._victims("reclaimable", self, preemptor, candidates)

    def evictable(self, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str) -> list[TaskState]:
        """Return the candidates that may be evicted by a gang-aware action."""
        return self._victims("evictable", self, preemptor, candidates, purpose)

    def victim_tasks(self, candidates: Sequence[TaskState]) -> list[tuple[TaskState, str]]:
        """Return the candidates that leave their nodes for nobody in particular, each with the plugin that says so."""
        return combine.first_tier_together(self._hooks["victim_tasks"], self, candidates)

    def _victims(self, hook: str, *question: object) -> list[TaskState]:
        rule = combine.victims_all_agree if self.policy.victim_rule == "all-agree" else combine.victims
        chosen, self._voters = rule(self._hooks[hook], *question)
        if self.trace.level >= 4:
            votes = {method.__self__.name: method(*question) for method in combine.flat(self._hooks[hook])}
            note_votes(self.trace, hook, question, votes, chosen)
        return chosen

    def voters(self) -> list[str]:
        """Return the plugins that decided the last question about victims."""
        return [method.__self__.name for method in self._voters]

    def victim_queue_compare(self, left: str, right: str, preemptor: str) -> int:
        """Return which of two queues gives first for the preemptor's queue; the one that is served last by default."""
        first, second = self.queues[left], self.queues[right]
        answer = combine.first_difference(self._hooks["victim_queue_order"], self, first, second, self.queues[preemptor])
        return answer or (1 if self.queue_comes_first(first, second) else -1)

    def givers(self, preemptor: Queue) -> list[str]:
        """Return the queues that may give to the preemptor's queue, in the order in which they do."""
        others = (self.queues[name] for name in self.snapshot.totals if name in self.queues and name != preemptor.name)
        asked = ((list(combine.answers(self._hooks["giving_order"], self, queue, preemptor)), queue.name) for queue in others)
        return [name for _, name in sorted(entry for entry in asked if entry[0])]

    # --- nodes -----------------------------------------------------------------------------------------------------

    def is_local(self, shape: Shape) -> bool:
        """Tell whether a placement of this shape changes the node_view of the next one only on its own node."""
        answer = self._local.get(id(shape))
        if answer is None:
            coupling = (plugin.couples_nodes for _, _, plugin in self.plugins if hasattr(plugin, "couples_nodes"))
            answer = shape.is_self_contained and not any(couples(self, shape) for couples in coupling)
            self._local[id(shape)] = answer
        return answer

    def node_view(self, shape: Shape) -> NodeView:
        """Return how the nodes look to tasks of this shape, up to date.

        Shapes that differ only in labels share one node_view when labels do not matter.
        """
        key = self.class_of(shape)
        node_view = self._node_views.pop(key, None)
        if node_view is None:
            node_view = NodeView(self, shape)
            if len(self._node_views) >= MOST_NODE_VIEWS:
                del self._node_views[next(iter(self._node_views))]
        self._node_views[key] = node_view
        node_view.refresh()
        return node_view

    def class_of(self, shape: Shape) -> Hashable:
        """Return what shapes have in common that no node can tell apart."""
        key = self._node_view_keys.get(id(shape))
        if key is None:
            key = self._node_view_keys[id(shape)] = shape.placement_key() if self.is_local(shape) else id(shape)
        return key

    def prefilter(self, task: TaskState) -> Verdict:
        """Ask for refusals that hold for every node."""
        return combine.first_refusal(self._hooks["prefilter"], self, task)

    def screen(self, shape: Shape, nodes: Index | slice) -> list[tuple[str, Sequence[Layer]]]:
        """Return each plugin's filters, with its name."""
        parts = [(method.__self__.name, method(self, shape, nodes)) for method in combine.flat(self._hooks["screen"])]
        if self.policy.flags.sharding_mode == "hard":
            outside = ~self.shard_parts[0][nodes]
            parts.append(("shard", [Layer(outside, "node(s) are not in the shard of this scheduler", is_final=True)]))
        return parts

    def task_screen(self, task: TaskState, nodes: Index | slice) -> list[Sequence[Layer]]:
        """Return the filters that depend on the task itself, plugin by plugin; empty when nobody has a say about it."""
        return list(combine.answers(self._hooks["task_screen"], self, task, nodes))

    def node_room(self, shape: Shape, nodes: Index | slice) -> Counts | int:
        """Return how many tasks each node may take beyond what resources allow."""
        room: Counts | int = NO_LIMIT
        for method in combine.flat(self._hooks["node_room"]):
            room = np.minimum(room, method(self, shape, nodes))
        return room

    def node_waits(self, shape: Shape) -> list[Mask]:
        """Return the nodes that can be promised but not given yet, plugin by plugin."""
        return list(combine.answers(self._hooks["node_waits"], self, shape))

    def value(self, shape: Shape, site: Site) -> tuple[Valuation | None, list[Term]]:
        """Return the scores of the site and the terms that depend on the candidates; None when scoring failed."""
        size = len(self.ledger.pods[site.nodes])
        valuation, relative = Valuation(np.zeros(size), np.zeros(size, dtype=np.int64)), list[Term]()
        for scores in combine.flat(self._hooks["node_scores"]):
            valuation.floats += scores(self, shape, site)
        for terms in combine.flat(self._hooks["batch_scores"]):
            answer = terms(self, shape, site)
            if answer is None:
                return None, []
            for term in answer:
                if term.values is None:
                    relative.append(term)
                else:
                    valuation.whole += term.values * term.weight
        return valuation, relative

    def task_scores(self, task: TaskState) -> Scores | None:
        """Return scores that depend on the task itself; None when nobody has any."""
        known = list(combine.answers(self._hooks["task_scores"], self, task))
        return np.sum(known, axis=0) if known else None

    # --- network domains -------------------------------------------------------------------------------------------

    def hypernode_gradients(self, scope: Scope, root: int, purpose: str = "allocate") -> list[list[int]]:
        """Return the network domains to try, best group first."""
        return next(combine.answers(self._hooks["hypernode_gradients"], self, scope, root, purpose), [[root]])

    def hypernode_scores(self, subgroup: SubGroupState, hypernodes: Sequence[int]) -> tuple[Scores, Scores]:
        """Return how well each domain suits the sub-group, and what to add to those that share the highest score."""
        total, bonus = np.zeros(len(hypernodes)), np.zeros(len(hypernodes))
        for method in combine.flat(self._hooks["hypernode_scores"]):
            scores, more = method(self, subgroup, hypernodes)
            total, bonus = total + scores, bonus + more
        return total, bonus
