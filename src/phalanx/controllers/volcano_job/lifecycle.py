"""What has happened to a Job, found from its objects alone, and what its policies say about that."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from phalanx.controllers.volcano_job.bookkeeping import JobMemory
from phalanx.controllers.volcano_job.job import JobAction, JobEvent, JobPolicy, JobTask, VolcanoJob
from phalanx.controllers.volcano_job.observed_pods import FAILED, PENDING, RUNNING, SUCCEEDED, JobPod

NOT_ANY = (JobEvent.POD_PENDING, JobEvent.POD_RUNNING)
"""Every pod of a healthy Job waits and runs; a policy for any event does not mean these."""
EVENT_BY_PHASE = {PENDING: JobEvent.POD_PENDING, RUNNING: JobEvent.POD_RUNNING, FAILED: JobEvent.POD_FAILED}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that a policy may be about."""

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
        """How it is remembered."""
        number = f"-{self.place[1]}" if self.place else ""
        return " ".join(part for part in (self.event, f"{self.task}{number}", self.uid) if part)


@dataclass(frozen=True, slots=True)
class DueAction:
    """What has to be done now, because of what; and what has to be done later."""

    action: JobAction | None = None
    cause: Occurrence | None = None
    since: Mapping[str, float] = field(default_factory=dict)
    """When things happened whose time has not come."""
    next_time: float | None = None


def occurrences(job: VolcanoJob, members: Sequence[JobPod], memory: JobMemory, group_phase: str) -> Iterator[Occurrence]:
    """Yield what has happened: to pods, then to tasks, then to the whole."""
    current = {member.place: member for member in members if member.version == job.standing.version}
    yield from _losses(job, current, memory)
    for member in current.values():
        event = EVENT_BY_PHASE.get(member.phase)
        if event is not None and not member.is_leaving and member.uid not in memory.doomed:
            since = member.created if event is JobEvent.POD_PENDING else None
            yield Occurrence(event, member.task, member.place, member.uid, member.exit_code, since)
    for task in job.tasks:
        yield from _ends(task, [member for member in current.values() if member.task == task.name])
    if group_phase == "Unknown":
        yield Occurrence(JobEvent.UNKNOWN)


def _losses(job: VolcanoJob, current: Mapping[tuple[str, int], JobPod], memory: JobMemory) -> Iterator[Occurrence]:
    """Yield the pods that were there, are wanted, and are gone or leaving though nobody here has told them to."""
    for place in sorted(memory.seen):
        task, member = job.task(place[0]), current.get(place)
        is_wanted = task is not None and place[1] < task.replicas
        if is_wanted and (member is None or (member.is_leaving and member.uid not in memory.doomed)):
            yield Occurrence(JobEvent.POD_EVICTED, place[0], place)


def _ends(task: JobTask, members: Sequence[JobPod]) -> Iterator[Occurrence]:
    if task.replicas and sum(member.phase == SUCCEEDED for member in members) >= task.replicas:
        yield Occurrence(JobEvent.TASK_COMPLETED, task.name)
    restarts = sum(member.restarts for member in members if member.is_alive)
    if 0 < task.most_retries <= restarts:
        yield Occurrence(JobEvent.TASK_FAILED, task.name)


def due_action(job: VolcanoJob, happened: Sequence[Occurrence], memory: JobMemory, now: float) -> DueAction:
    """Return what the policies of tasks, then those of the Job, want done about the first thing whose time has come."""
    since: dict[str, float] = {}
    times: list[float] = []
    for happening in happened:
        policy = _policy_for(job, happening)
        if policy is None or policy.action is JobAction.RESUME:
            continue
        moment = happening.since if happening.since is not None else memory.since.get(happening.key, now)
        if moment + policy.timeout_seconds <= now:
            return DueAction(policy.action, happening)
        times.append(moment + policy.timeout_seconds)
        if happening.since is None:
            since[happening.key] = moment
    return DueAction(since=since, next_time=min(times, default=None))


def has_policy(job: VolcanoJob, happening: Occurrence) -> bool:
    """Tell whether anybody wants something done about it."""
    return _policy_for(job, happening) is not None


def _policy_for(job: VolcanoJob, happening: Occurrence) -> JobPolicy | None:
    task = job.task(happening.task)
    policies = (*(task.policies if task else ()), *job.policies)
    return next((policy for policy in policies if _is_about(policy, happening)), None)


def _is_about(policy: JobPolicy, happening: Occurrence) -> bool:
    if policy.exit_code is not None:
        return happening.event is JobEvent.POD_FAILED and happening.exit_code == policy.exit_code
    return happening.event in policy.events or (JobEvent.ANY in policy.events and happening.event not in NOT_ANY)
