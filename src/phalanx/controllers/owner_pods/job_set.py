"""JobSets: Jobs for each replicated job, all at once or in order."""

from collections.abc import Iterator, Sequence
from hashlib import sha1

from msgspec import field

from phalanx.controllers.controller import View
from phalanx.controllers.grouper.job_sets import ANY_ORDER, IN_ORDER, REPLICATED_JOB, ReplicatedJob
from phalanx.controllers.grouper.owners import read
from phalanx.controllers.objects import annotations_of, inside, labels_of, meta_of
from phalanx.controllers.owner_pods.batch import INDEX, INDEXED
from phalanx.controllers.owner_pods.children import Children, Template, child_of, numbers, template_in
from phalanx.controllers.owner_pods.exclusive import with_exclusive_affinity
from phalanx.dialects.pod_defaults import completed_pod
from phalanx.dialects.schema import Read
from phalanx.errors import Forbidden
from phalanx.model.kinds import Document

PREFIX = "jobset.sigs.k8s.io/"
JOB_KEY, PRIORITY = f"{PREFIX}job-key", f"{PREFIX}priority"
EXCLUSIVE, BY_SELECTOR = "alpha.jobset.sigs.k8s.io/exclusive-topology", "alpha.jobset.sigs.k8s.io/node-selector"


class MadeJobs(ReplicatedJob):
    """Jobs, with their whole template."""

    template: Template = field(default_factory=Template)


class SetOfJobsSpec(Read):
    """What a JobSet is made of."""

    replicated_jobs: list[MadeJobs] | None = None


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
    documents = [_job(owner, jobs, each, index) for each in now for index in numbers(owner, each.count)]
    return Children(documents, list(_notes(owner, jobs, later)))


def _job(owner: Document, all_jobs: Sequence[MadeJobs], jobs: MadeJobs, index: int) -> Document:
    before = sum(each.count for each in all_jobs[: all_jobs.index(jobs)])
    name = f"{meta_of(owner)['name']}-{jobs.name}-{index}"
    key = sha1(f"{meta_of(owner).get('namespace') or 'default'}/{name}".encode(), usedforsecurity=False).hexdigest()
    texts = {
        f"{PREFIX}jobset-name": str(meta_of(owner)["name"]), REPLICATED_JOB: jobs.name,
        f"{PREFIX}replicatedjob-replicas": str(jobs.count), f"{PREFIX}global-replicas": str(sum(each.count for each in all_jobs)),
        f"{PREFIX}restart-attempt": "0", f"{PREFIX}job-index": str(index), JOB_KEY: key,
        f"{PREFIX}job-global-index": str(before + index),
    }  # fmt: skip
    notes = {**texts, **_exclusive_notes(owner, jobs)}
    spec = {"completionMode": INDEXED, **jobs.template.spec, "suspend": False}
    pods = template_in(owner, spec.get("template")).plus(texts, notes)
    subdomain = inside(owner, "spec", "network", "subdomain") or meta_of(owner)["name"]
    made = {**spec, "template": {**pods, "spec": {"restartPolicy": "OnFailure", **pods["spec"], "subdomain": subdomain}}}
    return child_of(owner, "batch/v1", "Job", name, spec=made, meta=jobs.template.meta(texts, notes))


def _exclusive_notes(owner: Document, jobs: MadeJobs) -> dict[str, str]:
    """Return what asks for exclusive placement: of the whole set, or of one replicated job."""
    own = jobs.template.metadata.annotations or {}
    return {key: text for found in (annotations_of(owner), own) for key, text in found.items() if key in (EXCLUSIVE, BY_SELECTOR)}


def admitted(view: View, pod: Document) -> Document | None:
    """Return a pod as the webhooks of JobSet let it be created; None if they keep it back until the first has a node.

    Only the first pod of a job with exclusive placement is created at once, and keeps other jobs out of its domain.
    """
    notes = annotations_of(pod)
    if EXCLUSIVE not in notes or BY_SELECTOR in notes:
        return pod
    if notes.get(INDEX) != "0":
        return None
    priority = str(_priority(view, pod))
    marked = {**pod, "metadata": {**meta_of(pod), "labels": {**labels_of(pod), PRIORITY: priority}}}
    others = [{"key": PRIORITY, "operator": "In", "values": [priority]}]
    return with_exclusive_affinity(marked, label=JOB_KEY, topology=notes[EXCLUSIVE], others=others, namespaceSelector={})


def _priority(view: View, pod: Document) -> int:
    try:
        return int(completed_pod(pod, view)["spec"]["priority"])
    except Forbidden:
        return 0  # the pod is refused all the same


def _notes(owner: Document, jobs: Sequence[MadeJobs], later: list[str]) -> Iterator[str]:
    if later:
        yield f"the jobs {', '.join(later)} are made later, once those before them are ready or complete"
    asked = [_exclusive_notes(owner, each) for each in jobs]
    if any(EXCLUSIVE in notes and BY_SELECTOR not in notes for notes in asked):
        yield f"{EXCLUSIVE}: the other pods of each job are made once its first one has a node"
    elif any(EXCLUSIVE in notes for notes in asked):
        yield f"{BY_SELECTOR}: left out here: which nodes are labelled for its jobs is not known"
