"""The life of a Job: where it goes from where it stands, by itself or because somebody wants it to, and which pods have to go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phalanx.controllers.volcano_job.bookkeeping import Memory
from phalanx.controllers.volcano_job.job import AT_WORK, END_BY_PHASE, Action, Job, Phase, Standing, Task
from phalanx.controllers.volcano_job.lifecycle import Happening
from phalanx.controllers.volcano_job.members import ENDED, FAILED, PENDING, SUCCEEDED, Member, Tally

PHASE_BY_ACTION = {
    Action.ABORT: Phase.ABORTING, Action.TERMINATE: Phase.TERMINATING, Action.COMPLETE: Phase.COMPLETING,
    Action.RESTART: Phase.RESTARTING, Action.RESUME: Phase.RESTARTING, Action.RESTART_TASK: Phase.RESTARTING,
    Action.RESTART_POD: Phase.RESTARTING, Action.RESTART_PARTITION: Phase.RESTARTING,
}  # fmt: skip
PARTLY = (Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)
"""They concern some pods; the group and the other pods stay."""


@dataclass(frozen=True, slots=True)
class Step:
    """Where a Job goes, and why."""

    standing: Standing
    reason: str = ""
    message: str = ""


def is_possible(action: Action, phase: Phase) -> bool:
    """Tell whether an action means something to a Job that stands there."""
    if action is Action.RESUME:
        return phase in (Phase.ABORTING, Phase.ABORTED)
    is_new = PHASE_BY_ACTION.get(action) is not phase
    return action in PHASE_BY_ACTION and is_new and phase in (*AT_WORK, Phase.RESTARTING)


def after_action(job: Job, action: Action, cause: Happening | None) -> Standing:
    """Return where an action takes a Job; one that concerns all pods begins a new version."""
    standing, phase = job.standing, PHASE_BY_ACTION[action]
    retries = standing.retries + (phase is Phase.RESTARTING)
    version = standing.version if is_partial(action, cause) else standing.version + 1
    return replace(standing, phase=phase, retries=retries, version=version)


def is_partial(action: Action, cause: Happening | None) -> bool:
    """Tell whether an action concerns one task at most; what happened to no task in particular concerns all."""
    return action in PARTLY and cause is not None and bool(cause.task)


def is_concerned(job: Job, action: Action, cause: Happening, place: tuple[str, int]) -> bool:
    """Tell whether a pod, by task and number, has to go because of an action about one pod, its partition or its task."""
    task = job.task(cause.task)
    if task is None or place[0] != task.name:
        return False
    size = 1 if action is Action.RESTART_POD else task.partition.size if task.partition is not None else 0
    if action is Action.RESTART_TASK or cause.place is None or not size:
        return True
    return place[1] // size == cause.place[1] // size


# --- by itself -----------------------------------------------------------------------------------------------------------


def next_step(job: Job, tally: Tally) -> Step:
    """Return where a Job goes by itself."""
    phase = job.standing.phase
    if phase is Phase.PENDING:
        return _to(job, Phase.RUNNING if tally.known >= job.min_available and job.replicas else phase)
    if phase is Phase.RUNNING:
        return _from_running(job, tally)
    if phase is Phase.RESTARTING:
        return _from_restarting(job, tally)
    return _to(job, END_BY_PHASE[phase] if phase in END_BY_PHASE and not tally.alive else phase)


def _to(job: Job, phase: Phase, reason: str = "", message: str = "") -> Step:
    return Step(replace(job.standing, phase=phase), reason, message)


def _from_restarting(job: Job, tally: Tally) -> Step:
    retries = job.standing.retries
    if retries >= job.most_retries:
        return _to(job, Phase.FAILED, "MaxRetryReached", f"retried {retries} times; maxRetry is {job.most_retries}")
    return _to(job, Phase.PENDING if job.replicas - tally.leaving >= job.min_available else Phase.RESTARTING)


def _from_running(job: Job, tally: Tally) -> Step:
    succeeded = tally.of(SUCCEEDED)
    if job.min_success is not None and succeeded >= job.min_success:
        return _to(job, Phase.COMPLETED)
    if job.replicas and succeeded + tally.of(FAILED) == job.replicas:
        problem = _shortage(job, tally)
        return _to(job, Phase.FAILED, "NotEnoughSucceeded", problem) if problem else _to(job, Phase.COMPLETED)
    return _to(job, Phase.PENDING if tally.of(PENDING) > job.replicas - job.min_available else Phase.RUNNING)


def _shortage(job: Job, tally: Tally) -> str:
    """Say which pods would have had to succeed, now that all are over; nothing if enough did."""
    short = [task for task in job.tasks if tally.of_task(task, SUCCEEDED) < task.minimum] if job.minima_count else []
    if short:
        return _too_few(short[0], tally)
    needed = job.min_available if job.min_success is None else job.min_success
    succeeded = tally.of(SUCCEEDED)
    return f"{succeeded} of {job.replicas} pods succeeded, {needed} are needed" if succeeded < needed else ""


def _too_few(task: Task, tally: Tally) -> str:
    succeeded = tally.of_task(task, SUCCEEDED)
    return f"task {task.name}: {succeeded} of {task.replicas} pods succeeded, {task.minimum} are needed"


# --- who has to go -------------------------------------------------------------------------------------------------------


def victims(job: Job, standing: Standing, members: Sequence[Member], memory: Memory) -> list[Member]:
    """Return the pods to delete where a Job stands."""
    return [member for member in members if not member.is_leaving and _has_to_go(job, standing, member, memory)]


def _has_to_go(job: Job, standing: Standing, member: Member, memory: Memory) -> bool:
    if standing.phase not in (*AT_WORK, Phase.RESTARTING):
        return member.is_alive
    if member.version < standing.version:
        is_last = standing.phase is Phase.RESTARTING and standing.retries >= job.most_retries
        return not (is_last and member.phase in ENDED)
    task = job.task(member.task)
    return member.uid in memory.doomed or task is None or member.index >= task.replicas
