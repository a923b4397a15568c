"""The order in which tasks are placed."""

from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from operator import itemgetter
from typing import Any

from phalanx.model.task_status import Status
from phalanx.state.gang_state import TaskState


def tasks_in_order(tasks: Iterable[TaskState], keys_of: Callable[[Sequence[TaskState]], list[tuple[Any, ...]]]) -> list[TaskState]:
    """Sort by what plugins say, then by the number at the end of the names, then by age and identity."""
    found = list(tasks)
    if len(found) < 2:
        return found
    keys = keys_of(found)
    keyed = [(key, each.task.ordinal, each.task.created, each.task.uid, each) for key, each in zip(keys, found, strict=True)]
    if all(entry[1] is not None for entry in keyed):
        return [entry[-1] for entry in sorted(keyed, key=itemgetter(0, 1, 2, 3))]
    # Names with and without a number compare in circles, so the result depends on where sorting starts: always the same.
    keyed.sort(key=lambda entry: entry[2:4])
    return [entry[-1] for entry in sorted(keyed, key=cmp_to_key(_compare))]


def _compare(left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
    if left[0] != right[0]:
        return -1 if left[0] < right[0] else 1
    if left[1] is not None and right[1] is not None and left[1] != right[1]:
        return -1 if left[1] < right[1] else 1
    return -1 if left[2:4] < right[2:4] else int(left[2:4] > right[2:4])


def pending_tasks(tasks: Iterable[TaskState]) -> list[TaskState]:
    """Return the tasks that wait for a node: pending, and not held back by a scheduling gate."""
    return [task for task in tasks if task.status is Status.PENDING and not task.task.is_gated]
