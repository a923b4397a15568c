"""The order in which victims go."""

from collections.abc import Iterable
from functools import cmp_to_key

from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState


def victims_in_order(session: Session, victims: Iterable[TaskState], preemptor: TaskState) -> list[TaskState]:
    """Return victims in the order in which they go: the least important first."""
    tasks = list(victims)
    place = {id(task): number for number, task in enumerate(reversed(session.sorted_tasks(tasks)))}

    def compare(left: TaskState, right: TaskState) -> int:
        return _compare(session, left, right, preemptor) or place[id(left)] - place[id(right)]

    return sorted(tasks, key=cmp_to_key(compare))


def _compare(session: Session, left: TaskState, right: TaskState, preemptor: TaskState) -> int:
    mine, its = left.gang, right.gang
    if mine is its:
        return 0
    if mine.gang.queue != its.gang.queue and mine.gang.queue in session.queues and its.gang.queue in session.queues:
        return session.victim_queue_compare(mine.gang.queue, its.gang.queue, preemptor.gang.gang.queue)
    keys = [session.gang_order_key(gang) for gang in (mine, its)]
    return 0 if keys[0] == keys[1] else (-1 if keys[0] > keys[1] else 1)
