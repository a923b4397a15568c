"""Room that was cleared for a gang stays its own until the gang starts: its tasks go to the nodes that were nominated for them."""

from phalanx.model.queue import Queue
from phalanx.model.task_status import HOLDING, Status
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.task_filters import own_filters
from phalanx.session.task_order import pending_tasks
from phalanx.session.trace_events import GangNominated
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.gang_topology import locate_gang


def nominated_tasks(gang: GangState) -> list[TaskState]:
    """Return the waiting tasks that have a node nominated."""
    return pending_tasks(task for task in gang.tasks if task.task.nominated_node)


def keep_nominated(session: Session, gang: GangState, queue: Queue) -> bool:
    """Place tasks on their nominated nodes: allocated where the victims are gone, pipelined where they still leave.

    It is done for all of them and only if that makes the gang whole; tell whether it was. A part would hold room that the gang
    cannot use, while the rest of it looks for places elsewhere.
    """
    with session.trial() as statement:
        if not all(keep_place(session, task, queue, statement) for task in session.sorted_tasks(nominated_tasks(gang))):
            return False
        if not _is_near_enough(session, gang):
            return False
        if session.gang_ready(gang).ok:
            statement.commit()
            # The descent into HyperNodes did not choose these nodes, so where the gang is now has to be read from its tasks.
            locate_gang(gang, session.snapshot.hypernodes)
        elif session.gang_pipelined(gang):
            statement.keep()
        else:
            return False
        session.trace.note(GangNominated, gang.key)
        return True


def retake_places(session: Session, gang: GangState, queue: Queue) -> Statement:
    """Return a statement that places tasks of a gang on their nominated nodes, as far as these have room; still to be decided."""
    statement = session.statement()
    for task in session.sorted_tasks(nominated_tasks(gang)):
        keep_place(session, task, queue, statement)
    return statement


def _is_near_enough(session: Session, gang: GangState) -> bool:
    """Tell whether the tasks are in domains as narrow as the gang and its sub-groups ask for."""
    tree = session.snapshot.hypernodes
    scopes: list[GangState | SubGroupState] = [gang, *gang.subgroups.values()]
    for scope in scopes:
        nodes = {task.node for task in scope.tasks if task.status in HOLDING or task.status is Status.PIPELINED}
        if scope.allowed_tier is not None and nodes and tree.tiers[tree.lowest_with(nodes)] > scope.allowed_tier:
            return False
    return True


def keep_place(session: Session, task: TaskState, queue: Queue, statement: Statement) -> bool:
    """Place a task on its nominated node, now or once others have left; tell whether that is possible."""
    node = session.snapshot.nodes.number_by_name.get(task.task.nominated_node)
    is_free = None if node is None else is_room_free(session, task, node, queue)
    if node is None or is_free is None:
        return False
    (statement.allocate if is_free else statement.pipeline)([task], [node])
    return True


def is_room_free(session: Session, task: TaskState, node: int, queue: Queue) -> bool | None:
    """Tell whether a task may go to a node now, or once others have left; None if neither."""
    if session.queue_room(queue, task.task.shape).tasks <= 0 or not session.prefilter(task).ok:
        return None
    node_view = session.node_view(task.task.shape)
    own = own_filters(session, task, node_view.feasible)
    return next((is_now for is_now, mask in node_view.groups(within=own.narrow(None)) if mask[node]), None)
