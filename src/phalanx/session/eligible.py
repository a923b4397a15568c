"""Which gangs take part in a session."""

from collections.abc import Iterable, Mapping

from phalanx.model.queue import Queue
from phalanx.model.task import GangKey
from phalanx.model.task_status import HOLDING
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import YES, Verdict


def sort_out(states: Iterable[GangState], queues: Mapping[str, Queue]) -> tuple[dict[GangKey, GangState], list[GangState]]:
    """Return the gangs that take part, by key, and those that do not, each told why."""
    taken: dict[GangKey, GangState] = {}
    left_out = []
    for state in states:
        verdict = _takes_part(state, queues)
        if verdict.ok:
            taken[state.gang.key] = state
        else:
            state.verdicts.append(verdict)
            left_out.append(state)
    return taken, left_out


def _takes_part(state: GangState, queues: Mapping[str, Queue]) -> Verdict:
    """Refuse gangs that are broken, without a queue, with several schedulers, or that failed in a pool and try each one once."""
    gang = state.gang
    if gang.fault:
        return Verdict.refuse("", "Invalid", gang.fault)
    if gang.needs_one_scheduler and len(schedulers := {task.task.scheduler_name for task in state.tasks}) > 1:
        named = " and ".join(map(repr, sorted(schedulers)))
        message = f"its pods name several schedulers, {named}; write the same spec.schedulerName in all of them"
        return Verdict.refuse("", "SeveralSchedulers", message)
    if gang.queue not in queues:
        return Verdict.refuse("", "QueueNotFound", f"queue {gang.queue!r} does not exist")
    pool, attempt = gang.pool, gang.latest_attempt if gang.tries_pool_once else None
    if attempt is not None and attempt.node_pool == pool and not state.tally.total(HOLDING):
        return Verdict.refuse("", "BackedOff", f"it failed in node pool {pool!r} and tries each pool once", pool=pool)
    return YES
