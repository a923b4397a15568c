"""Philly (Microsoft, 2017): `cluster_job_log` (JSON) and, if given, `cluster_machine_list` (CSV).

The log does not say what a job asked for, only what it was given: a task for each machine of its first attempt, with as many
GPUs as it had there. A job runs as long as all its attempts together
that have a recorded start and end. The virtual cluster is the queue. CPUs and memory are
neither asked for nor offered: nobody recorded them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from phalanx.dialects.wrong_field import readable
from phalanx.errors import SnapshotError, TraceError
from phalanx.sim.traces.draft import RecordedTrace, TraceDraft
from phalanx.sim.traces.rows import NOTHING, TraceRow, moment
from phalanx.sim.traces.tasks import workers
from phalanx.sim.traces.trace_files import CsvTable, Paths, TraceFiles, beginning
from phalanx.sim.workload import Machine, WorkloadGang, machine
from phalanx.store.bounded_files import read_bounded

NODES = CsvTable(("machineId", "number of GPUs"))


class _Place(msgspec.Struct):
    """The GPUs of an attempt on one machine."""

    gpus: list[str]


class _JobAttempt(msgspec.Struct):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Place] = []


class _Job(msgspec.Struct):
    jobid: str
    vc: str
    submitted_time: str
    attempts: list[_JobAttempt] = []


@dataclass(frozen=True, slots=True)
class _Log:
    """A list of jobs in JSON."""

    title: str = "a JSON list of jobs with jobid, vc, submitted_time and attempts"

    def is_in(self, path: Path) -> bool:
        """Tell whether the file begins with a list of jobs."""
        text = beginning(path).lstrip()
        return text.startswith("[") and '"attempts"' in text

    def entries(self, path: Path) -> Iterator["_LogEntry"]:
        """Yield the jobs, not yet understood."""
        try:
            found = msgspec.json.decode(read_bounded(path), type=list[msgspec.Raw])
        except SnapshotError as problem:
            raise TraceError(str(problem)) from problem
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise TraceError(f"{path.name}: {problem}; expected {self.title}") from problem
        return (_LogEntry(f"{path.name}, job {number}", raw) for number, raw in enumerate(found, start=1))


JOBS = _Log()


@dataclass(frozen=True, slots=True)
class _LogEntry:
    """A job of the log with its place in it."""

    place: str
    raw: msgspec.Raw

    def job(self) -> _Job:
        """Return it, if it can be understood."""
        try:
            return msgspec.json.decode(self.raw, type=_Job)
        except msgspec.ValidationError as problem:
            raise TraceError(f"{self.place}: {readable(problem)}") from problem
        except UnicodeDecodeError as problem:
            raise TraceError(f"{self.place}: not text in UTF-8: {problem}") from problem

    def seconds(self, attempt: _JobAttempt) -> float:
        """Return how long an attempt ran; 0 if its start or end was not recorded."""
        start, end = attempt.start_time or "", attempt.end_time or ""
        if start.lower() in NOTHING or end.lower() in NOTHING:
            return 0
        seconds = moment(end, f"{self.place}: end_time") - moment(start, f"{self.place}: start_time")
        if seconds < 0:
            raise TraceError(f"{self.place}: end_time: {end!r} is before start_time, {start!r}")
        return seconds


def read(paths: Paths, *, nodes: int | None = None) -> RecordedTrace:
    """Read a log of jobs."""
    files, draft = TraceFiles(paths), TraceDraft(queue="vc")
    gangs = draft.each(JOBS.entries(files.need(JOBS)), lambda entry: _gang(entry, draft))
    machines = draft.each(files.rows(NODES), lambda row: _machine(row, draft))
    return draft.trace(gangs, machines, nodes=nodes)


def _gang(entry: _LogEntry, draft: TraceDraft) -> WorkloadGang | None:
    job = entry.job()
    duration = sum(entry.seconds(attempt) for attempt in job.attempts)
    tasks_by_gpus = Counter(_gpus_by_machine(job.attempts))
    if not duration or not tasks_by_gpus:
        return None
    submitted = moment(job.submitted_time, f"{entry.place}: submitted_time")
    return WorkloadGang(draft.gang_names.fresh(job.jobid), submitted, duration, workers(tasks_by_gpus), draft.queues.same(job.vc))


def _gpus_by_machine(attempts: Sequence[_JobAttempt]) -> list[int]:
    return next(([len(place.gpus) for place in attempt.detail] for attempt in attempts if attempt.detail), [])


def _machine(row: TraceRow, draft: TraceDraft) -> Machine:
    return machine(draft.machine_names.fresh(row.text("machineId")), gpus=row.count("number of GPUs"))
