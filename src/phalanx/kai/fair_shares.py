"""The fair shares of a session's queues: quotas, what is over them by weight, limits; the arithmetic is in `shares.py`.

The plugin proportion leaves them in the session; the actions of the profile kai read them there.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from phalanx.kai.amounts import NAMES, ZERO, Figures, plus
from phalanx.kai.capacity import capacity_verdict, quota_verdict
from phalanx.kai.podsets import is_preemptible, next_tasks
from phalanx.kai.queue_order import Contender, Standing, standing
from phalanx.kai.shares import (
    QueueShare,
    QueueTree,
    add_pending,
    add_running,
    build_tree,
    divide_fairly,
    hold,
    release,
    with_parents,
)
from phalanx.kai.usage_window import UsageWindow, read_window, usage_by_queue
from phalanx.model.queue import Queue
from phalanx.model.resources import GPU
from phalanx.model.shape import UNKNOWN_GPU_MEMORY_MIB, Shape
from phalanx.model.task import Task
from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Mask
from phalanx.session.session import Session
from phalanx.session.shards import GPU_WORKER
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import YES, Verdict

SCHEDULER = "kai-scheduler"
HELPERS = ("kai-resource-reservation", "scaling-pod")
"""Label `app` of pods that KAI starts itself: what they hold is held for a pod of a queue."""
MOST_STANDINGS = 50_000
"""Kept at once: about 25 MB."""
_MIG = re.compile(r"nvidia\.com/mig-(\d+)g\..*")


class FairShares:
    """What the queues of a session have, may have and are owed; follows every change of the session."""

    def __init__(self, session: Session, *, k_value: float, multiplier: float) -> None:
        """Count what every queue has and asks for, and divide the cluster."""
        self._session = session
        self.multiplier = multiplier
        """How much wider than its own a reclaimer's gap to its victims' queues must be."""
        self._amounts: dict[tuple[Shape, int], Figures] = {}
        self._standings: dict[tuple[str, Figures, Figures, Figures], Standing] = {}
        self.total = _cluster(session)
        usage = self._usage()
        self.tree: QueueTree = build_tree(_share(queue, usage) for queue in session.queues.values() if queue.bounds is not None)
        for gang in session.gangs.values():
            leaf = self.tree.leaf(gang.gang.queue)
            for task in gang.tasks if leaf is not None else ():
                self._count(leaf, task)
        divide_fairly(self.tree.roots, self.total, k_value=k_value)

    def _count(self, leaf: QueueShare | None, task: TaskState) -> None:
        assert leaf is not None
        if task.status in HOLDING:
            add_running(leaf, self.amounts(task.task.shape, task.node), is_preemptible=is_preemptible(task.gang))
        elif task.status is Status.PENDING and not task.task.is_gated:
            add_pending(leaf, self.amounts(task.task.shape, -1))

    def _usage(self) -> Mapping[str, Figures]:
        """Return what queues used lately, as parts of the cluster; a queue that was not measured used what those below it did."""
        session = self._session
        options = session.policy.options.get("usage")
        window = read_window(options, "options.usage") if isinstance(options, Mapping) else UsageWindow()
        capacity = dict(zip(NAMES, (self.total[0] / 1000, *self.total[1:]), strict=True))
        history = session.snapshot.surroundings.queue_history
        if history is not None:
            session.decisions.may_change_with_time()
        measured = usage_by_queue(history, window, session.now, capacity)
        parents = {queue.name: queue.parent for queue in session.queues.values()}
        return with_parents({name: _by_name(used) for name, used in measured.items()}, parents)

    def figures(self) -> dict[str, dict[str, Mapping[str, float]]]:
        """Return quota, fair share and what is held, by queue."""
        found: dict[str, dict[str, Mapping[str, float]]] = {}
        for name, share in self.tree.by_name.items():
            kinds = {"deserved": share.deserved, "fair_share": share.fair_share, "allocated": share.allocated}
            found[name] = {kind: dict(zip(NAMES, each, strict=True)) for kind, each in kinds.items()}
        return found

    def amounts(self, shape: Shape, node: int) -> Figures:
        """Return what a task takes from its queue; a part of a GPU depends on the node, -1 before it has one."""
        place = node if shape.gpu_share is not None else -1
        found = self._amounts.get((shape, place))
        if found is None:
            cpu, memory = float(shape.request.get("cpu", 0)), float(shape.request.get("memory", 0))
            found = self._amounts[shape, place] = (cpu, memory, self._gpus(shape, place))
        return found

    def _gpus(self, shape: Shape, node: int) -> float:
        share = shape.gpu_share
        if share is not None:
            memory = self._session.snapshot.nodes.nodes[node].gpu_memory_mib if node >= 0 else UNKNOWN_GPU_MEMORY_MIB
            return round(share.portion_of(memory), 2) * share.devices
        whole = sum(amount / 1000 * _devices(name) for name, amount in shape.request.items() if _devices(name))
        return whole + self._claimed(shape)

    def _claimed(self, shape: Shape) -> float:
        claims = self._session.snapshot.surroundings.resource_claims
        named = (claims.get(f"{shape.namespace}/{use.claim}") for use in shape.resource_claims)
        wanted = (request for claim in named if claim is not None for request in claim.requests)
        return float(sum(request.count for request in wanted if "gpu" in request.device_class.lower()))

    def chunk(self, tasks: Iterable[TaskState]) -> Figures:
        """Return what some waiting tasks together take."""
        total = ZERO
        for task in tasks:
            total = plus(total, self.amounts(task.task.shape, -1))
        return total

    def held_by(self, tasks: Iterable[TaskState]) -> Figures:
        """Return what some tasks together hold where they are."""
        total = ZERO
        for task in tasks:
            total = plus(total, self.amounts(task.task.shape, task.node))
        return total

    def next_chunk(self, gang: GangState, *, counts_evicted: bool = False) -> Figures:
        """Return what the next attempt of a job takes."""
        tasks = next_tasks(self._session, gang, counts_evicted=counts_evicted)
        return self._session.remembered(gang, (FairShares.next_chunk, counts_evicted), lambda: self.chunk(tasks))

    def standing(self, contender: Contender) -> Standing:
        """Return where a queue stands among others; known from before if it held as much then.

        A search for victims compares the same queues again and again: scenarios are undone, and the next begins where they began.
        """
        key = (contender.queue.name, contender.queue.allocated, contender.job, contender.victims)
        found = self._standings.get(key)
        if found is None:
            if len(self._standings) >= MOST_STANDINGS:
                self._standings.clear()
            found = self._standings[key] = standing(contender, self.total)
        return found

    def capacity(self, gang: GangState, tasks: Sequence[TaskState]) -> Verdict:
        """Refuse tasks that would lift a queue over its limit, or over its quota if they cannot be preempted."""
        leaf = self.tree.leaf(gang.gang.queue)
        if leaf is None:
            return YES
        return capacity_verdict(leaf, self.chunk(tasks), is_preemptible=is_preemptible(gang))

    def within_quota(self, gang: GangState, tasks: Sequence[TaskState]) -> bool:
        """Tell whether tasks that cannot be preempted stay within the quotas; others need not."""
        leaf = self.tree.leaf(gang.gang.queue)
        return leaf is None or is_preemptible(gang) or quota_verdict(leaf, self.chunk(tasks)).ok

    def follow(self, operation: Operation, undone: bool) -> None:
        """Count an operation of the session; pipelined tasks hold their share as allocated ones do."""
        leaf = self.tree.leaf(operation.gang.gang.queue)
        if leaf is None:
            return
        move = release if (operation.kind is OperationKind.EVICT) != undone else hold
        for node in operation.nodes:
            move(leaf, self.amounts(operation.shape, node), is_preemptible=is_preemptible(operation.gang))


def _devices(name: str) -> int:
    """Return how many GPUs one of a resource stands for."""
    match = _MIG.fullmatch(name)
    return 1 if name == GPU else (int(match[1]) if match else 0)


def _cluster(session: Session) -> Figures:
    """Return what queues divide: all that ready nodes have, less what pods of other schedulers hold."""
    nodes = session.snapshot.nodes
    ready = np.array([node.is_ready for node in nodes.nodes], dtype=np.bool_)
    with_gpus = ready & nodes.label(GPU_WORKER).present if session.policy.options.get("restrictNodeScheduling") else ready
    foreign = _foreign(session)
    cpu, memory = (float(session.ledger.allocatable[row][ready].sum()) - foreign[row] for row in (0, 1))
    return cpu, memory, _gpus_on(session, with_gpus) - foreign[2]


def _gpus_on(session: Session, mask: Mask) -> float:
    rows, slices = session.snapshot.space.row_by_name, session.snapshot.surroundings.resource_slices.values()
    amounts = session.ledger.allocatable
    whole = sum(float(amounts[row][mask].sum()) / 1000 * _devices(name) for name, row in rows.items() if _devices(name))
    names = {session.node_name(int(number)) for number in np.flatnonzero(mask)}
    return whole + sum(
        len(part.devices) for part in slices if "gpu" in part.driver.lower() and (not part.node or part.node in names)
    )


def _foreign(session: Session) -> Figures:
    """Return what pods of other schedulers hold on ready nodes; KAI's own helpers are not among them."""
    total = ZERO
    for name, tasks in session.snapshot.on_node.items():
        number = session.snapshot.nodes.number_by_name.get(name)
        if number is not None and session.snapshot.nodes.nodes[number].is_ready:
            for task in filter(_is_foreign, tasks.values()):
                request = task.shape.request
                gpus = sum(amount / 1000 * _devices(resource) for resource, amount in request.items() if _devices(resource))
                total = plus(total, (float(request.get("cpu", 0)), float(request.get("memory", 0)), gpus))
    return total


def _is_foreign(task: Task) -> bool:
    return task.gang is None and task.scheduler != SCHEDULER and task.labels.get("app") not in HELPERS


def _by_name(usage: Mapping[str, float]) -> Figures:
    cpu, memory, gpu = (usage.get(name, 0.0) for name in NAMES)
    return cpu, memory, gpu


def _share(queue: Queue, usage: Mapping[str, Figures]) -> QueueShare:
    assert queue.bounds is not None
    quota, limit, weight = (_figures(part) for part in (queue.bounds.quota, queue.bounds.limit, queue.bounds.weight))
    return QueueShare(
        queue.name, queue.parent, created=queue.created, priority=queue.priority, deserved=quota, limit=limit, weight=weight,
        usage=usage.get(queue.name, ZERO),
    )  # fmt: skip


def _figures(values: tuple[float, ...]) -> Figures:
    cpu, memory, gpu = values
    return cpu, memory, gpu
