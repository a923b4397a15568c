"""Place tasks that ask for nothing but a place. They need no room, so no gang waits for them and they wait for no room.

Where `bestEffortMembers` is `with-gang` there are none: `allocate` has placed them with the others of their gang.
"""

from collections.abc import Mapping

from phalanx.actions.queue_heap import Heap
from phalanx.model.queue import Queue
from phalanx.model.task_status import Status
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.task_filters import own_filters
from phalanx.session.trace_events import TaskRefused, TaskWithoutNode
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import FitError


class BackfillAction:
    """Gives a node to best-effort tasks that `allocate` leaves to it; they are bound as soon as their gang is ready."""

    name = "backfill"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, arguments).done()

    def run(self, session: Session) -> None:
        """Take queues, gangs and tasks in order and place each task for itself."""
        held: dict[str, Statement] = {}
        for gang in self._gangs_in_order(session):
            for task in session.sorted_tasks(_best_effort_tasks(gang)):
                # A pipelined task waits for room, and this one needs none: it gives up its place and gets one now.
                session.withdraw(task)
                statement = held.setdefault(gang.key, session.statement())
                if self._place(session, task, statement) and session.gang_ready(gang).ok:
                    statement.commit()
                    del held[gang.key]
        for statement in held.values():
            statement.keep()

    def _gangs_in_order(self, session: Session) -> list[GangState]:
        queues = Heap[Queue](session.queue_comes_first)
        gangs: dict[str, list[GangState]] = {}
        for gang in session.gangs.values():
            if gang.phase not in ("", "Pending") and _best_effort_tasks(gang) and session.gang_valid(gang).ok:
                gangs.setdefault(gang.gang.queue, []).append(gang)
        for name in sorted(gangs):
            queues.push(session.queues[name])
        ordered: list[GangState] = []
        while len(queues):
            ordered.extend(sorted(gangs[queues.pop().name], key=session.gang_key))
        return ordered

    def _place(self, session: Session, task: TaskState, statement: Statement) -> bool:
        verdict = session.prefilter(task)
        if not verdict.ok:
            task.error = FitError.same_everywhere(len(session.snapshot.nodes), verdict)
            session.trace.note(TaskRefused, task.gang.key, task.task.key, verdict.plugin, verdict.message)
            return False
        node_view = session.node_view(task.task.shape)
        own = own_filters(session, task, node_view.allowed)
        for is_now, mask in node_view.groups(within=own.narrow(None)):
            if is_now and mask.any():
                node = node_view.best(mask, extra=session.task_scores(task, mask))
                if node is not None:
                    statement.allocate([task], [node])
                return node is not None
        task.error = error = node_view.error(ignores_room=True, own=own.layers)
        if session.trace.level >= 3:
            session.trace.note(TaskWithoutNode, task.gang.key, task.task.key, error.text)
        return False


def _best_effort_tasks(gang: GangState) -> list[TaskState]:
    """Return the tasks that ask for nothing and have no place, or are only pipelined."""
    if not gang.counts_unplaced or not (gang.tally.counts[Status.PENDING] or gang.tally.pipelined):
        return []
    waiting = (task for task in gang.tasks if task.status in (Status.PENDING, Status.PIPELINED) and not task.task.is_gated)
    return [task for task in waiting if task.is_backfilled]
