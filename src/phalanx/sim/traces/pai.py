"""PAI (Alibaba, 2020): `pai_task_table.csv` and, if given, `pai_machine_spec.csv` and `pai_job_table.csv`.

A job is a gang, each of its tasks a part of `inst_num` instances. `plan_cpu` and `plan_gpu` are per cent: a share of a GPU is
rounded up to a whole one, CPUs to a thousandth; `plan_mem` is in GiB, rounded up to a MiB. A gang runs from the start of its
first task to the end of its last; a task without a start or an end is no part of it. Its user, and when it was submitted,
stand in the table of jobs; without that one, all gangs share a queue and are submitted when they start. `gpu_type` is what a
task was given, not what it asked for, and is not used.

The files come without a line of columns (those are in `.header` files); with one they are read as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from phalanx.sim.traces.draft import RecordedTrace, TraceDraft, UniqueNames
from phalanx.sim.traces.rows import TraceRow
from phalanx.sim.traces.trace_files import CsvTable, Paths, TraceFiles
from phalanx.sim.workload import GPU_MODEL, MIB_PER_GIB, Machine, WorkloadGang, WorkloadPart, machine, quantities

TASK_COLUMNS = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)
JOBS = CsvTable(TASK_COLUMNS, bare_name="pai_task_table")
USERS = CsvTable(("job_name", "inst_id", "user", "status", "start_time", "end_time"), bare_name="pai_job_table")
MACHINES = CsvTable(("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"), bare_name="pai_machine_spec")
PER_CENT = 100


class _Role(NamedTuple):
    """The instances of one task of a job, and from when to when they ran, if they did."""

    job: str
    part: WorkloadPart
    start: float = 0
    end: float = 0


class _Submission(NamedTuple):
    """What the table of jobs says about one."""

    user: str
    submitted: float | None


def read(paths: Paths, *, nodes: int | None = None) -> RecordedTrace:
    """Read a table of tasks."""
    files, draft = TraceFiles(paths), TraceDraft(queue="user")
    roles_by_job: dict[str, list[_Role]] = {}
    for role in draft.each(files.rows(JOBS, is_needed=True), _role):
        roles_by_job.setdefault(role.job, []).append(role)
    submission_by_job = dict(draft.each(files.rows(USERS), _submission))
    gangs = draft.each(roles_by_job.values(), lambda roles: _gang(roles, submission_by_job, draft))
    machines = draft.each(files.rows(MACHINES), lambda row: _machine(row, draft))
    return draft.trace(gangs, machines, nodes=nodes)


def _role(row: TraceRow) -> _Role:
    request = quantities(
        gpus=row.amount("plan_gpu", parts=1 / PER_CENT),
        cpu_milli=row.amount("plan_cpu", parts=1000 / PER_CENT),
        memory_mib=row.amount("plan_mem", parts=MIB_PER_GIB),
    )
    part = WorkloadPart(row.count("inst_num", least=1), request, row.text("task_name"))
    if not (row.has("start_time") and row.has("end_time") and row.between("start_time", "end_time")):
        return _Role(row.text("job_name"), part)
    return _Role(row.text("job_name"), part, row.moment("start_time"), row.moment("end_time"))


def _submission(row: TraceRow) -> tuple[str, _Submission]:
    submitted = row.moment("start_time") if row.has("start_time") else None
    return row.text("job_name"), _Submission(row.text("user"), submitted)


def _gang(roles: Sequence[_Role], submission_by_job: Mapping[str, _Submission], draft: TraceDraft) -> WorkloadGang | None:
    ran = [role for role in roles if role.end > role.start]
    if not ran:
        return None
    job, start = ran[0].job, min(role.start for role in ran)
    duration = max(role.end for role in ran) - start
    names = UniqueNames("task")
    parts = tuple(replace(role.part, name=names.fresh(role.part.name)) for role in ran)
    submission = submission_by_job.get(job)
    submitted = start if submission is None or submission.submitted is None else submission.submitted
    return WorkloadGang(
        draft.gang_names.fresh(job), submitted, duration, parts, draft.queues.same(submission.user) if submission else "default"
    )


def _machine(row: TraceRow, draft: TraceDraft) -> Machine:
    return machine(
        draft.machine_names.fresh(row.text("machine")), labels={GPU_MODEL: row.text("gpu_type")} if row.has("gpu_type") else {},
        gpus=row.count("cap_gpu"), cpu_milli=row.amount("cap_cpu", parts=1000),
        memory_mib=row.amount("cap_mem", parts=MIB_PER_GIB),
    )  # fmt: skip
