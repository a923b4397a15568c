"""A Volcano Job as the controller sees it: its spec with the defaults filled in, and its state."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from phalanx.dialects.schema import Meta
from phalanx.model.kinds import Document, kind_of
from phalanx.model.resources import Resources

JOB = kind_of({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"})
COMMAND = kind_of({"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command"})
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK, TASK_INDEX, TEMPLATE = "volcano.sh/task-spec", "volcano.sh/task-index", "volcano.sh/template-uid"
JOB_NAME, JOB_NAMESPACE = "volcano.sh/job-name", "volcano.sh/job-namespace"
VERSION, QUEUE, PARTITION = "volcano.sh/job-version", "volcano.sh/queue-name", "volcano.sh/partition-id"
MEMORY = "phalanx.dev/volcano-job"
"""Annotation of a Job: what the controller has to remember about it."""


class JobPhase(StrEnum):
    """The phases of a Job."""

    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


OVER = (JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED)
"""For good; a Job that was aborted may be resumed."""
END_BY_PHASE = {
    JobPhase.ABORTING: JobPhase.ABORTED,
    JobPhase.COMPLETING: JobPhase.COMPLETED,
    JobPhase.TERMINATING: JobPhase.TERMINATED,
}
AT_WORK = (JobPhase.PENDING, JobPhase.RUNNING)


class JobAction(StrEnum):
    """What a policy or a command may ask for."""

    ABORT = "AbortJob"
    RESTART = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE = "TerminateJob"
    COMPLETE = "CompleteJob"
    RESUME = "ResumeJob"
    SYNC = "SyncJob"
    ENQUEUE = "EnqueueJob"


class JobEvent(StrEnum):
    """What a policy may wait for."""

    ANY = "*"
    POD_PENDING = "PodPending"
    POD_RUNNING = "PodRunning"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    OUT_OF_SYNC = "OutOfSync"
    COMMAND_ISSUED = "CommandIssued"
    JOB_UPDATED = "JobUpdated"


@dataclass(frozen=True, slots=True)
class JobPolicy:
    """What to do about an event, or about an exit code."""

    action: JobAction
    events: tuple[JobEvent, ...] = ()
    exit_code: int | None = None
    timeout_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class JobPartition:
    """The parts of a task that are placed together."""

    size: int
    minimum: int
    topology: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ParsedTask:
    """Pods that are alike."""

    name: str
    replicas: int
    minimum: int
    template: Mapping[str, Any]
    request: Resources
    """What one of its pods asks for."""
    policies: tuple[JobPolicy, ...] = ()
    depends_on: tuple[str, ...] = ()
    is_one_enough: bool = False
    """One of the tasks it depends on is enough; else it waits for all."""
    most_retries: int = 3
    """Restarts of containers after which the task counts as failed; -1: never."""
    topology_policy: str = ""
    partition: JobPartition | None = None

    @property
    def pod_spec(self) -> Mapping[str, Any]:
        """The spec that its pods have in common."""
        found: Mapping[str, Any] = self.template.get("spec") or {}
        return found


@dataclass(frozen=True, slots=True)
class ParsedVolume:
    """A volume claim that every pod mounts."""

    path: str
    claim: str
    new_claim: Mapping[str, Any] | None = None
    """The spec of the claim, if it is the Job's own."""


@dataclass(frozen=True, slots=True)
class VolcanoJobState:
    """What the controller reads from the status."""

    phase: JobPhase = JobPhase.PENDING
    version: int = 0
    retries: int = 0
    since: float = 0.0
    """When the phase was entered."""


@dataclass(frozen=True, slots=True)
class ParsedJob:
    """A Job with the defaults filled in."""

    document: Document
    meta: Meta
    tasks: tuple[ParsedTask, ...]
    min_available: int
    queue: str
    scheduler: str
    most_retries: int
    policies: tuple[JobPolicy, ...]
    plugins: Mapping[str, Sequence[str]]
    volumes: tuple[ParsedVolume, ...]
    state: VolcanoJobState
    min_success: int | None = None
    priority_class: str = ""
    ttl_seconds: int | None = None
    topology: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.meta.name

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.meta.namespace or "default"

    @property
    def uid(self) -> str:
        """What distinguishes it from an earlier one of the same name."""
        return self.meta.uid or ""

    @property
    def replicas(self) -> int:
        """All pods it wants."""
        return sum(task.replicas for task in self.tasks)

    @property
    def group(self) -> str:
        """The name of its PodGroup."""
        return f"{self.name}-{self.uid}"

    @property
    def minima_count(self) -> bool:
        """Tell whether the minima of its tasks hold: they do where the Job as a whole does not ask for less."""
        return self.min_available >= sum(task.minimum for task in self.tasks)

    def task(self, name: str) -> ParsedTask | None:
        """Return a task by its name."""
        return next((task for task in self.tasks if task.name == name), None)

    def pod_name(self, task: ParsedTask, index: int) -> str:
        """Return the name of a pod."""
        return f"{self.name}-{task.name}-{index}"

    def hosts(self, task: ParsedTask) -> list[str]:
        """Return the names under which the pods of a task find each other; a host name in the template is the only one."""
        subdomain, own = task.pod_spec.get("subdomain") or self.name, task.pod_spec.get("hostname")
        names: Iterable[str] = [own] if own else (self.pod_name(task, index) for index in range(task.replicas))
        return [f"{name}.{subdomain}" for name in names]
