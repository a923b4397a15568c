"""Events of a Job, found from its objects alone, and the action that its policies ask for.

No event is received from anywhere: each reconciliation derives all of them from the pods that are there and from the memory of
those that were, so none is lost in a crash or a gap of a watch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from phalanx.controllers.volcano_job.bookkeeping import JobMemory
from phalanx.controllers.volcano_job.job import JobAction, JobEvent, JobPolicy, ParsedJob, ParsedTask
from phalanx.controllers.volcano_job.observed_pods import FAILED, PENDING, RUNNING, SUCCEEDED, JobPod

NOT_ANY = (JobEvent.POD_PENDING, JobEvent.POD_RUNNING)
"""Every pod of a healthy Job waits and runs; a policy for any event does not mean these."""
EVENT_BY_PHASE = {PENDING: JobEvent.POD_PENDING, RUNNING: JobEvent.POD_RUNNING, FAILED: JobEvent.POD_FAILED}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event that a policy may name, with the pod or task it concerns."""

    event: JobEvent
    task: str = ""
    place: tuple[str, int] | None = None
    """The pod, if it is about one."""
    uid: str = ""
    exit_code: int = 0
    since: float | None = None
    """When it happened, if the objects say so."""

    @property
    def key(self) -> str:
        """Under which its time is remembered."""
        number = f"-{self.place[1]}" if self.place else ""
        return " ".join(part for part in (self.event, f"{self.task}{number}", self.uid) if part)


@dataclass(frozen=True, slots=True)
class DueAction:
    """The action that the policies ask for now and its cause, or when one will be due."""

    action: JobAction | None = None
    cause: Occurrence | None = None
    since: Mapping[str, float] = field(default_factory=dict)
    """When events happened whose timeout has not passed."""
    next_time: float | None = None


def occurrences(job: ParsedJob, pods: Sequence[JobPod], memory: JobMemory, group_phase: str) -> Iterator[Occurrence]:
    """Yield the events of pods, then of tasks, then of the Job."""
    current = {pod.place: pod for pod in pods if pod.version == job.state.version}
    yield from _losses(job, current, memory)
    for pod in current.values():
        event = EVENT_BY_PHASE.get(pod.phase)
        if event is not None and not pod.is_leaving and pod.uid not in memory.doomed:
            since = pod.created if event is JobEvent.POD_PENDING else None
            yield Occurrence(event, pod.task, pod.place, pod.uid, pod.exit_code, since)
    for task in job.tasks:
        yield from _ends(task, [pod for pod in current.values() if pod.task == task.name])
    if group_phase == "Unknown":
        yield Occurrence(JobEvent.UNKNOWN)


def _losses(job: ParsedJob, current: Mapping[tuple[str, int], JobPod], memory: JobMemory) -> Iterator[Occurrence]:
    """Yield the wanted pods that are gone or leaving though this controller did not delete them."""
    for place in sorted(memory.seen):
        task, pod = job.task(place[0]), current.get(place)
        is_wanted = task is not None and place[1] < task.replicas
        if is_wanted and (pod is None or (pod.is_leaving and pod.uid not in memory.doomed)):
            yield Occurrence(JobEvent.POD_EVICTED, place[0], place)


def _ends(task: ParsedTask, pods: Sequence[JobPod]) -> Iterator[Occurrence]:
    if task.replicas and sum(pod.phase == SUCCEEDED for pod in pods) >= task.replicas:
        yield Occurrence(JobEvent.TASK_COMPLETED, task.name)
    restarts = sum(pod.restarts for pod in pods if pod.is_alive)
    if 0 < task.most_retries <= restarts:
        yield Occurrence(JobEvent.TASK_FAILED, task.name)


def due_action(job: ParsedJob, occurred: Sequence[Occurrence], memory: JobMemory, now: float) -> DueAction:
    """Return the action for the first event whose timeout has passed; policies of its task come before those of the Job."""
    since: dict[str, float] = {}
    times: list[float] = []
    for occurrence in occurred:
        policy = _policy_for(job, occurrence)
        if policy is None or policy.action is JobAction.RESUME:
            continue
        moment = occurrence.since if occurrence.since is not None else memory.since.get(occurrence.key, now)
        if moment + policy.timeout_seconds <= now:
            return DueAction(policy.action, occurrence)
        times.append(moment + policy.timeout_seconds)
        if occurrence.since is None:
            since[occurrence.key] = moment
    return DueAction(since=since, next_time=min(times, default=None))


def has_policy(job: ParsedJob, occurrence: Occurrence) -> bool:
    """Tell whether some policy names the event."""
    return _policy_for(job, occurrence) is not None


def _policy_for(job: ParsedJob, occurrence: Occurrence) -> JobPolicy | None:
    task = job.task(occurrence.task)
    policies = (*(task.policies if task else ()), *job.policies)
    return next((policy for policy in policies if _is_about(policy, occurrence)), None)


def _is_about(policy: JobPolicy, occurrence: Occurrence) -> bool:
    if policy.exit_code is not None:
        return occurrence.event is JobEvent.POD_FAILED and occurrence.exit_code == policy.exit_code
    return occurrence.event in policy.events or (JobEvent.ANY in policy.events and occurrence.event not in NOT_ANY)
