"""Why gangpreempt and gangreclaim do not even search for a gang, as a sentence of the trace: one cause, with a victim if there is
one.

The checks themselves add up columns and know no task by name (`eviction_bounds.py`); who is behind the sums is looked up here, only
for a session that is traced.
"""

from collections.abc import Sequence

from phalanx.actions.dry_run import OTHER_QUEUE, SAME_GANG, SAME_QUEUE, why_spared
from phalanx.actions.eviction_bounds import Lack, Shortage
from phalanx.session.session import Session
from phalanx.session.trace import listed
from phalanx.state.gang_state import GangState, TaskState

OUT_OF_REACH = (SAME_GANG, SAME_QUEUE, OTHER_QUEUE)
"""Reasons that hold for most of a cluster and tell little, if somebody is spared for another one."""


def why_hopeless(session: Session, gang: GangState, needed: Sequence[TaskState], purpose: str, shortage: Shortage) -> str:
    """Say what keeps evictions from making room for these equal tasks of a gang."""
    running = [task for node in range(len(session.snapshot.nodes)) for task in session.running_on(node)]
    spared = [(task, why_spared(session, task, gang, purpose)) for task in running]
    victims = [task for task, reason in spared if not reason]
    if shortage.lack is Lack.SURPLUS:
        resource, queues = session.snapshot.space.names[shortage.row], list(dict.fromkeys(task.gang.gang.queue for task in victims))
        return f"the queues that give have too little {resource} beyond what they keep: {listed(queues)}"
    if shortage.lack is Lack.ROOM:
        names = listed([task.task.key for task in victims]) or "nobody"
        return f"{shortage.places} of {len(needed)} task(s) would have room if all left that may: {names}"
    return _why_no_part_goes(session, victims[0]) if victims else _why_all_are_spared(session, spared)


def _why_no_part_goes(session: Session, victim: TaskState) -> str:
    """Say why a task gives nothing that may be considered: all of its gang is needed, and more than its queue can give."""
    queue = victim.gang.gang.queue
    return f"{_place(session, victim)} could go only with its whole gang, and queue {queue} has too little to give for that"


def _why_all_are_spared(session: Session, spared: list[tuple[TaskState, str]]) -> str:
    if not spared:
        return "no task runs that could go"
    task, reason = next((each for each in spared if each[1] not in OUT_OF_REACH), spared[0])
    return f"nobody may go for it: {_place(session, task)} is {reason}"


def _place(session: Session, task: TaskState) -> str:
    return f"task {task.task.key} on node {session.node_name(task.node)}"
