"""Shared GPUs and the pods that reserve them.

A device that pods share is kept from everybody else by a reservation pod, which holds it whole and names its group. The group needs
one as soon as a pod is bound to it, and none when nobody uses it any more. A pod that runs on a group without a reservation
shares its device with strangers: it has to go.
"""

from dataclasses import dataclass

from phalanx.kai.bind_orders import bound_tasks
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import ON_NODE, Status
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ReservationPlan:
    """What to do about reservations."""

    create: tuple[tuple[str, str], ...]
    """Groups that need a reservation, each with its node."""
    delete: tuple[TaskKey, ...]
    """Reservation pods of groups that nobody uses."""
    unreserved: tuple[TaskKey, ...]
    """Pods that run on a group without a reservation."""


def plan_reservations(snapshot: Snapshot, decisions: Decisions) -> ReservationPlan:
    """Compare the groups in use with the reservations that are there."""
    reserved = {task.reserved_gpu for task in snapshot.reservations.values() if task.status is not Status.RELEASING}
    sharing = [task for tasks in snapshot.on_node.values() for task in tasks.values() if task.gpu_groups]
    wanted = _wanted(decisions) | {(group, task.node) for task in sharing if _binds(task) for group in task.gpu_groups}
    in_use = {group for group, _ in wanted} | {group for task in sharing for group in task.gpu_groups}
    return ReservationPlan(
        tuple(sorted((group, node) for group, node in wanted if group not in reserved)),
        tuple(sorted(key for key, task in snapshot.reservations.items() if _is_idle(task, in_use))),
        tuple(sorted(task.key for task in sharing if _runs(task) and not reserved.issuperset(task.gpu_groups))),
    )


def _wanted(decisions: Decisions) -> set[tuple[str, str]]:
    return {(group, decisions.binds[task.task.key]) for task in bound_tasks(decisions) for group, _ in task.gpu_groups}


def _binds(task: Task) -> bool:
    return task.status is Status.BINDING


def _runs(task: Task) -> bool:
    return task.status is Status.RUNNING


def _is_idle(task: Task, in_use: set[str]) -> bool:
    return task.status in ON_NODE and task.status is not Status.RELEASING and task.reserved_gpu not in in_use
