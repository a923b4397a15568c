"""Gangs of one class that follow each other in a queue, placed as one run.

A backlog may hold thousands of small gangs that ask for the same. One by one each would ask the plugins the same questions, open a
statement and change the books of one node. Together they are a run of tasks like those of one large gang. The result is that of
trying them one by one, which a property checks, because nothing that is decided in between could turn out otherwise:

* no other queue waits, and this one has not all it deserves before the last of them is tried (`tasks_until_overused`); where
  others wait, each gang is told to the plugins by itself, and who is next is asked after it: only the look at nodes is shared;
* the queue has room for all their tasks, and so have the nodes, now;
* each gang is ready with exactly the tasks of it that wait, all of one class, and no plugin has a say about one of them alone.

A gang of another kind ends the run and is tried by itself. So is every gang of a session that is traced, step by step.
"""

from phalanx.actions.allocate_tasks import TaskPlacer, is_same_class
from phalanx.actions.gang_line import GangLine
from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.session.session import Session
from phalanx.session.task_filters import has_own_filters
from phalanx.state.gang_state import GangState, TaskState

MOST_TASKS = 1024
"""In one run, at most: the nodes of so many are remembered while they are chosen."""


class GangRuns:
    """Places the next gangs of a queue together where that changes nothing."""

    def __init__(self, session: Session, placer: TaskPlacer) -> None:
        """Prepare for one run of an action."""
        self._session, self._placer = session, placer

    def place(self, line: GangLine, queue: Queue, *, is_alone: bool) -> bool:
        """Place the first gangs of a queue, or only the first where others wait; False if that has to be tried by itself."""
        # Before anything was placed no plan holds: on a full cluster most gangs of several queues come this way.
        if self._session.trace.level or (not is_alone and self._session.latest is None):
            return False
        first = self._tasks_of(line.first)
        if not first:
            return False
        return self._place_many(line, queue, first) if is_alone else self._place_one(line, queue, first)

    def _place_many(self, line: GangLine, queue: Queue, first: list[TaskState]) -> bool:
        gangs = self._take(line, queue, first)
        if not gangs:
            return False
        nodes, _ = self._session.node_view(first[0].task.shape).place(sum(map(len, gangs)))
        self._session.bind_run(gangs, nodes)
        return True

    def _place_one(self, line: GangLine, queue: Queue, tasks: list[TaskState]) -> bool:
        """Go on with a run of several queues: whose turn it is is asked after each gang, but the nodes are known."""
        shape = tasks[0].task.shape
        if self._session.queue_room(queue, shape).tasks < len(tasks):
            return False
        nodes = self._session.known_view(shape).planned(len(tasks))
        if nodes is None:
            return False
        self._placer.restore(tasks[0].subgroup, [])
        line.drop(1)
        self._session.bind_run([tasks], nodes)
        return True

    def _take(self, line: GangLine, queue: Queue, tasks: list[TaskState]) -> list[list[TaskState]]:
        """Take the gangs of a run out of the line; return the tasks of each, none if there is no room for the first one."""
        shape, gangs, count = tasks[0].task.shape, list[list[TaskState]](), 0
        most, turn = self._room(queue, shape, len(tasks)), self._session.tasks_until_overused(queue, shape)
        alike = self._session.class_of(shape)
        for gang in line.upcoming() if most else ():
            tasks = self._tasks_of(gang)
            if not tasks or count + len(tasks) > most or self._session.class_of(tasks[0].task.shape) != alike:
                break
            self._placer.restore(tasks[0].subgroup, [])
            gangs.append(tasks)
            count += len(tasks)
            if count >= turn:
                break
        line.drop(len(gangs))
        return gangs

    def _room(self, queue: Queue, shape: Shape, least: int) -> int:
        """Return how many tasks of the shape find room now; 0 if the queue has none for the least that are asked for."""
        most = min(self._session.queue_room(queue, shape).tasks, MOST_TASKS)
        if most < least:  # most gangs that wait on a full cluster: there is no need to look at nodes
            return 0
        node_view = self._session.node_view(shape)
        most = min(int(node_view.room(is_now=True).sum()), most)
        return most if most >= least and node_view.can_score else 0

    def _tasks_of(self, gang: GangState) -> list[TaskState]:
        """Return all tasks of a gang that wait, in order, if they can be part of a run; else none."""
        if gang.gang.label or gang.has_subgroups or gang.topology is not None:
            return []
        tasks = self._placer.tasks_left(next(iter(gang.subgroups.values())))[::-1]
        if not tasks or not self._session.is_local(tasks[0].task.shape) or not self._session.is_ready_with(gang, len(tasks)):
            return []
        for task in tasks:
            if not is_same_class(tasks[0].task, task.task):
                return []
        return tasks if self._is_plain(tasks[0]) else []

    def _is_plain(self, task: TaskState) -> bool:
        """Tell whether no plugin has a say about a task beyond its class."""
        session = self._session
        return not has_own_filters(session, task) and session.task_scores(task) is None and session.prefilter(task).ok
