"""The life of a Job: where it goes from where it stands, by itself or because somebody wants it to, and which pods have to go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phalanx.controllers.volcano_job.bookkeeping import JobMemory
from phalanx.controllers.volcano_job.job import AT_WORK, END_BY_PHASE, JobAction, JobPhase, JobTask, VolcanoJob, VolcanoJobState
from phalanx.controllers.volcano_job.lifecycle import Occurrence
from phalanx.controllers.volcano_job.observed_pods import ENDED, FAILED, PENDING, SUCCEEDED, JobPod, PodCounts

PHASE_BY_ACTION = {
    JobAction.ABORT: JobPhase.ABORTING, JobAction.TERMINATE: JobPhase.TERMINATING, JobAction.COMPLETE: JobPhase.COMPLETING,
    JobAction.RESTART: JobPhase.RESTARTING, JobAction.RESUME: JobPhase.RESTARTING, JobAction.RESTART_TASK: JobPhase.RESTARTING,
    JobAction.RESTART_POD: JobPhase.RESTARTING, JobAction.RESTART_PARTITION: JobPhase.RESTARTING,
}  # fmt: skip
PARTLY = (JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION)
"""They concern some pods; the group and the other pods stay."""


@dataclass(frozen=True, slots=True)
class Transition:
    """Where a Job goes, and why."""

    standing: VolcanoJobState
    reason: str = ""
    message: str = ""


def is_possible(action: JobAction, phase: JobPhase) -> bool:
    """Tell whether an action means something to a Job that stands there."""
    if action is JobAction.RESUME:
        return phase in (JobPhase.ABORTING, JobPhase.ABORTED)
    is_new = PHASE_BY_ACTION.get(action) is not phase
    return action in PHASE_BY_ACTION and is_new and phase in (*AT_WORK, JobPhase.RESTARTING)


def state_after(job: VolcanoJob, action: JobAction, cause: Occurrence | None) -> VolcanoJobState:
    """Return where an action takes a Job; one that concerns all pods begins a new version."""
    standing, phase = job.standing, PHASE_BY_ACTION[action]
    retries = standing.retries + (phase is JobPhase.RESTARTING)
    version = standing.version if is_partial(action, cause) else standing.version + 1
    return replace(standing, phase=phase, retries=retries, version=version)


def is_partial(action: JobAction, cause: Occurrence | None) -> bool:
    """Tell whether an action concerns one task at most; what happened to no task in particular concerns all."""
    return action in PARTLY and cause is not None and bool(cause.task)


def is_concerned(job: VolcanoJob, action: JobAction, cause: Occurrence, place: tuple[str, int]) -> bool:
    """Tell whether a pod, by task and number, has to go because of an action about one pod, its partition or its task."""
    task = job.task(cause.task)
    if task is None or place[0] != task.name:
        return False
    size = 1 if action is JobAction.RESTART_POD else task.partition.size if task.partition is not None else 0
    if action is JobAction.RESTART_TASK or cause.place is None or not size:
        return True
    return place[1] // size == cause.place[1] // size


# --- by itself -----------------------------------------------------------------------------------------------------------


def next_transition(job: VolcanoJob, tally: PodCounts) -> Transition:
    """Return where a Job goes by itself."""
    phase = job.standing.phase
    if phase is JobPhase.PENDING:
        return _to(job, JobPhase.RUNNING if tally.known >= job.min_available and job.replicas else phase)
    if phase is JobPhase.RUNNING:
        return _from_running(job, tally)
    if phase is JobPhase.RESTARTING:
        return _from_restarting(job, tally)
    return _to(job, END_BY_PHASE[phase] if phase in END_BY_PHASE and not tally.alive else phase)


def _to(job: VolcanoJob, phase: JobPhase, reason: str = "", message: str = "") -> Transition:
    return Transition(replace(job.standing, phase=phase), reason, message)


def _from_restarting(job: VolcanoJob, tally: PodCounts) -> Transition:
    retries = job.standing.retries
    if retries >= job.most_retries:
        return _to(job, JobPhase.FAILED, "MaxRetryReached", f"retried {retries} times; maxRetry is {job.most_retries}")
    return _to(job, JobPhase.PENDING if job.replicas - tally.leaving >= job.min_available else JobPhase.RESTARTING)


def _from_running(job: VolcanoJob, tally: PodCounts) -> Transition:
    succeeded = tally.of(SUCCEEDED)
    if job.min_success is not None and succeeded >= job.min_success:
        return _to(job, JobPhase.COMPLETED)
    if job.replicas and succeeded + tally.of(FAILED) == job.replicas:
        problem = _shortage(job, tally)
        return _to(job, JobPhase.FAILED, "NotEnoughSucceeded", problem) if problem else _to(job, JobPhase.COMPLETED)
    return _to(job, JobPhase.PENDING if tally.of(PENDING) > job.replicas - job.min_available else JobPhase.RUNNING)


def _shortage(job: VolcanoJob, tally: PodCounts) -> str:
    """Say which pods would have had to succeed, now that all are over; nothing if enough did."""
    short = [task for task in job.tasks if tally.of_task(task, SUCCEEDED) < task.minimum] if job.minima_count else []
    if short:
        return _too_few(short[0], tally)
    needed = job.min_available if job.min_success is None else job.min_success
    succeeded = tally.of(SUCCEEDED)
    return f"{succeeded} of {job.replicas} pods succeeded, {needed} are needed" if succeeded < needed else ""


def _too_few(task: JobTask, tally: PodCounts) -> str:
    succeeded = tally.of_task(task, SUCCEEDED)
    return f"task {task.name}: {succeeded} of {task.replicas} pods succeeded, {task.minimum} are needed"


# --- who has to go -------------------------------------------------------------------------------------------------------


def victims(job: VolcanoJob, standing: VolcanoJobState, members: Sequence[JobPod], memory: JobMemory) -> list[JobPod]:
    """Return the pods to delete where a Job stands."""
    return [member for member in members if not member.is_leaving and _has_to_go(job, standing, member, memory)]


def _has_to_go(job: VolcanoJob, standing: VolcanoJobState, member: JobPod, memory: JobMemory) -> bool:
    if standing.phase not in (*AT_WORK, JobPhase.RESTARTING):
        return member.is_alive
    if member.version < standing.version:
        is_last = standing.phase is JobPhase.RESTARTING and standing.retries >= job.most_retries
        return not (is_last and member.phase in ENDED)
    task = job.task(member.task)
    return member.uid in memory.doomed or task is None or member.index >= task.replicas
