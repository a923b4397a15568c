"""Leaves what the cluster itself needs alone."""

from collections.abc import Sequence

from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState
from phalanx.state.verdict import Verdict

SYSTEM_NAMESPACE = "kube-system"
SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


class ConformancePlugin:
    """Protects system tasks from eviction."""

    name = "conformance"
    protects = "it belongs to the system"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, policy.arguments).done()

    def preemptable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name all candidates as victims but system tasks."""
        return [task for task in candidates if not _is_system(task)]

    reclaimable = preemptable

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Say what makes it a system task."""
        task = victim.task
        what = f"is in namespace {SYSTEM_NAMESPACE}" if task.namespace == SYSTEM_NAMESPACE else f"has class {task.priority_class}"
        return Verdict.refuse(self.name, "SystemPod", f"{what} and belongs to the system")

    def evictable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str) -> list[TaskState]:
        """Name victims for gang-aware actions as for preempt."""
        return self.preemptable(session, preemptor, candidates)


def _is_system(task: TaskState) -> bool:
    return task.task.namespace == SYSTEM_NAMESPACE or task.task.priority_class in SYSTEM_CLASSES
