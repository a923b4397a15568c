"""The order of jobs and of the tasks of a job."""

from phalanx.kai.podsets import size_class
from phalanx.session.arguments import PlainPlugin
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState

TASK_PRIORITY = "kai.scheduler/task-priority"
KUBEFLOW_ROLE, RAY_TYPE = "training.kubeflow.org/job-role", "ray.io/node-type"


class KaiPriorityPlugin(PlainPlugin):
    """More important jobs first."""

    name = "priority"

    def gang_order(self, session: Session, gang: GangState) -> int:
        """Higher priority first."""
        return -gang.gang.priority


class ElasticPlugin(PlainPlugin):
    """Jobs below their minimum first, those above it last."""

    name = "elastic"

    def gang_order(self, session: Session, gang: GangState) -> int:
        """Below the minimum, exactly at it, above it."""
        return size_class(gang, lambda leaf: leaf.active)


class KubeflowPlugin(PlainPlugin):
    """The master or launcher before its workers."""

    name = "kubeflow"

    def task_order(self, session: Session, task: TaskState) -> int:
        """Masters and launchers first."""
        return int(task.task.labels.get(KUBEFLOW_ROLE) not in ("master", "launcher"))


class RayPlugin(PlainPlugin):
    """The head before its workers."""

    name = "ray"

    def task_order(self, session: Session, task: TaskState) -> int:
        """Heads first."""
        return int(task.task.labels.get(RAY_TYPE) != "head")


class TaskOrderPlugin(PlainPlugin):
    """Tasks with a priority label first, the larger number first."""

    name = "taskorder"

    def task_order(self, session: Session, task: TaskState) -> tuple[int, int]:
        """Labelled tasks first, larger numbers first."""
        text = task.task.labels.get(TASK_PRIORITY, "")
        is_number = text.lstrip("-").isdecimal() and len(text) < 10
        return (0, -int(text)) if is_number else (1, 0)


class SubGroupOrderPlugin(PlainPlugin):
    """Unsatisfied leaves first; the order itself is in `kai/podsets.py`."""

    name = "subgrouporder"


class DynamicResourcesPlugin(PlainPlugin):
    """Claims on devices are checked and reserved by the filters."""

    name = "dynamicresources"
