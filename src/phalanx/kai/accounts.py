"""What groups and queues ask for and have, resource by resource: the numbers that KAI's controllers write into status."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from phalanx.kai.podsets import is_preemptible
from phalanx.model.queue import Queue
from phalanx.model.resources import GPU, PODS, VOLUME_SLOTS, Resources, add, scale_of
from phalanx.model.shape import UNKNOWN_GPU_MEMORY_MIB
from phalanx.model.task_status import HOLDING, Status
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot

ASKING = (*HOLDING, Status.PENDING, Status.PIPELINED)


@dataclass(frozen=True, slots=True)
class KaiAccount:
    """What a group or a queue requests, has, and has in groups that cannot be preempted, as KAI's status fields count it."""

    requested: Resources = field(default_factory=dict)
    allocated: Resources = field(default_factory=dict)
    nonpreemptible: Resources = field(default_factory=dict)

    def plus(self, other: "KaiAccount") -> "KaiAccount":
        """Return the sum."""
        return KaiAccount(
            add(self.requested, other.requested), add(self.allocated, other.allocated),
            add(self.nonpreemptible, other.nonpreemptible),
        )  # fmt: skip


def group_account(gang: GangState, snapshot: Snapshot) -> KaiAccount:
    """Count the members that wait or have a node after the session; those that leave or have ended count no more."""
    requested: Resources = {}
    allocated: Resources = {}
    for task in gang.tasks:
        if task.status in ASKING:
            requested = add(requested, _amounts(task, snapshot))
        if task.status in HOLDING:
            allocated = add(allocated, _amounts(task, snapshot))
    return KaiAccount(requested, allocated, {} if is_preemptible(gang) else allocated)


def _amounts(task: TaskState, snapshot: Snapshot) -> Resources:
    """Return what a task takes; a part of a GPU counts as that part."""
    shape, share = task.task.shape, task.task.shape.gpu_share
    found = {name: amount for name, amount in shape.request.items() if name != PODS and not name.startswith(VOLUME_SLOTS)}
    if share is not None:
        memory = snapshot.nodes.nodes[task.node].gpu_memory_mib if task.node >= 0 else UNKNOWN_GPU_MEMORY_MIB
        found[GPU] = round(share.portion_of(memory) * share.devices * scale_of(GPU))
    return {name: amount for name, amount in found.items() if amount}


def queue_accounts(queues: Mapping[str, Queue], accounts: Iterable[tuple[str, KaiAccount]]) -> dict[str, KaiAccount]:
    """Return the sums of KAI's queues: of the groups in a queue, and of all queues below it."""
    known = {name: queue for name, queue in sorted(queues.items()) if queue.bounds is not None}
    totals = dict.fromkeys(known, KaiAccount())
    for name, account in accounts:
        for above in _lineage(known, name):
            totals[above] = totals[above].plus(account)
    return totals


def _lineage(queues: Mapping[str, Queue], name: str) -> list[str]:
    line: list[str] = []
    while name in queues and name not in line:
        line.append(name)
        name = queues[name].parent
    return line


def children_of(queues: Mapping[str, Queue], name: str) -> list[str]:
    """Return the queues just below one."""
    return sorted(queue.name for queue in queues.values() if queue.parent == name and queue.bounds is not None)
