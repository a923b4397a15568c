"""Roles of a gang that belong together on a node, or apart, as its PodGroup says.

Three annotations: `volcano.sh/task-topology-affinity` and `-anti-affinity` list groups of roles ("ps,worker;evaluator"; a group of
one role is about that role's own tasks), `-task-order` lists roles, the first ones to be placed first. From these the tasks of the
gang are put into buckets, each of which should share a node. Big buckets are placed first. A node scores by how many tasks of the
bucket it holds and could still take.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from phalanx.model.resources import MEMORY
from phalanx.model.task import GangKey, TaskKey
from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Amounts, Counts, Mask, Scores
from phalanx.session.arguments import Arguments
from phalanx.session.hooks import SortKey
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.session.trace_events import PluginNote
from phalanx.state.gang_state import GangState, TaskState

PREFIX = "volcano.sh/task-topology-"
MEBIBYTE = 1 << 20
FULL = 100.0
APART_FROM_OWN, WITH_OTHERS, WITH_OWN, APART_FROM_OTHERS = 4, 3, 2, 1
"""How soon a role is placed by what is said about it."""

Groups = list[list[str]]


@dataclass(slots=True)
class _Wishes:
    """What the annotations say about pairs of roles; a role with itself is a pair too."""

    together: set[tuple[str, str]] = field(default_factory=set)
    apart: set[tuple[str, str]] = field(default_factory=set)
    urgency: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)

    def add(self, groups: Groups, *, is_affinity: bool) -> None:
        """Enter the groups of one annotation."""
        pairs = self.together if is_affinity else self.apart
        for group in groups:
            is_own = len(group) == 1
            urgency = (WITH_OWN if is_own else WITH_OTHERS) if is_affinity else (APART_FROM_OWN if is_own else APART_FROM_OTHERS)
            pairs.update((left, right) for left in group for right in group if is_own or left != right)
            for role in group:
                self.urgency[role] = max(urgency, self.urgency.get(role, 0))

    def rank(self, role: str) -> tuple[int, int]:
        """Return the key that puts roles in order: what the user says first, then what is harder to place."""
        return -self.order.get(role, 0), -self.urgency.get(role, 0)

    def attraction(self, role: str, others: Counter[str]) -> int:
        """Count the tasks that the role belongs with, minus those that it should be apart from."""
        return sum(((role, other) in self.together) * count for other, count in others.items()) - self.repulsion(role, others)

    def repulsion(self, role: str, others: Counter[str]) -> int:
        """Count the tasks that the role should be apart from."""
        return sum(((role, other) in self.apart) * count for other, count in others.items())


@dataclass(slots=True, eq=False)
class _Bucket:
    """Tasks that should share a node."""

    index: int
    tasks: list[TaskState] = field(default_factory=list)
    """Those that waited when the session began, in the order in which they are placed."""
    waiting: int = 0
    roles: Counter[str] = field(default_factory=Counter)
    placed: Counter[int] = field(default_factory=Counter)
    """How many of its tasks are on which node."""
    weight: float = 0.0

    @property
    def size(self) -> int:
        return self.waiting + self.placed.total()


class _Buckets:
    """The buckets of one gang."""

    def __init__(self, gang: GangState, wishes: _Wishes) -> None:
        self.wishes = wishes
        self.buckets: list[_Bucket] = []
        self.by_task: dict[TaskKey, _Bucket] = {}
        self.roles_on: dict[int, Counter[str]] = {}
        self._by_node: dict[int, _Bucket] = {}
        concerned = [task for task in gang.tasks if task.task.role in wishes.urgency]
        for task in sorted((task for task in concerned if _is_placed(task)), key=lambda task: (task.node, task.task.name)):
            self._enter_placed(task)
        waiting = (task for task in concerned if task.status is Status.PENDING)
        for task in sorted(waiting, key=lambda task: (wishes.rank(task.task.role), task.task.name)):
            self._enter_waiting(task)
        self.largest = max((bucket.size for bucket in self.buckets), default=0)

    def _enter_placed(self, task: TaskState) -> None:
        """Tasks that share a node are one bucket already."""
        if task.node not in self._by_node:
            self._by_node[task.node] = self._new()
        bucket = self._by_node[task.node]
        bucket.roles[task.task.role] += 1
        self.by_task[task.task.key] = bucket
        self.place(task, task.node, 1)

    def _enter_waiting(self, task: TaskState) -> None:
        bucket = self._best_for(task.task.role)
        bucket.roles[task.task.role] += 1
        bucket.tasks.append(task)
        bucket.waiting += 1
        bucket.weight += _weight(task)
        self.by_task[task.task.key] = bucket

    def _best_for(self, role: str) -> _Bucket:
        """Return the bucket the role belongs in most, the smallest of several; a new one if it belongs in none."""
        rated = [(-self.wishes.attraction(role, bucket.roles), bucket.weight, bucket.index) for bucket in self.buckets]
        best = min(rated, default=None)
        return self._new() if best is None or best[0] > 0 else self.buckets[best[2]]

    def _new(self) -> _Bucket:
        self.buckets.append(_Bucket(len(self.buckets)))
        return self.buckets[-1]

    def place(self, task: TaskState, node: int, sign: int) -> None:
        """Count a task of a bucket on a node, or no more with -1."""
        self.by_task[task.task.key].placed[node] += sign
        self.roles_on.setdefault(node, Counter())[task.task.role] += sign


class TaskTopologyPlugin:
    """Keeps roles of a gang together or apart, as its PodGroup says."""

    name = "task-topology"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the weight."""
        settings = Arguments(self.name, policy.arguments)
        self._weight = settings.integer("task-topology.weight", 1)
        settings.done()
        self._gangs: dict[GangKey, _Buckets] = {}

    def open(self, session: Session) -> None:
        """Make the buckets of every gang that has a say about its roles and tasks to place."""
        for key, gang in session.gangs.items():
            if any(name.startswith(PREFIX) for name in gang.gang.annotations) and gang.tally.counts[Status.PENDING]:
                wishes, problem = _read(gang)
                if problem:
                    session.trace.note(PluginNote, self.name, f"wishes of gang {key} ignored, {problem}", key)
                else:
                    self._gangs[key] = _Buckets(gang, wishes)

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Follow which tasks of a bucket are placed where."""
        buckets = self._gangs.get(operation.gang.gang.key)
        if buckets is None:
            return
        evicts = operation.kind is OperationKind.EVICT
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            bucket = buckets.by_task.get(task.task.key)
            if bucket is not None:
                buckets.place(task, node, -1 if evicts != undone else 1)
                bucket.waiting += 0 if evicts else (1 if undone else -1)

    def task_order(self, session: Session, task: TaskState) -> SortKey:
        """Tasks in big buckets come first, bucket by bucket; inside one the roles in their order."""
        buckets = self._gangs.get(task.gang.gang.key)
        bucket = buckets.by_task.get(task.task.key) if buckets else None
        if buckets is None or bucket is None:
            return (1, 0, 0, (0, 0))
        return (0, -bucket.waiting, bucket.index, buckets.wishes.rank(task.task.role))

    def task_scores(self, session: Session, task: TaskState, candidates: Mask | None) -> Scores | None:
        """Score nodes by the tasks of the bucket that they hold and could take, less those that should be apart."""
        buckets = self._gangs.get(task.gang.gang.key)
        bucket = buckets.by_task.get(task.task.key) if buckets else None
        if buckets is None or bucket is None:
            return None
        room = session.ledger.idle + session.ledger.releasing
        scores = _takes(session, bucket, task, room) + _there(buckets, bucket, task, room.shape[1])
        fits = (room >= session.request_of(task.task.shape).amounts[:, None]).all(axis=0)
        return np.where(fits, scores * (self._weight * FULL / buckets.largest), 0.0)


def _there(buckets: _Buckets, bucket: _Bucket, task: TaskState, nodes: int) -> Counts:
    """Count the placed tasks of the bucket per node, less those of the gang that the task should be apart from."""
    found = np.zeros(nodes, dtype=np.int64)
    for node, count in bucket.placed.items():
        found[node] += count
    for node, roles in buckets.roles_on.items():
        found[node] -= buckets.wishes.repulsion(task.task.role, roles)
    return found


def _takes(session: Session, bucket: _Bucket, task: TaskState, room: Amounts) -> Counts:
    """Count per node the waiting tasks of the bucket that fit together; the last ones are left out first, the task itself never."""
    others = [other for other in bucket.tasks if other.status is Status.PENDING and other is not task]
    requests = [session.request_of(other.task.shape).amounts for other in (task, *others)]
    total = np.cumsum(np.array(requests, dtype=np.int64), axis=0)
    fitting = np.full(room.shape[1], len(requests), dtype=np.int64)
    for row in np.flatnonzero(total[-1]):
        fitting = np.minimum(fitting, np.searchsorted(total[:, row], room[row], side="right"))
    return np.maximum(fitting, 1)


def _is_placed(task: TaskState) -> bool:
    return task.node >= 0 and task.status in HOLDING


def _weight(task: TaskState) -> float:
    """Return how much a task asks for: a cpu, a GiB of memory and a GPU weigh about the same."""
    return sum(amount / MEBIBYTE if name == MEMORY else amount for name, amount in task.task.shape.request.items())


def _read(gang: GangState) -> tuple[_Wishes, str]:
    """Return what the annotations say, or what is wrong with them."""
    wishes, roles = _Wishes(), {task.task.role for task in gang.tasks}
    texts = {word: gang.gang.annotations.get(PREFIX + word, "") for word in ("affinity", "anti-affinity", "task-order")}
    for word, text in texts.items():
        groups = list(_groups(text))
        problem = _problem(groups, roles)
        if problem:
            return wishes, f"{PREFIX}{word}: {problem}"
        if word == "task-order":
            listed = [role for group in groups for role in group]
            wishes.order = {role: len(listed) - place for place, role in enumerate(listed)}
        else:
            wishes.add(groups, is_affinity=word == "affinity")
    return wishes, ""


def _groups(text: str) -> Iterator[list[str]]:
    for part in text.split(";"):
        roles = [role.strip() for role in part.split(",") if role.strip()]
        if roles:
            yield roles


def _problem(groups: Sequence[Sequence[str]], roles: set[str]) -> str:
    for group in groups:
        for role, count in Counter(group).items():
            if role not in roles:
                return f"no task has the role {role!r}"
            if count > 1:
                return f"role {role!r} is given twice"
    return ""
