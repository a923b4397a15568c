"""Volcano's jobs, and those that are made by the clock."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from phalanx.dialects.kinds.fields import (
    DNS_LABEL,
    NEEDED,
    Anything,
    CelRule,
    Count,
    CustomObject,
    Fields,
    Int32,
    Int64,
    Moment,
    Name,
    Positive,
    Strings,
    Text,
    checked_as,
    ruled,
)
from phalanx.dialects.kinds.volcano import NetworkTopology
from phalanx.dialects.schema import Read

JOB_PLUGINS = ("env", "ssh", "svc", "pytorch", "tensorflow", "mpi", "ray", "hcclrank")
LONGEST_POD_NAME = 63
LONGEST_CRON_NAME = 52
SCHEDULE = "^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|@every [0-9hms.]+|[^ @=]+( +[^ =]+){4})$"

Event = Literal["*", "PodPending", "PodRunning", "PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "TaskFailed"]
Action = Literal[
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob", "ResumeJob"
]
Phase = Literal[
    "Pending", "Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed", "Terminating", "Terminated", "Failed"
]

_ANY_EVENT = "(has(p.event) && p.event == '*' || has(p.events) && '*' in p.events)"
_NAMES_EVENT = "(has(q.event) && q.event == {0} || has(q.events) && {0} in q.events)"
_COUNT_EVENTS = "((has(p.event) ? 1 : 0) + (has(p.events) ? p.events.size() : 0))"


class LifecyclePolicy(Fields):
    """What is done when something happens to a pod."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "event-or-exit-code", "has(self.event) || has(self.events) || has(self.exitCode)",
            "says nothing of when it applies; write event, events or exitCode",
        ),
        CelRule(
            "not-event-and-exit-code", "!((has(self.event) || has(self.events)) && has(self.exitCode))",
            "gives both an event and an exit code; write one policy for each", ".exitCode",
        ),
        CelRule("exit-code-of-failure", "!has(self.exitCode) || self.exitCode != 0",
                "0 is success; write the exit code of a failure", ".exitCode"),
        CelRule(
            "pending-needs-timeout",
            "has(self.timeout) || "
            "!(has(self.event) && self.event == 'PodPending' || has(self.events) && 'PodPending' in self.events)",
            "PodPending applies after a while; write timeout, such as 10m", ".timeout",
        ),
    )  # fmt: skip
    action: Action
    event: Event | None = None
    events: Annotated[list[Event], Meta(max_length=8)] | None = None
    exit_code: Int32 | None = None
    timeout: Text | None = None


Policies = Annotated[
    list[LifecyclePolicy],
    Meta(
        max_length=15,
        extra=ruled(
            CelRule(
                "events-once",
                f"self.all(p, !has(p.event) || self.filter(q, {_NAMES_EVENT.format('p.event')}).size() == 1) && "
                f"self.all(p, !has(p.events) || p.events.all(e, self.filter(q, {_NAMES_EVENT.format('e')}).size() == 1 && "
                "p.events.filter(f, f == e).size() == 1 && !(has(p.event) && p.event == e)))",
                "an event is named twice; say once what is done then",
            ),
            CelRule(
                "any-event-alone",
                f"!self.exists(p, {_ANY_EVENT}) || self.map(p, {_COUNT_EVENTS}).sum() == 1",
                "'*' stands for every event; write no other event beside it",
            ),
            CelRule(
                "exit-codes-once",
                "self.all(p, !has(p.exitCode) || self.exists_one(q, has(q.exitCode) && q.exitCode == p.exitCode))",
                "an exit code is named twice; say once what is done then",
            ),
        ),
    ),
]


class DependsOn(Fields):
    """Which tasks come first."""

    name: Annotated[list[Annotated[str, Meta(max_length=63)]], Meta(max_length=64)] | None = None
    iteration: Literal["any", "all"] | None = None


GroupTopology = Annotated[Anything, Meta(extra=checked_as(NetworkTopology))]
"""Handed on to the PodGroup as it is."""


class PartitionPolicy(Fields):
    """How the pods of a task form parts that are placed together."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("minimum-within-partitions", "self.minPartitions <= self.totalPartitions",
                "more partitions are needed than there are; write at most totalPartitions", ".minPartitions"),
    )  # fmt: skip
    total_partitions: Positive
    partition_size: Positive
    min_partitions: Annotated[Count, Meta(description="Partitions that the task needs; 0 leaves it to minAvailable.")] = 0
    network_topology: GroupTopology | None = None


class PodTemplateSpec(Fields):
    """A pod's spec, of which only the containers are looked at."""

    keeps_unknown: ClassVar[bool] = True
    containers: Annotated[list[Anything], Meta(min_length=1)]


class PodTemplate(Fields):
    """The pods of a task."""

    metadata: Anything | None = None
    spec: PodTemplateSpec | None = None


class JobTask(Fields):
    """Pods that are alike."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "minimum-within-replicas", "!has(self.minAvailable) || self.minAvailable <= (has(self.replicas) ? self.replicas : 0)",
            "more pods are needed than there are; write at most replicas", ".minAvailable",
        ),
        CelRule(
            "partitions-make-replicas",
            "!has(self.partitionPolicy) || "
            "self.partitionPolicy.totalPartitions * self.partitionPolicy.partitionSize == (has(self.replicas) ? self.replicas : 0)",
            "totalPartitions times partitionSize is not replicas; write numbers that multiply to it", ".partitionPolicy",
        ),
        CelRule(
            "no-own-dependency",
            "!has(self.dependsOn) || !has(self.dependsOn.name) || !has(self.name) || !(self.name in self.dependsOn.name)",
            "a task does not wait for itself; name another one", ".dependsOn",
        ),
    )  # fmt: skip
    name: Annotated[str, Meta(max_length=63, pattern=DNS_LABEL)] | None = None
    replicas: Count | None = None
    min_available: Annotated[Count, Meta(description="Pods that the task needs; all of them by default.")] | None = None
    template: Annotated[Anything, Meta(extra=checked_as(PodTemplate))] | None = None
    policies: Policies | None = None
    topology_policy: Literal["none", "best-effort", "restricted", "single-numa-node"] | None = None
    max_retry: Count | None = None
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class JobVolume(Fields):
    """A claim that every pod mounts."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "one-claim", "has(self.volumeClaimName) != has(self.volumeClaim)",
            "write volumeClaimName for a claim that is there, or volumeClaim for a new one",
        ),
    )  # fmt: skip
    mount_path: Annotated[str, Meta(min_length=1, max_length=1024, pattern="^[^:]+$")]
    volume_claim_name: Text | None = None
    volume_claim: Anything | None = None


Volumes = Annotated[
    list[JobVolume],
    Meta(
        max_length=64,
        extra=ruled(
            CelRule(
                "paths-once",
                "self.all(v, self.exists_one(w, w.mountPath == v.mountPath))",
                "two volumes are mounted at one path; give each its own mountPath",
            )
        ),
    ),
]
Tasks = Annotated[
    list[JobTask],
    Meta(
        min_length=1,
        max_length=64,
        extra=ruled(
            CelRule(
                "task-names-once",
                "self.all(t, !has(t.name) || self.exists_one(u, has(u.name) && u.name == t.name))",
                "two tasks have one name; give each its own",
            ),
            CelRule(
                "dependencies-exist",
                "self.all(t, !has(t.dependsOn) || !has(t.dependsOn.name) || "
                "t.dependsOn.name.all(n, self.exists(u, has(u.name) && u.name == n)))",
                "a task waits for one that is not there; write the name of a task of this job",
            ),
        ),
    ),
]


class VolcanoJobSpec(Fields):
    """What a job is."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "minimum-within-job",
            "!has(self.minAvailable) || self.minAvailable <= self.tasks.map(t, has(t.replicas) ? t.replicas : 0).sum()",
            "more pods are needed than the tasks have; write at most the sum of their replicas", ".minAvailable",
        ),
        CelRule(
            "known-plugins",
            f"!has(self.plugins) || self.plugins.all(p, p in [{', '.join(map(repr, JOB_PLUGINS))}])",
            f"a plugin is unknown; write one of {', '.join(JOB_PLUGINS)}", ".plugins",
        ),
    )  # fmt: skip
    tasks: Tasks
    scheduler_name: Annotated[str, Meta(max_length=63)] | None = None
    min_available: Annotated[Count, Meta(description="Pods that start together; by default what the tasks need.")] | None = None
    volumes: Volumes | None = None
    policies: Policies | None = None
    plugins: Annotated[dict[str, list[str] | None], Meta(max_length=16)] | None = None
    running_estimate: str | None = None
    queue: Text = "default"
    max_retry: Count = 3
    ttl_seconds_after_finished: Count | None = None
    priority_class_name: Name | None = None
    min_success: Positive | None = None
    network_topology: GroupTopology | None = None


class JobState(Fields):
    """Where a job stands."""

    phase: Phase | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Moment | None = None


class TaskPhases(Fields):
    """How many pods of a task are in each phase."""

    phase: dict[str, Int32] | None = None


class JobCondition(Fields):
    """A phase, and since when."""

    status: Phase
    last_transition_time: Moment | None = None


class JobStatus(Fields):
    """How far a job has come."""

    state: JobState | None = None
    min_available: Count | None = None
    task_status_count: dict[str, TaskPhases] | None = None
    pending: Count | None = None
    running: Count | None = None
    succeeded: Count | None = None
    failed: Count | None = None
    terminating: Count | None = None
    unknown: Count | None = None
    version: Count | None = None
    retry_count: Count | None = None
    running_duration: str | None = None
    controlled_resources: Strings | None = None
    conditions: list[JobCondition] | None = None


class VolcanoJob(CustomObject):
    """Tasks that run together."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "pod-names-fit",
            "self.spec.tasks.all(t, size(self.metadata.name) + (has(t.name) ? size(t.name) : 0) + "
            f"(has(t.replicas) ? size(string(t.replicas)) : 1) + 2 <= {LONGEST_POD_NAME})",
            f"pods are called JOB-TASK-NUMBER, in at most {LONGEST_POD_NAME} characters; give the job or the task a shorter name",
            ".spec.tasks",
        ),
    )  # fmt: skip
    spec: VolcanoJobSpec
    status: JobStatus | None = None


class JobTemplateMeta(Read):
    """What the jobs are marked with."""

    labels: Strings | None = None
    annotations: Strings | None = None


class CronJobTemplate(Fields):
    """The jobs that are made."""

    spec: Annotated[Anything, Meta(extra=checked_as(VolcanoJobSpec))]
    metadata: Annotated[JobTemplateMeta, Meta(extra=checked_as(Anything))] | None = None


class CronJobSpec(Fields):
    """When jobs are made, and which."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("schedule-reads", f"self.schedule.matches('{SCHEDULE}')",
                "write five fields as in a crontab, such as 30 2 * * 1-5, or a word such as @daily", ".schedule"),
        CelRule("zone-by-name", "!has(self.timeZone) || self.timeZone != '' && self.timeZone.lowerAscii() != 'local'",
                "write a time zone such as Europe/Berlin, or leave timeZone out", ".timeZone"),
    )  # fmt: skip
    schedule: Annotated[
        str, Meta(max_length=256, description="Five fields as in a crontab, or a word such as @daily.", extra=NEEDED)
    ]
    job_template: CronJobTemplate
    time_zone: Text | None = None
    starting_deadline_seconds: Annotated[Int64, Meta(ge=0)] | None = None
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    suspend: bool = False
    successful_jobs_history_limit: Count = 3
    failed_jobs_history_limit: Count = 1


class CronJobStatus(Fields):
    """Which jobs were made."""

    active: list[Anything] | None = None
    last_schedule_time: Moment | None = None
    last_successful_time: Moment | None = None


class CronJob(CustomObject):
    """Jobs by the clock."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "room-for-job-names", f"size(self.metadata.name) <= {LONGEST_CRON_NAME}",
            f"jobs get eleven characters more than this name; write at most {LONGEST_CRON_NAME}",
        ),
    )  # fmt: skip
    spec: CronJobSpec
    status: CronJobStatus | None = None
