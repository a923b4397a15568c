"""Kubernetes' own Jobs: as many pods as run at a time, numbered or not."""

from msgspec import field

from phalanx.controllers.grouper.grouping import Count
from phalanx.controllers.grouper.owners import read
from phalanx.controllers.objects import meta_of
from phalanx.controllers.owner_pods.children import Children, Template, numbers, pod_of
from phalanx.dialects.schema import Read
from phalanx.model.kinds import Document

JOB_CONTROLLER = "kubernetes.io/job-controller"
INDEXED, INDEX = "Indexed", "batch.kubernetes.io/job-completion-index"
FINALIZER = "batch.kubernetes.io/job-tracking"


class JobSpec(Read):
    """What a Job asks for."""

    template: Template = field(default_factory=Template)
    parallelism: Count | None = None
    completions: Count | None = None
    completion_mode: str | None = None
    managed_by: str | None = None


class JobProgress(Read):
    """How far a Job has come."""

    succeeded: Count | None = None


class Job(Read):
    """A Job."""

    spec: JobSpec = field(default_factory=JobSpec)
    status: JobProgress = field(default_factory=JobProgress)

    @property
    def pods(self) -> int:
        """Return how many pods there are at a time."""
        parallel = 1 if self.spec.parallelism is None else self.spec.parallelism
        if self.spec.completions is None:
            return parallel
        return min(parallel, max(self.spec.completions - (self.status.succeeded or 0), 0))


def job(owner: Document) -> Children:
    """Return the pods that a Job has at a time; the rest of its completions follows when these have ended."""
    found = read(owner, Job)
    if (found.spec.managed_by or JOB_CONTROLLER) != JOB_CONTROLLER:
        return Children(notes=[f"its pods are made by {found.spec.managed_by}, which is not known here"])
    later = (found.spec.completions or 0) - (found.status.succeeded or 0) - found.pods
    notes = [f"{later} more of its pods are made once others have succeeded"] if later > 0 else []
    return Children([_pod(owner, found.spec, index) for index in numbers(owner, found.pods)], notes)


def _pod(owner: Document, spec: JobSpec, index: int) -> Document:
    name, uid = str(meta_of(owner)["name"]), str(meta_of(owner).get("uid", ""))
    labels = {
        f"{prefix}{key}": text
        for prefix in ("", "batch.kubernetes.io/")
        for key, text in (("controller-uid", uid), ("job-name", name))
    }
    if spec.completion_mode != INDEXED:
        return pod_of(owner, f"{name}-", spec.template, labels=labels)
    numbered = {INDEX: str(index)}
    hostname = {"hostname": spec.template.spec.get("hostname") or f"{name}-{index}"}
    return pod_of(owner, f"{name}-{index}-", spec.template, labels={**labels, **numbered}, annotations=numbered, spec=hostname)


def cron_job(owner: Document) -> Children:
    """Say that a CronJob makes nothing when it is submitted."""
    return Children(notes=["makes no pods now, but at its next time; try the Job in its template"])
