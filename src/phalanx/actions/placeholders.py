"""Pods that come to an application which runs take the room that placeholders of their role keep for them.

Each is pipelined onto the place of one, before anybody else looks for room. Nobody is evicted: a placeholder counts as leaving
in the books of this session alone. Its controller removes it once the pod has that node nominated, which it then keeps as its
own. In the other order, with the placeholder removed first, the room would be free for everybody in between.
"""

from collections.abc import Iterator

from phalanx.actions.nominated import is_room_free, keep_place
from phalanx.model.shape import Shape
from phalanx.model.task_status import EVICTABLE, Status
from phalanx.session.session import Session
from phalanx.session.task_order import pending_tasks
from phalanx.state.gang_state import GangState, TaskState

ACTION = "replace"
LEAVING = (*EVICTABLE, Status.RELEASING)
"""Statuses of placeholders that go, or can."""


def nominate_places_of_placeholders(session: Session) -> None:
    """Pipeline waiting pods onto the places of placeholders of their gang and role, in every gang that pods alone make."""
    for gang in session.gangs.values():
        if gang.gang.has_object or not gang.tally.counts[Status.PENDING]:
            continue
        replacing = [task for task in pending_tasks(gang.tasks) if task.task.replaces]
        placeholders = [task for task in gang.tasks if task.task.is_placeholder and task.status in LEAVING]
        if (placeholders or replacing) and session.gang_valid(gang).ok:
            replaced = {task.task.replaces for task in gang.tasks}
            _release_replaced(session, [task for task in placeholders if task.task.name in replaced])
            _place_replacing(session, replacing)
            _Exchange(session, gang, [task for task in placeholders if task.task.name not in replaced]).run()


def _release_replaced(session: Session, placeholders: list[TaskState]) -> None:
    """Count placeholders as leaving that an earlier session gave to a pod; their controller is about to remove them."""
    statement = session.statement()
    for task in placeholders:
        if task.status is not Status.RELEASING:
            statement.evict(task, action=ACTION, preemptor=task.gang.key, reason="")
    statement.keep()


def _place_replacing(session: Session, tasks: list[TaskState]) -> None:
    """Place pods whose placeholder has gone for them, or goes, on their nominated nodes."""
    for task in session.sorted_tasks(tasks):
        with session.trial() as statement:
            if not keep_place(session, task, session.queues[task.gang.gang.queue], statement):
                continue
            if task.status is Status.ALLOCATED:
                statement.commit()
            else:
                statement.keep()


class _Exchange:
    """Finds a placeholder for each pod of one gang that waits."""

    def __init__(self, session: Session, gang: GangState, placeholders: list[TaskState]) -> None:
        self._session, self._queue = session, session.queues[gang.gang.queue]
        self._coming = [task for task in pending_tasks(gang.tasks) if not (task.task.is_placeholder or task.task.replaces)]
        self._by_node: dict[str, dict[int, list[TaskState]]] = {}
        """Placeholders by their role and node."""
        for task in placeholders:
            self._by_node.setdefault(task.task.role, {}).setdefault(task.node, []).append(task)
        self._hopeless: set[tuple[str, Shape]] = set()

    def run(self) -> None:
        for task in self._session.sorted_tasks(self._coming):
            kind = (task.task.role, task.task.shape)
            if kind not in self._hopeless and not any(self._pipeline(task, places) for places in self._places(task)):
                self._hopeless.add(kind)

    def _places(self, task: TaskState) -> Iterator[list[TaskState]]:
        """Yield the placeholders of each node, first those of the pod's nominated node."""
        by_node = self._by_node.get(task.task.role, {})
        nominated = self._session.snapshot.nodes.number_by_name.get(task.task.nominated_node, -1)
        yield by_node.get(nominated, [])
        yield from (places for node, places in by_node.items() if node != nominated)

    def _pipeline(self, task: TaskState, places: list[TaskState]) -> bool:
        if not places:
            return False
        with self._session.trial() as statement:
            if places[-1].status is not Status.RELEASING:
                statement.evict(places[-1], action=ACTION, preemptor=task.task.key, reason="")
            if is_room_free(self._session, task, places[-1].node, self._queue) is None:
                return False
            statement.pipeline([task], [places[-1].node])
            statement.keep()
        places.pop()
        return True
