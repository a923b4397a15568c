"""The order of jobs and of the tasks of a job."""

from phalanx.core.podsets import pod_sets
from phalanx.core.policy import PluginPolicy
from phalanx.core.session import Session
from phalanx.core.states import GangState, TaskState

TASK_PRIORITY = "kai.scheduler/task-priority"
KUBEFLOW_ROLE, RAY_TYPE = "training.kubeflow.org/job-role", "ray.io/node-type"


class _Plugin:
    """What all of these have: a name and no settings."""

    name = ""

    def __init__(self, policy: PluginPolicy) -> None:
        self.policy = policy


class PriorityPlugin(_Plugin):
    """More important jobs first."""

    name = "priority"

    def gang_order(self, session: Session, gang: GangState) -> int:
        """Higher priority first."""
        return -gang.gang.priority


class ElasticPlugin(_Plugin):
    """Jobs below their minimum first, those above it last."""

    name = "elastic"

    def gang_order(self, session: Session, gang: GangState) -> int:
        """Below the minimum, exactly at it, above it."""
        leaves = pod_sets(gang)
        if any(leaf.active < leaf.minimum for leaf in leaves):
            return 0
        return 1 if all(leaf.active == leaf.minimum for leaf in leaves) else 2


class KubeflowPlugin(_Plugin):
    """The master or launcher before its workers."""

    name = "kubeflow"

    def task_order(self, session: Session, task: TaskState) -> int:
        """Masters and launchers first."""
        return int(task.task.shape.labels.get(KUBEFLOW_ROLE) not in ("master", "launcher"))


class RayPlugin(_Plugin):
    """The head before its workers."""

    name = "ray"

    def task_order(self, session: Session, task: TaskState) -> int:
        """Heads first."""
        return int(task.task.shape.labels.get(RAY_TYPE) != "head")


class TaskOrderPlugin(_Plugin):
    """Tasks with a priority label first, the larger number first."""

    name = "taskorder"

    def task_order(self, session: Session, task: TaskState) -> tuple[int, int]:
        """Labelled tasks first, larger numbers first."""
        text = task.task.shape.labels.get(TASK_PRIORITY, "")
        is_number = text.lstrip("-").isdecimal() and len(text) < 10
        return (0, -int(text)) if is_number else (1, 0)


class SubGroupOrderPlugin(_Plugin):
    """Unsatisfied leaves first; the order itself is in `core/podsets.py`."""

    name = "subgrouporder"


class DynamicResourcesPlugin(_Plugin):
    """Claims on devices are checked and promised by the filters."""

    name = "dynamicresources"
