"""CronJobs of Volcano: create jobs by a schedule.

Of several missed times only the latest is made up for. The name of a job contains its time, so that it is created once even if the
controller crashes before it writes the status.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from phalanx.controllers.controller import NOTHING, Create, Delete, Key, Patch, RecordEvent, Result, View, Write
from phalanx.controllers.objects import controller_of, inside, is_leaving, key_of, meta_of, owner_reference, problem_writes, read
from phalanx.dialects.kinds.reader import blank
from phalanx.dialects.kinds.volcano_jobs import CronJob, CronJobStatus, JobTemplateMeta
from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.cron import Cron
from phalanx.model.kinds import VOLCANO_CRON_JOB, VOLCANO_JOB, Document, Kind
from phalanx.model.moment import moment_of, moment_text

ALLOW, FORBID, REPLACE = "Allow", "Forbid", "Replace"
POLICIES = (ALLOW, FORBID, REPLACE)
SUCCEEDED, LOST = ("Completed",), ("Failed", "Terminated", "Aborted")
SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"
LONGEST_NAME = 52
"""A job's name adds eleven characters, and 63 is the limit."""


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """A CronJob whose schedule, time zone and policy were checked."""

    read: CronJob
    cron: Cron
    zone: tzinfo
    policy: str

    def due(self, now: float) -> float | None:
        """Return the moment for which a job is due; None when there is none, or it is too late."""
        spec, status = self.read.spec, self.read.status or blank(CronJobStatus)
        since = moment_of(status.last_schedule_time or "") or moment_of(self.read.metadata.creation_timestamp or "") or 0.0
        moment = self.cron.last(now, self.zone)
        deadline = spec.starting_deadline_seconds
        if moment is None or moment <= since or spec.suspend or (deadline is not None and moment < now - deadline):
            return None
        return moment


class CronJobController:
    """Reconciles CronJobs."""

    name = "cronjob"
    watches = (VOLCANO_CRON_JOB, VOLCANO_JOB)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the CronJob: the object itself, or the owner of a job."""
        if kind is VOLCANO_CRON_JOB:
            return [key_of(document)]
        owner = controller_of(document) or {}
        is_ours = (owner.get("apiVersion"), owner.get("kind")) == (VOLCANO_CRON_JOB.api_version, VOLCANO_CRON_JOB.kind)
        return [Key(key_of(document).namespace, str(owner.get("name")))] if is_ours else []

    def reconcile(self, view: View, key: Key) -> Result:
        """Create the job that is due, delete old ones, and come back at the next time of the schedule."""
        document = view.find(VOLCANO_CRON_JOB, key.namespace, key.name)
        if document is None or is_leaving(document):
            return NOTHING
        try:
            plan = _checked(document)
        except (SnapshotError, ConfigError) as problem:
            return Result(problem_writes(VOLCANO_CRON_JOB, document, str(problem)))
        jobs = view.owned(meta_of(document)["uid"], VOLCANO_JOB)
        made, moment = _made(view, document, plan, jobs)
        status = _status(document, jobs, moment)
        writes = [*problem_writes(VOLCANO_CRON_JOB, document, ""), *made, *status, *_forgotten(plan, jobs)]
        return Result(writes, again=None if plan.read.spec.suspend else plan.cron.next(view.now, plan.zone))


# --- reading -------------------------------------------------------------------------------------------------------------


def _checked(document: Document) -> CronSchedule:
    found = read(document, CronJob)
    policy = found.spec.concurrency_policy or ALLOW
    if policy not in POLICIES:
        raise SnapshotError(f"spec.concurrencyPolicy: {policy!r} is unknown; write {', '.join(POLICIES)}")
    if len(found.metadata.name) > LONGEST_NAME:
        raise SnapshotError(f"metadata.name: too long for the names of its jobs; write at most {LONGEST_NAME} characters")
    return CronSchedule(found, _cron(found.spec.schedule), _zone(found.spec.time_zone), policy)


def _cron(text: str) -> Cron:
    if "TZ=" in text:
        raise SnapshotError(f"spec.schedule: {text!r} names a time zone; write it in spec.timeZone")
    try:
        return Cron(text)
    except ConfigError as problem:
        raise SnapshotError(f"spec.schedule: {problem}") from problem


def _zone(name: str | None) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as problem:
        raise SnapshotError(f"spec.timeZone: {name!r} is unknown; write for example 'Etc/UTC' or 'Europe/Berlin'") from problem


# --- jobs ----------------------------------------------------------------------------------------------------------------


def job_name(schedule: str, moment: float) -> str:
    """Return the name of the job for a moment: the minutes since 1970 follow the name of its schedule."""
    return f"{schedule}-{int(moment // 60)}"


def _made(view: View, document: Document, plan: CronSchedule, jobs: Sequence[Document]) -> tuple[list[Write], float | None]:
    """Return what to do for the moment that is due, and that moment once it is dealt with."""
    moment, key = plan.due(view.now), key_of(document)
    if moment is None:
        return [], None
    name = job_name(key.name, moment)
    if view.find(VOLCANO_JOB, key.namespace, name) is not None:
        return [], moment
    active = [job for job in jobs if not _is_finished(job)]
    if plan.policy == FORBID and active:
        return [], None
    replaced = [_removed(job) for job in active if not is_leaving(job)] if plan.policy == REPLACE else []
    return [*replaced, Create(_job(document, plan, moment)), RecordEvent(document, "SuccessfulCreate", f"made job {name}")], moment


def _job(document: Document, plan: CronSchedule, moment: float) -> dict[str, Any]:
    template, key = plan.read.spec.job_template, key_of(document)
    marks = template.metadata or JobTemplateMeta()
    stamp = datetime.fromtimestamp(moment, plan.zone).isoformat().replace("+00:00", "Z")
    meta = {
        "namespace": key.namespace, "name": job_name(key.name, moment), "labels": dict(marks.labels or {}),
        "annotations": {**(marks.annotations or {}), SCHEDULED_AT: stamp}, "ownerReferences": [owner_reference(document)],
    }  # fmt: skip
    return {"apiVersion": VOLCANO_JOB.api_version, "kind": VOLCANO_JOB.kind, "metadata": meta, "spec": template.spec}


def _phase(job: Document) -> str:
    return str(inside(job, "status", "state", "phase") or "")


def _is_finished(job: Document) -> bool:
    return _phase(job) in (*SUCCEEDED, *LOST)


def _removed(job: Document) -> Delete:
    key = key_of(job)
    return Delete(VOLCANO_JOB, key.namespace, key.name, meta_of(job)["uid"])


def _forgotten(plan: CronSchedule, jobs: Sequence[Document]) -> list[Write]:
    """Remove the oldest of the jobs that have ended."""
    spec = plan.read.spec
    limits = ((SUCCEEDED, spec.successful_jobs_history_limit), (LOST, spec.failed_jobs_history_limit))
    writes: list[Write] = []
    for phases, limit in limits:
        ended = sorted((job for job in jobs if _phase(job) in phases and not is_leaving(job)), key=_age)
        writes += map(_removed, ended[: max(len(ended) - max(limit, 0), 0)])
    return writes


def _age(job: Document) -> tuple[str, str]:
    return str(meta_of(job).get("creationTimestamp", "")), str(meta_of(job).get("name", ""))


def _status(document: Document, jobs: Sequence[Document], moment: float | None) -> list[Write]:
    """Write which jobs are under way, when the last one was due, and when the last one that went well had ended."""
    active = [_reference(job) for job in jobs if not _is_finished(job)]
    old = inside(document, "status") or {}
    ends = [str(inside(job, "status", "state", "lastTransitionTime") or "") for job in jobs if _phase(job) in SUCCEEDED]
    status = {
        "active": active, "lastSuccessfulTime": max([*ends, str(old.get("lastSuccessfulTime") or "")]) or None,
        "lastScheduleTime": old.get("lastScheduleTime") if moment is None else moment_text(moment),
    }  # fmt: skip
    changes = {name: value for name, value in status.items() if (old.get(name) or None) != (value or None)}
    key = key_of(document)
    return [Patch(VOLCANO_CRON_JOB, key.namespace, key.name, {"status": changes}, is_status=True)] if changes else []


def _reference(job: Document) -> dict[str, Any]:
    key = key_of(job)
    return {
        "apiVersion": VOLCANO_JOB.api_version, "kind": VOLCANO_JOB.kind, "namespace": key.namespace, "name": key.name,
        "uid": meta_of(job)["uid"],
    }  # fmt: skip
