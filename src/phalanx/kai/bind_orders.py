"""What it takes to bind the pods that a session gave a node: an order for each of them, as KAI's binder wants it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from phalanx.model.node import Node
from phalanx.model.resources import GPU, MIG, scale_of
from phalanx.model.shape import Shape
from phalanx.model.storage import GrantedDevice
from phalanx.model.task import Task
from phalanx.session.decision import Decisions
from phalanx.state.gang_state import TaskState
from phalanx.state.snapshot import Snapshot


class ReceivedResourceType(StrEnum):
    """In which form a pod gets its GPUs, by KAI's values of the field; a pod without GPUs is regular."""

    REGULAR = "Regular"
    FRACTION = "Fraction"
    MIG_INSTANCE = "MigInstance"


@dataclass(frozen=True, slots=True)
class ReceivedGpus:
    """How many GPUs a pod gets, and how much of each."""

    kind: ReceivedResourceType
    devices: int
    portion: float


@dataclass(frozen=True, slots=True)
class BindOrder:
    """A pod, its node and what it gets there."""

    task: Task
    node: str
    received: ReceivedGpus
    gpu_groups: tuple[str, ...] = ()
    devices_by_claim: Mapping[str, tuple[GrantedDevice, ...]] = field(default_factory=dict)
    """By the name under which the pod knows the claim."""
    most_attempts: int | None = None
    node_pool: str = ""
    """Label of its gang that says to which nodes it belongs; empty without one."""


def received(shape: Shape, node: Node) -> ReceivedGpus:
    """Return what a task of this shape gets on a node."""
    share = shape.gpu_share
    if share is not None:
        return ReceivedGpus(ReceivedResourceType.FRACTION, share.devices, share.portion_of(node.gpu_memory_mib))
    if any(name.startswith(MIG) for name in shape.request):
        return ReceivedGpus(ReceivedResourceType.MIG_INSTANCE, 0, 0.0)
    devices = shape.request.get(GPU, 0) // scale_of(GPU)
    return ReceivedGpus(ReceivedResourceType.REGULAR, devices, 1.0 if devices else 0.0)


def bind_orders(snapshot: Snapshot, decisions: Decisions) -> list[BindOrder]:
    """Return an order for every pod that the session binds, by name."""
    limit = int(str(decisions.options.get("bindBackoffLimit", -1)))
    orders = (_order(snapshot, task, decisions, limit if limit >= 0 else None) for task in bound_tasks(decisions))
    return sorted(orders, key=lambda order: order.task.key)


def bound_tasks(decisions: Decisions) -> Iterator[TaskState]:
    """Yield the tasks that the session binds."""
    for outcome in decisions.outcomes:
        yield from (task for task in outcome.state.tasks if task.task.key in decisions.binds)


def _order(snapshot: Snapshot, task: TaskState, decisions: Decisions, most_attempts: int | None) -> BindOrder:
    name = decisions.binds[task.task.key]
    node = snapshot.nodes.nodes[snapshot.nodes.number_by_name[name]]
    groups = tuple(group for group, _ in task.gpu_groups)
    return BindOrder(
        task.task, name, received(task.task.shape, node), groups, _devices(task.task.shape, decisions), most_attempts,
        task.gang.gang.node_pool,
    )  # fmt: skip


def _devices(shape: Shape, decisions: Decisions) -> dict[str, tuple[GrantedDevice, ...]]:
    uses = ((use.name, f"{shape.namespace}/{use.claim}") for use in shape.resource_claims)
    return {name: decisions.claims[claim].devices for name, claim in uses if claim in decisions.claims}
