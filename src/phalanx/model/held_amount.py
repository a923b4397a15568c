"""How much of one resource a task holds, in the unit that people count: cores, bytes, devices and parts of them."""

from phalanx.model.resources import GPU, scale_of
from phalanx.model.shape import UNKNOWN_GPU_MEMORY_MIB
from phalanx.model.task import Task


def held_amount(task: Task, resource: str) -> float:
    """Return what a task holds once it has a place."""
    if task.reserved_gpu:
        return 0.0  # what it holds is counted with those who share it
    share = task.shape.gpu_share
    if share is not None and resource == GPU:
        return share.portion_of(UNKNOWN_GPU_MEMORY_MIB) * share.devices
    return task.shape.request.get(resource, 0) / scale_of(resource)
