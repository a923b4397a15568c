"""JobSets: Jobs for each replicated job, all at once or in order."""

from collections.abc import Iterator
from hashlib import sha1

from msgspec import field

from phalanx.controllers.grouper.grouping import Count
from phalanx.controllers.grouper.job_sets import ANY_ORDER, IN_ORDER, REPLICATED_JOB, JobDependency
from phalanx.controllers.grouper.owners import read
from phalanx.controllers.objects import annotations_of, inside, meta_of
from phalanx.controllers.owner_pods.batch import INDEXED
from phalanx.controllers.owner_pods.children import Children, Template, child_of, template_in
from phalanx.dialects.schema import Read
from phalanx.model.kinds import Document

PREFIX = "jobset.sigs.k8s.io/"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


class ReplicatedJobs(Read):
    """Equal Jobs."""

    name: str = ""
    replicas: Count | None = None
    depends_on: list[JobDependency] | None = None
    template: Template = field(default_factory=Template)

    @property
    def count(self) -> int:
        """Return how many there are; one by default."""
        return 1 if self.replicas is None else self.replicas


class SetOfJobsSpec(Read):
    """What a JobSet is made of."""

    replicated_jobs: list[ReplicatedJobs] | None = None


class SetOfJobs(Read):
    """A JobSet."""

    spec: SetOfJobsSpec = field(default_factory=SetOfJobsSpec)


def defaulted(owner: Document) -> Document:
    """Return a JobSet with what its webhook writes: jobs start in any order."""
    order = inside(owner, "spec", "startupPolicy", "startupPolicyOrder") or ANY_ORDER
    return {**owner, "spec": {**(owner.get("spec") or {}), "startupPolicy": {"startupPolicyOrder": order}}}


def job_set(owner: Document) -> Children:
    """Return the Jobs that a JobSet makes now; those that start after others are made later."""
    jobs = read(owner, SetOfJobs).spec.replicated_jobs or []
    is_in_order = inside(owner, "spec", "startupPolicy", "startupPolicyOrder") == IN_ORDER
    now = [each for number, each in enumerate(jobs) if not each.depends_on and not (is_in_order and number)]
    later = [each.name for each in jobs if each not in now]
    total = sum(each.count for each in jobs)
    documents = [_job(owner, each, index, total) for each in now for index in range(each.count)]
    return Children(documents, list(_notes(owner, later)))


def _job(owner: Document, jobs: ReplicatedJobs, index: int, total: int) -> Document:
    name = f"{meta_of(owner)['name']}-{jobs.name}-{index}"
    key = sha1(f"{meta_of(owner).get('namespace') or 'default'}/{name}".encode(), usedforsecurity=False).hexdigest()
    texts = {
        f"{PREFIX}jobset-name": str(meta_of(owner)["name"]), REPLICATED_JOB: jobs.name,
        f"{PREFIX}replicatedjob-replicas": str(jobs.count), f"{PREFIX}global-replicas": str(total),
        f"{PREFIX}restart-attempt": "0", f"{PREFIX}job-index": str(index), f"{PREFIX}job-key": key,
    }  # fmt: skip
    spec = {"completionMode": INDEXED, **jobs.template.spec}
    pods = template_in(owner, spec.get("template")).plus(texts, texts)
    made = {**spec, "template": {**pods, "spec": {"restartPolicy": "OnFailure", **pods["spec"]}}}
    return child_of(owner, "batch/v1", "Job", name, spec=made, meta=jobs.template.meta(texts, texts))


def _notes(owner: Document, later: list[str]) -> Iterator[str]:
    if later:
        yield f"the jobs {', '.join(later)} are made later, once those before them are ready or complete"
    if EXCLUSIVE in annotations_of(owner):
        yield f"{EXCLUSIVE}: left out here: JobSet keeps the other pods of a job back until the first has a node"
