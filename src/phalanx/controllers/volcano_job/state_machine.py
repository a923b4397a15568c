"""The state machine of a Job: which phase follows from its pods or from an action, and which pods are deleted in it.

    Pending <-> Running -> Completed | Failed           by the counts of pods
    Pending, Running -> Restarting -> Pending | Failed  by an action, until maxRetry
    Pending, Running, Restarting -> Aborting -> Aborted, Completing -> Completed, Terminating -> Terminated
    Aborting, Aborted -> Restarting                     by ResumeJob

An action that concerns the whole Job raises its version. Pods carry the version they were made for, so pods of an older version are
recognized as leftovers however many reconciliations and crashes lie in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phalanx.controllers.volcano_job.bookkeeping import JobMemory
from phalanx.controllers.volcano_job.job import AT_WORK, END_BY_PHASE, JobAction, JobPhase, ParsedJob, ParsedTask, VolcanoJobState
from phalanx.controllers.volcano_job.lifecycle import Occurrence
from phalanx.controllers.volcano_job.observed_pods import ENDED, FAILED, PENDING, SUCCEEDED, JobPod, PodCounts

PHASE_BY_ACTION = {
    JobAction.ABORT: JobPhase.ABORTING, JobAction.TERMINATE: JobPhase.TERMINATING, JobAction.COMPLETE: JobPhase.COMPLETING,
    JobAction.RESTART: JobPhase.RESTARTING, JobAction.RESUME: JobPhase.RESTARTING, JobAction.RESTART_TASK: JobPhase.RESTARTING,
    JobAction.RESTART_POD: JobPhase.RESTARTING, JobAction.RESTART_PARTITION: JobPhase.RESTARTING,
}  # fmt: skip
PARTLY = (JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION)
"""Actions that restart some of the pods; the group and the other pods stay."""


@dataclass(frozen=True, slots=True)
class Transition:
    """The state that a Job enters, and why."""

    state: VolcanoJobState
    reason: str = ""
    message: str = ""


def is_possible(action: JobAction, phase: JobPhase) -> bool:
    """Tell whether an action is possible in a phase."""
    if action is JobAction.RESUME:
        return phase in (JobPhase.ABORTING, JobPhase.ABORTED)
    is_new = PHASE_BY_ACTION.get(action) is not phase
    return action in PHASE_BY_ACTION and is_new and phase in (*AT_WORK, JobPhase.RESTARTING)


def state_after(job: ParsedJob, action: JobAction, cause: Occurrence | None) -> VolcanoJobState:
    """Return the state of a Job after an action; one that concerns all pods begins a new version."""
    state, phase = job.state, PHASE_BY_ACTION[action]
    retries = state.retries + (phase is JobPhase.RESTARTING)
    version = state.version if is_partial(action, cause) else state.version + 1
    return replace(state, phase=phase, retries=retries, version=version)


def is_partial(action: JobAction, cause: Occurrence | None) -> bool:
    """Tell whether an action concerns one task at most; an event of no task in particular concerns all."""
    return action in PARTLY and cause is not None and bool(cause.task)


def is_concerned(job: ParsedJob, action: JobAction, cause: Occurrence, place: tuple[str, int]) -> bool:
    """Tell whether an action on one pod, its partition or its task restarts a pod, given by task and number."""
    task = job.task(cause.task)
    if task is None or place[0] != task.name:
        return False
    size = 1 if action is JobAction.RESTART_POD else task.partition.size if task.partition is not None else 0
    if action is JobAction.RESTART_TASK or cause.place is None or not size:
        return True
    return place[1] // size == cause.place[1] // size


# --- by counts of pods ---------------------------------------------------------------------------------------------------


def next_transition(job: ParsedJob, counts: PodCounts) -> Transition:
    """Return the transition that follows from the counts of pods alone."""
    phase = job.state.phase
    if phase is JobPhase.PENDING:
        return _to(job, JobPhase.RUNNING if counts.known >= job.min_available and job.replicas else phase)
    if phase is JobPhase.RUNNING:
        return _from_running(job, counts)
    if phase is JobPhase.RESTARTING:
        return _from_restarting(job, counts)
    return _to(job, END_BY_PHASE[phase] if phase in END_BY_PHASE and not counts.alive else phase)


def _to(job: ParsedJob, phase: JobPhase, reason: str = "", message: str = "") -> Transition:
    return Transition(replace(job.state, phase=phase), reason, message)


def _from_restarting(job: ParsedJob, counts: PodCounts) -> Transition:
    retries = job.state.retries
    if retries >= job.most_retries:
        return _to(job, JobPhase.FAILED, "MaxRetryReached", f"retried {retries} times; maxRetry is {job.most_retries}")
    return _to(job, JobPhase.PENDING if job.replicas - counts.leaving >= job.min_available else JobPhase.RESTARTING)


def _from_running(job: ParsedJob, counts: PodCounts) -> Transition:
    succeeded = counts.of(SUCCEEDED)
    if job.min_success is not None and succeeded >= job.min_success:
        return _to(job, JobPhase.COMPLETED)
    if job.replicas and succeeded + counts.of(FAILED) == job.replicas:
        problem = _shortage(job, counts)
        return _to(job, JobPhase.FAILED, "NotEnoughSucceeded", problem) if problem else _to(job, JobPhase.COMPLETED)
    return _to(job, JobPhase.PENDING if counts.of(PENDING) > job.replicas - job.min_available else JobPhase.RUNNING)


def _shortage(job: ParsedJob, counts: PodCounts) -> str:
    """Return which pods would have had to succeed, now that all have ended; empty if enough did."""
    short = [task for task in job.tasks if counts.of_task(task, SUCCEEDED) < task.minimum] if job.minima_count else []
    if short:
        return _too_few(short[0], counts)
    needed = job.min_available if job.min_success is None else job.min_success
    succeeded = counts.of(SUCCEEDED)
    return f"{succeeded} of {job.replicas} pods succeeded, {needed} are needed" if succeeded < needed else ""


def _too_few(task: ParsedTask, counts: PodCounts) -> str:
    succeeded = counts.of_task(task, SUCCEEDED)
    return f"task {task.name}: {succeeded} of {task.replicas} pods succeeded, {task.minimum} are needed"


# --- pods to delete ------------------------------------------------------------------------------------------------------


def pods_to_delete(job: ParsedJob, state: VolcanoJobState, pods: Sequence[JobPod], memory: JobMemory) -> list[JobPod]:
    """Return the pods to delete in a state of the Job."""
    return [pod for pod in pods if not pod.is_leaving and _has_to_go(job, state, pod, memory)]


def _has_to_go(job: ParsedJob, state: VolcanoJobState, pod: JobPod, memory: JobMemory) -> bool:
    if state.phase not in (*AT_WORK, JobPhase.RESTARTING):
        return pod.is_alive
    if pod.version < state.version:
        # When the last retry is used up, ended pods stay: their logs are all that is left to find out why the Job failed.
        is_last = state.phase is JobPhase.RESTARTING and state.retries >= job.most_retries
        return not (is_last and pod.phase in ENDED)
    task = job.task(pod.task)
    return pod.uid in memory.doomed or task is None or pod.index >= task.replicas
