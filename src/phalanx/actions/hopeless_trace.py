"""Why gangpreempt and gangreclaim do not even search for a gang, as a sentence of the trace: one cause, with a victim if there is
one.

The checks themselves add up columns and know no task by name (`eviction_bounds.py`); who is behind the sums is looked up here, only
for a session that is traced.
"""

from collections.abc import Hashable, Iterator, Sequence

from phalanx.actions.dry_run import GangNoun, RunningNoun, why_spared
from phalanx.actions.eviction_bounds import Lack, Shortage
from phalanx.model.listing import listed
from phalanx.model.task_status import EVICTABLE
from phalanx.session.session import Session
from phalanx.session.spared import Spared
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import EMPTY

OUT_OF_REACH = (Spared.SAME_GANG, Spared.SAME_QUEUE, Spared.OTHER_QUEUE)
"""Reasons that hold for most of a cluster and tell little, if somebody is spared for another one."""


def why_hopeless(session: Session, gang: GangState, needed: Sequence[TaskState], purpose: str, shortage: Shortage) -> str:
    """Say what keeps evictions from making room for these equal tasks of a gang."""
    spared = list(_spared(session, gang, purpose))
    victims = [task for task, reason in spared if not reason]
    if shortage.lack is Lack.SURPLUS:
        resource, queues = session.snapshot.space.names[shortage.row], list(dict.fromkeys(task.gang.gang.queue for task in victims))
        return f"the queues that give have too little {resource} beyond what they keep: {listed(queues)}"
    if shortage.lack is Lack.ROOM:
        names = listed([task.task.key for task in victims]) or "nobody"
        return f"{shortage.places} of {len(needed)} task(s) would have room if all left that may: {names}"
    if victims:
        return _why_no_part_goes(victims[0])
    return _why_all_are_spared([(task, reason) for task, reason in spared if reason is not None])


def _spared(session: Session, gang: GangState, purpose: str) -> Iterator[tuple[RunningNoun, Spared | None]]:
    """Yield everybody who runs, by node and name, and why he is not considered; None if he is.

    Nouns are enough, and members that are alike have the same answer: the states of all gangs of a cluster take far longer to make.
    """
    snapshot, evicted, answers = session.snapshot, session.decisions.evictions, dict[Hashable, Spared | None]()
    for name in snapshot.nodes.names:
        for key, task in sorted(snapshot.on_node.get(name, EMPTY).items()):
            noun = snapshot.gangs.get(task.gang) if task.gang is not None else None
            if noun is None or noun.queue not in session.queues or task.status not in EVICTABLE or key in evicted:
                continue
            runner, mark = RunningNoun(task, GangNoun(noun), task.status), (noun.key, task.is_preemptable, task.status)
            if mark not in answers:
                answers[mark] = Spared.SAME_GANG if noun.key == gang.key else why_spared(session, runner, gang, purpose)
            yield runner, answers[mark]


def _why_no_part_goes(victim: RunningNoun) -> str:
    """Say why a task gives nothing that may be considered: all of its gang is needed, and more than its queue can give."""
    queue = victim.gang.gang.queue
    return f"{_place(victim)} could go only with its whole gang, and queue {queue} has too little to give for that"


def _why_all_are_spared(spared: list[tuple[RunningNoun, Spared]]) -> str:
    if not spared:
        return "no task runs that could go"
    task, reason = next((each for each in spared if each[1] not in OUT_OF_REACH), spared[0])
    return f"nobody may go for it: {_place(task)} is {reason.of_tasks}"


def _place(task: RunningNoun) -> str:
    return f"task {task.task.key} on node {task.task.node}"
