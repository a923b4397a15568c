"""What an eviction destroys: the work since the last checkpoint, or since the start, of every device that it takes away.

The unit is a thousandth of a GPU second; of tasks without GPUs a thousandth of a CPU second.
"""

from phalanx.model.gang import Gang
from phalanx.model.moment import moment_of
from phalanx.model.resources import CPU, GPU, MIG
from phalanx.model.shape import Shape
from phalanx.model.task import Task
from phalanx.model.work_annotations import LAST_CHECKPOINT

RESTART_SECONDS = 60
"""What it takes to begin again, at least: a few seconds of work are no reason to take many pods instead of one."""


def weight_of(shape: Shape) -> int:
    """Return how many devices a task works on, in thousandths: GPUs, or where it has none, CPUs."""
    devices = sum(amount for name, amount in shape.request.items() if name == GPU or name.endswith("/gpu") or name.startswith(MIG))
    return devices or shape.request.get(CPU, 0)


def last_checkpoint(gang: Gang, task: Task | None) -> float:
    """Return when a gang last saved its work, as its group or one of its pods says; 0 if nobody does."""
    texts = (gang.annotations.get(LAST_CHECKPOINT), None if task is None else task.annotations.get(LAST_CHECKPOINT))
    moments = [moment_of(text) or 0.0 for text in texts if text]
    moments += [item.since for item in gang.conditions if item.type == LAST_CHECKPOINT and item.status == "True"]
    return max(moments, default=0.0)


def lost_by(task: Task, checkpoint: float, now: float) -> int:
    """Return what is lost if a task is evicted now; 0 when nobody says since when it runs."""
    if not task.started:
        return 0
    return (max(int(now - max(task.started, checkpoint)), 0) + RESTART_SECONDS) * weight_of(task.shape)
