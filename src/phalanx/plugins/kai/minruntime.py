"""A job that has just started is left in peace for a while."""

from collections.abc import Sequence

from phalanx.kai.podsets import pod_sets
from phalanx.kai.stamps import last_start
from phalanx.model.duration import seconds_of
from phalanx.model.status import HOLDING
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState


class MinRuntimePlugin:
    """Protects young jobs; of an elastic one only the core."""

    name = "minruntime"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the times that hold for queues without their own, and where to look for them."""
        settings = Arguments(self.name, policy.arguments)
        keys = {"reclaim": "defaultReclaimMinRuntime", "preempt": "defaultPreemptMinRuntime"}
        self._defaults = {purpose: settings.seconds(key, "0s") or 0.0 for purpose, key in keys.items()}
        self._looks_from_fork = settings.choice("reclaimResolveMethod", "lca", ("lca", "queue")) == "lca"
        settings.done()

    def protects(self, session: Session, preemptor: GangState, victim: GangState, purpose: str) -> bool:
        """Tell whether the job is too young to lose its core."""
        started = last_start(victim)
        return started is not None and session.now < started + self._seconds(session, preemptor, victim, purpose)

    def spares(self, session: Session, preemptor: GangState, tasks: Sequence[TaskState], purpose: str) -> bool:
        """Tell whether every leaf of a young job that is asked for tasks keeps its minimum; a task that moves starts anew."""
        asked = {id(task) for task in tasks}
        victims = {task.gang.key: task.gang for task in tasks}
        young = (victim for victim in victims.values() if self.protects(session, preemptor, victim, purpose))
        touched = (leaf for victim in young for leaf in pod_sets(victim) if any(id(task) in asked for task in leaf.tasks))
        return all(leaf.count(HOLDING) >= leaf.minimum for leaf in touched)

    def _seconds(self, session: Session, preemptor: GangState, victim: GangState, purpose: str) -> float:
        line = _lineage(session, victim.gang.queue)
        if purpose == "reclaim" and self._looks_from_fork:
            mine = _lineage(session, preemptor.gang.queue)
            shared = [name for name in line if name in mine]
            line = line[max(line.index(shared[0]) - 1, 0) :] if shared else line[-1:]
        for name in line:
            bounds = session.queues[name].bounds
            text = "" if bounds is None else getattr(bounds, f"{purpose}_min_runtime")
            if text:
                return seconds_of(text) or 0.0
        return self._defaults[purpose]


def _lineage(session: Session, name: str) -> list[str]:
    line: list[str] = []
    while name in session.queues and name not in line:
        line.append(name)
        name = session.queues[name].parent
    return line
