"""How long a job that has just started is left in peace.

The plugin minruntime leaves this in the session; reclaim and preempt of the profile kai read it there.
"""

from collections.abc import Mapping, Sequence

from phalanx.kai.podsets import PodSet, meets, pod_sets
from phalanx.kai.stamps import last_start
from phalanx.model.duration import seconds_of
from phalanx.model.task_status import HOLDING
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState


class MinRuntimes:
    """Protects young jobs; of an elastic one only the core."""

    def __init__(self, session: Session, defaults: Mapping[str, float], *, looks_from_fork: bool) -> None:
        """Take the times in seconds, by action, of queues without their own.

        Looking from the fork, what counts for a reclaimer is the victim's queue just below the lowest common ancestor of both.
        """
        self._session, self._defaults, self._looks_from_fork = session, defaults, looks_from_fork

    def protects(self, preemptor: GangState, victim: GangState, purpose: str) -> bool:
        """Tell whether the job is too young to lose its core."""
        started = last_start(victim)
        is_young = started is not None and self._session.now < started + self._seconds(preemptor, victim, purpose)
        if is_young:
            self._session.decisions.may_change_with_time()
        return is_young

    def spares(self, preemptor: GangState, tasks: Sequence[TaskState], purpose: str) -> bool:
        """Tell whether every leaf of a young job that is asked for tasks keeps enough of them; a task that moves starts anew."""
        asked = {id(task) for task in tasks}
        victims = {task.gang.key: task.gang for task in tasks}
        young = (victim for victim in victims.values() if self.protects(preemptor, victim, purpose))
        touched = ((victim, leaf) for victim in young for leaf in pod_sets(victim) if any(id(task) in asked for task in leaf.tasks))
        return all(_keeps_enough(victim, leaf) for victim, leaf in touched)

    def _seconds(self, preemptor: GangState, victim: GangState, purpose: str) -> float:
        line = _lineage(self._session, victim.gang.queue)
        if purpose == "reclaim" and self._looks_from_fork:
            mine = _lineage(self._session, preemptor.gang.queue)
            shared = [name for name in line if name in mine]
            line = line[max(line.index(shared[0]) - 1, 0) :] if shared else line[-1:]
        for name in line:
            bounds = self._session.queues[name].bounds
            text = "" if bounds is None else getattr(bounds, f"{purpose}_min_runtime")
            if text:
                return seconds_of(text) or 0.0
        return self._defaults[purpose]


def _keeps_enough(victim: GangState, leaf: PodSet) -> bool:
    """Tell whether a leaf keeps its minimum, or leaves as a whole a job that is whole without it."""
    held = leaf.count(HOLDING)
    return held >= leaf.minimum or (not held and meets(victim, HOLDING))


def _lineage(session: Session, name: str) -> list[str]:
    line: list[str] = []
    while name in session.queues and name not in line:
        line.append(name)
        name = session.queues[name].parent
    return line
