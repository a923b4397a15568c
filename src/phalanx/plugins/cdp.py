"""Cooldown protection: a task that has just started is left in peace for a while, so that elastic gangs do not start and stop
without end. How long is up to the pod: label or annotation ``volcano.sh/cooldown-time``.
"""

from collections.abc import Sequence

from phalanx.model.duration import seconds_of
from phalanx.model.moment import moment_text
from phalanx.model.task import Task
from phalanx.model.task_status import Status
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState
from phalanx.state.verdict import Verdict

COOLDOWN = "volcano.sh/cooldown-time"


class CooldownPlugin:
    """Protects tasks that got their node a short while ago."""

    name = "cdp"
    protects = "it is in its cooldown time"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, policy.arguments).done()

    def preemptable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name all candidates as victims that are not cooling down."""
        free = [task for task in candidates if not _is_protected(task.task, session.now)]
        if len(free) < len(candidates):
            session.decisions.may_change_with_time()
        return free

    reclaimable = preemptable

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Say for how long a task is left in peace; the moment is the same in every session."""
        seconds = _cooldown_seconds(victim.task) or 0.0
        until = moment_text(victim.task.scheduled + seconds)
        text = f"is in its cooldown time of {seconds:g} s until {until}"
        return Verdict.refuse(self.name, "Cooldown", text, seconds=seconds, until=until)

    def evictable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str) -> list[TaskState]:
        """Name victims for gang-aware actions as for preempt."""
        return self.preemptable(session, preemptor, candidates)


def _is_protected(task: Task, now: float) -> bool:
    """Tell whether the time is not up; a task that does not run yet, or that nobody knows the start of, is not protected."""
    cooldown = _cooldown_seconds(task)
    if cooldown is None or task.status is not Status.RUNNING or not task.scheduled:
        return False
    return task.scheduled + cooldown > now


def _cooldown_seconds(task: Task) -> float | None:
    """Return how long the task is protected; None when it does not say, or nothing that can be read."""
    text = task.labels.get(COOLDOWN, task.annotations.get(COOLDOWN))
    return None if text is None else seconds_of(text)
