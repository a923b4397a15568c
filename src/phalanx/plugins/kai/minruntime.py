"""A job that has just started is left in peace for a while."""

from phalanx.core.duration import seconds_of
from phalanx.core.podsets import pod_sets
from phalanx.core.policy import PluginPolicy
from phalanx.core.session import Session
from phalanx.core.settings import Arguments
from phalanx.core.states import GangState
from phalanx.kai.stamps import last_start


class MinRuntimePlugin:
    """Protects young jobs; of an elastic one only the core."""

    name = "minruntime"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the times that hold for queues without their own, and where to look for them."""
        settings = Arguments(self.name, policy.arguments)
        self._defaults = {
            "reclaim": settings.text("defaultReclaimMinRuntime", "0s"), "preempt": settings.text("defaultPreemptMinRuntime", "0s"),
        }  # fmt: skip
        self._looks_from_fork = settings.text("reclaimResolveMethod", "lca") == "lca"
        settings.done()

    def protects(self, session: Session, preemptor: GangState, victim: GangState, purpose: str) -> bool:
        """Tell whether the job is too young to lose its core."""
        started = last_start(victim)
        return started is not None and session.now < started + self._seconds(session, preemptor, victim, purpose)

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
        return seconds_of(self._defaults[purpose]) or 0.0


def is_elastic(gang: GangState) -> bool:
    """Tell whether some part of a job has more tasks than its minimum."""
    return any(len(leaf.tasks) > leaf.minimum for leaf in pod_sets(gang))


def _lineage(session: Session, name: str) -> list[str]:
    line: list[str] = []
    while name in session.queues and name not in line:
        line.append(name)
        name = session.queues[name].parent
    return line
