"""Members that no session places yet, and who holds them back: scheduling gates, or that they wait for another scheduler."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from phalanx.explain.reason_text import gates_text, part_text
from phalanx.model.task import Task
from phalanx.model.task_status import Status
from phalanx.state.gang_state import GangState, TaskState

MOST_NAMES = 2


def held_back(gang: GangState, ours: frozenset[str]) -> Iterator[str]:
    """Say how many members are held back and by what; `ours` are the scheduler names of pods that we place."""
    waiting = [state for state in gang.tasks if state.status is Status.PENDING]
    foreign = [state.task for state in waiting if state.task.is_foreign]
    gated = [state for state in waiting if state.task.is_gated and not state.task.is_foreign]
    if foreign:
        yield f"{part_text(len(foreign), gang)} not ours: {other_schedulers(foreign, ours)}"
    if gated:
        yield f"{part_text(len(gated), gang)} held back by {gates_text(gated)}"


def has_foreign(tasks: Iterable[TaskState]) -> bool:
    """Tell whether a member waits for another scheduler."""
    return any(state.task.is_foreign and state.status is Status.PENDING for state in tasks)


def other_schedulers(tasks: Iterable[Task], ours: frozenset[str]) -> str:
    """Say which schedulers tasks wait for, and which name was perhaps meant."""
    names = sorted({task.scheduler_name for task in tasks})
    shown = " and ".join(map(repr, names[:MOST_NAMES])) + (" and others" if len(names) > MOST_NAMES else "")
    close = get_close_matches(names[0], sorted(ours), n=1, cutoff=0.8)
    hint = f"did you mean {close[0]!r}?" if close else f"ours {'is' if len(ours) == 1 else 'are'} {', '.join(sorted(ours))}"
    return f"schedulerName is {shown}; {hint}"
