"""Reads a Volcano Job: what is missing is implied as Volcano's webhook does, what is wrong is refused with what to write."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from phalanx.controllers.volcano_job.job import (
    JobAction,
    JobEvent,
    JobPartition,
    JobPhase,
    JobPolicy,
    ParsedJob,
    ParsedTask,
    ParsedVolume,
    VolcanoJobState,
)
from phalanx.controllers.volcano_job.plugins import IMPLIED, check_plugins
from phalanx.dialects.field_values import seconds
from phalanx.dialects.kinds.reader import blank, reader_of
from phalanx.dialects.kinds.volcano_jobs import (
    JobState,
    JobStatus,
    JobTask,
    JobVolume,
    LifecyclePolicy,
    PartitionPolicy,
    VolcanoJob,
)
from phalanx.dialects.pod_defaults import with_implied_requests
from phalanx.dialects.pods import pod_request
from phalanx.dialects.reading import read_as
from phalanx.dialects.schema import Read, ShapeSpec, Strings
from phalanx.dialects.wrong_field import readable
from phalanx.errors import SnapshotError
from phalanx.model.bounds import MADE_PODS
from phalanx.model.duration import seconds_of
from phalanx.model.kinds import Document
from phalanx.model.resources import Resources

DEFAULT_QUEUE, DEFAULT_SCHEDULER, DEFAULT_RETRIES = "default", "volcano", 3
INTERNAL_EVENTS = (JobEvent.OUT_OF_SYNC, JobEvent.COMMAND_ISSUED, JobEvent.JOB_UPDATED)
INTERNAL_ACTIONS = (JobAction.SYNC, JobAction.ENQUEUE)
ITERATIONS = ("", "any", "all")
Word = TypeVar("Word", bound=StrEnum)


def read_job(document: Document) -> ParsedJob:
    """Return a Job; one that cannot be run is refused."""
    try:
        read = read_as(document, reader_of(VolcanoJob))
    except msgspec.ValidationError as problem:
        raise SnapshotError(readable(problem)) from problem
    job = _job(document, read)
    _check_tasks(job)
    _check_order(job)
    check_plugins(job.plugins)
    return job


def _job(document: Document, read: VolcanoJob) -> ParsedJob:
    spec = read.spec
    tasks = tuple(_task(task, number) for number, task in enumerate(spec.tasks))
    return ParsedJob(
        document=document, meta=read.metadata, tasks=tasks,
        min_available=spec.min_available or sum(task.minimum for task in tasks),
        queue=spec.queue or DEFAULT_QUEUE, scheduler=spec.scheduler_name or DEFAULT_SCHEDULER,
        most_retries=spec.max_retry or DEFAULT_RETRIES,
        policies=_policies(spec.policies, "spec"), plugins=_plugins(spec.plugins or {}),
        volumes=tuple(_volume(read.metadata.name, volume, number) for number, volume in enumerate(spec.volumes or ())),
        state=_state_of(read.status or blank(JobStatus)), min_success=spec.min_success,
        priority_class=spec.priority_class_name or "", ttl_seconds=spec.ttl_seconds_after_finished, topology=spec.network_topology,
    )  # fmt: skip


def _state_of(status: JobStatus) -> VolcanoJobState:
    state = status.state or blank(JobState)
    phase = _one_of(JobPhase, state.phase or JobPhase.PENDING, "status.state.phase")
    since = seconds(state.last_transition_time, where="status.state.lastTransitionTime")
    return VolcanoJobState(phase, status.version or 0, status.retry_count or 0, since)


def _plugins(plugins: Mapping[str, Sequence[str] | None]) -> dict[str, Sequence[str]]:
    """Return the plugins, with those that they cannot do without."""
    implied = (name for plugin in plugins for name in IMPLIED.get(plugin, ()))
    return {name: plugins.get(name) or () for name in dict.fromkeys((*plugins, *implied))}


# --- tasks ---------------------------------------------------------------------------------------------------------------


def _task(read: JobTask, number: int) -> ParsedTask:
    where, replicas = f"spec.tasks[{number}]", 1 if read.replicas is None else read.replicas
    partition = None if read.partition_policy is None else _partition(read.partition_policy, replicas, f"{where}.partitionPolicy")
    implied = partition.minimum * partition.size if partition is not None and partition.minimum else replicas
    _check_metadata(read.template or {}, f"{where}.template")
    after = read.depends_on
    if after is not None and (after.iteration or "") not in ITERATIONS:
        raise SnapshotError(f"{where}.dependsOn.iteration: {after.iteration!r} is unknown; write 'any' or 'all'")
    return ParsedTask(
        name=read.name or f"default{number}", replicas=replicas,
        minimum=implied if read.min_available is None else read.min_available,
        template=read.template or {}, request=_request(read.template or {}, f"{where}.template"),
        policies=_policies(read.policies, where), depends_on=tuple((after and after.name) or ()),
        is_one_enough=after is not None and after.iteration == "any", topology_policy=read.topology_policy or "",
        most_retries=read.max_retry or DEFAULT_RETRIES, partition=partition,
    )  # fmt: skip


class TemplateMeta(Read):
    """The metadata of a template of pods, as far as pods get it."""

    labels: Strings = None
    annotations: Strings = None


def _check_metadata(template: Document, where: str) -> None:
    try:
        read_as(template.get("metadata") or {}, TemplateMeta)
    except msgspec.ValidationError as problem:
        raise SnapshotError(f"{where}.metadata.{readable(problem)}") from problem


def _request(template: Document, where: str) -> Resources:
    try:
        spec = read_as(template.get("spec") or {}, dict[str, Any])
        read_as(spec, ShapeSpec)
        return pod_request(read_as(with_implied_requests(spec), ShapeSpec))
    except (msgspec.ValidationError, SnapshotError) as problem:
        text = readable(problem) if isinstance(problem, msgspec.ValidationError) else str(problem).removeprefix("spec.")
        raise SnapshotError(f"{where}.spec.{text}") from problem


def _partition(read: PartitionPolicy, replicas: int, where: str) -> JobPartition:
    if read.partition_size < 1 or read.total_partitions * read.partition_size != replicas:
        raise SnapshotError(
            f"{where}: {read.total_partitions} partitions of {read.partition_size} pods are not the task's {replicas} replicas;"
            " write totalPartitions and partitionSize whose product is replicas"
        )
    return JobPartition(read.partition_size, read.min_partitions, read.network_topology)


def _volume(job: str, read: JobVolume, number: int) -> ParsedVolume:
    where = f"spec.volumes[{number}]"
    if not read.mount_path:
        raise SnapshotError(f"{where}.mountPath: missing; write the path at which pods see the volume, such as '/data'")
    if not read.volume_claim_name and read.volume_claim is None:
        raise SnapshotError(f"{where}: names no claim; write volumeClaimName, or volumeClaim with the spec of a new one")
    return ParsedVolume(read.mount_path, read.volume_claim_name or f"{job}-volume-{number}", read.volume_claim)


def _check_tasks(job: ParsedJob) -> None:
    if not job.tasks:
        raise SnapshotError("spec.tasks: empty; write at least one task with replicas and a template")
    for number, task in enumerate(job.tasks):
        for problem in _problems_of(job, task):
            raise SnapshotError(f"spec.tasks[{number}].{problem}")
    if job.replicas > MADE_PODS.most:
        raise SnapshotError(f"spec.tasks: {job.replicas:,} replicas are too many: {MADE_PODS.text}")
    if job.min_available < 0:
        raise SnapshotError(f"spec.minAvailable: {job.min_available} is negative; write 1 or more")
    if job.min_available > job.replicas:
        raise SnapshotError(
            f"spec.minAvailable: {job.min_available} is more than the {job.replicas} replicas of all tasks;"
            f" write {job.replicas} or less"
        )
    if job.min_success is not None and not 0 < job.min_success <= job.replicas:
        raise SnapshotError(f"spec.minSuccess: {job.min_success} is not possible; write a number from 1 to {job.replicas}")


def _problems_of(job: ParsedJob, task: ParsedTask) -> Iterator[str]:
    if sum(other.name == task.name for other in job.tasks) > 1:
        yield f"name: {task.name!r} is given twice; give every task a name of its own"
    if task.replicas < 0:
        yield f"replicas: {task.replicas} is negative; write 0 or more"
    if not 0 <= task.minimum <= task.replicas:
        yield f"minAvailable: {task.minimum} is not possible with {task.replicas} replicas; write 0 to {task.replicas}"
    if not task.pod_spec.get("containers"):
        yield "template.spec.containers: empty; write at least one container"


def _check_order(job: ParsedJob) -> None:
    """Refuse tasks that depend on unknown ones, on themselves, or on each other in a circle."""
    names, done = {task.name for task in job.tasks}, set[str]()
    for number, task in enumerate(job.tasks):
        unknown = [name for name in task.depends_on if name not in names]
        if unknown:
            known = ", ".join(sorted(names - {task.name})) or "none"
            raise SnapshotError(f"spec.tasks[{number}].dependsOn.name: no task is called {unknown[0]!r}; known are {known}")
    left = list(job.tasks)
    while left:
        free = [task for task in left if done.issuperset(task.depends_on)]
        if not free:
            circle = ", ".join(task.name for task in left)
            raise SnapshotError(f"spec.tasks: {circle} wait for each other in a circle; take one of their dependsOn away")
        done.update(task.name for task in free)
        left = [task for task in left if task.name not in done]


# --- policies ------------------------------------------------------------------------------------------------------------


def _policies(reads: Sequence[LifecyclePolicy] | None, where: str) -> tuple[JobPolicy, ...]:
    return tuple(_policy(read, f"{where}.policies[{number}]") for number, read in enumerate(reads or ()))


def _policy(read: LifecyclePolicy, where: str) -> JobPolicy:
    names = [*([read.event] if read.event else ()), *(read.events or ())]
    if bool(names) == (read.exit_code is not None):
        raise SnapshotError(f"{where}: needs either an event or an exitCode; write one of them, such as event: PodFailed")
    if read.exit_code == 0:
        raise SnapshotError(f"{where}.exitCode: 0 is no failure; write another number, or event: TaskCompleted")
    events = tuple(_one_of(JobEvent, name, f"{where}.event", INTERNAL_EVENTS) for name in names)
    action = _one_of(JobAction, read.action, f"{where}.action", INTERNAL_ACTIONS)
    timeout = 0.0 if read.timeout is None else seconds_of(read.timeout)
    if timeout is None:
        raise SnapshotError(f"{where}.timeout: {read.timeout!r} is not a duration; write for example '10m'")
    if JobEvent.POD_PENDING in events and not timeout:
        raise SnapshotError(f"{where}.timeout: missing; every pod is pending at first, so write how long it may be, such as '10m'")
    return JobPolicy(action, events, read.exit_code, timeout)


def _one_of(words: type[Word], text: str, where: str, internal: Sequence[Word] = ()) -> Word:
    known = [word for word in words if word not in internal]
    if text not in known:
        raise SnapshotError(f"{where}: {text!r} is unknown; write one of {', '.join(known)}")
    return words(text)
