"""Places for tasks that are alike, found in one step instead of one by one.

One task after the other gets the best node of its moment (`placement.py`). Where nodes are packed, the best node stays the best
until it is full, and the order of the others does not change meanwhile. So the nodes are put in order once, and each takes as many
tasks as it has room for. The result is the same; a search for victims places a gang once for each of its tasks and each of its
scenarios, and of a gang of a hundred tasks it places five thousand.
"""

from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from phalanx.kubernetes.shared_gpus import uses_gpu
from phalanx.model.resources import CPU, GPU
from phalanx.model.shape import Shape
from phalanx.placement import Counts, Index, Mask
from phalanx.placement.fit import copies
from phalanx.session.session import Session
from phalanx.session.task_filters import has_own_filters
from phalanx.state.gang_state import TaskState

Places = tuple[list[int], list[bool]]
"""The node of each task, and beside it whether it has room there now."""
NO_PLACES: Places = ([], [])


class Runs:
    """Finds places for several tasks at once; `pipelines_only` never takes room at once, so idle room stays what it is."""

    def __init__(self, session: Session, *, pipelines_only: bool) -> None:
        """Prepare for one session. A trace tells each step of each task, so a traced session has no runs."""
        self._session, self._pipelines_only = session, pipelines_only
        self._is_on = session.keeps_order() and not session.trace.level

    def places(self, tasks: Sequence[TaskState], nodes: Mask) -> Places:
        """Return places for the first of these tasks, as many as are alike; none where they must be placed one by one."""
        first = tasks[0]
        if not self._is_on or len(tasks) == 1 or not _is_alike(first, tasks[1]) or not self._has_runs(first.task.shape):
            return NO_PLACES
        alike = sum(1 for _ in takewhile(lambda task: _is_alike(first, task), tasks))
        chosen, is_now = self._stretch(first, nodes, alike)
        passed = sum(1 for _ in takewhile(self._passes, tasks[: len(chosen)]))
        return chosen[:passed], is_now[:passed]

    def _has_runs(self, shape: Shape) -> bool:
        """Tell whether a place of this shape changes its own node only, and leaves less there of what nodes are packed by."""
        packed_by = GPU if uses_gpu(shape) else CPU
        return shape.gpu_share is None and shape.request.get(packed_by, 0) > 0 and self._session.is_local(shape)

    def _passes(self, task: TaskState) -> bool:
        return self._session.prefilter(task).ok and not has_own_filters(self._session, task)

    def _stretch(self, task: TaskState, nodes: Mask, count: int) -> Places:
        """Return the nodes that up to `count` tasks get one after the other, up to the first that has to be looked at again.

        That is one whose room is used up now, but not later, or that takes no more for another reason than room.
        """
        session, shape = self._session, task.task.shape
        room = np.where(session.node_view(shape).allowed & nodes, copies(session.ledger.future, session.request_of(shape)), 0)
        now = self._room_now(shape)
        taken = np.minimum(room, session.node_room(shape, slice(None)))
        if not self._pipelines_only:
            taken = np.where(now > 0, np.minimum(taken, now), taken)
        candidates = np.flatnonzero(room)
        scores = session.placement_scores(task, nodes)[candidates]
        order = candidates[np.argsort(-scores, kind="stable")]
        return self._fill(order, taken[order].clip(0, count), (taken < room)[order], now, count)

    def _fill(self, order: Index, taken: Counts, is_last: Mask, now: Counts, count: int) -> Places:
        """Fill node after node until all tasks have a place, or the order may not hold any more."""
        last = int(np.searchsorted(taken.cumsum(), count))
        if is_last[:last].any():
            last = int(is_last.argmax())
        chosen = np.repeat(order[: last + 1], taken[: last + 1])[:count]
        return chosen.tolist(), (now[chosen] > 0).tolist()

    def _room_now(self, shape: Shape) -> Counts:
        room = copies(self._session.ledger.idle, self._session.request_of(shape))
        for waits in self._session.node_waits(shape):
            room[waits] = 0
        return room


def _is_alike(task: TaskState, other: TaskState) -> bool:
    """Tell whether no node and no plugin that keeps the order of nodes can tell two tasks of an attempt apart."""
    mine, its = task.task, other.task
    is_same_shape = mine.shape is its.shape or mine.shape == its.shape
    return task.subgroup is other.subgroup and is_same_shape and mine.nominated_node == its.nominated_node
