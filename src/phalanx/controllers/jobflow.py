"""Flows of Volcano jobs: each job is made from its template as soon as those that it depends on are completed.

A job that was completed and is gone, by its time to live for example, counts as completed. A probe of a task is answered by the
status of the jobs that are depended on. Probes over HTTP and TCP are not sent: they count as passed once the jobs are completed.

Job templates list the jobs that were made from them; that is kept here too, since only flows make jobs from templates.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from phalanx.controllers.controller import NOTHING, Create, Delete, Key, Patch, RecordEvent, Result, View, Write
from phalanx.controllers.objects import (
    annotations_of,
    controller_of,
    inside,
    is_leaving,
    key_of,
    meta_of,
    owner_reference,
    problem_writes,
    read,
)
from phalanx.dialects.kinds.volcano_flows import Flow, JobFlow, TaskPhase
from phalanx.errors import SnapshotError
from phalanx.model.kinds import JOB_FLOW, JOB_TEMPLATE, VOLCANO_JOB, Document, Kind
from phalanx.model.merging import merged

FROM_FLOW, FROM_TEMPLATE = "volcano.sh/createdByJobFlow", "volcano.sh/createdByJobTemplate"
PENDING, RUNNING, SUCCEED, FAILED, TERMINATING = "Pending", "Running", "Succeed", "Failed", "Terminating"
COMPLETED = "Completed"
LOST = ("Failed", "Terminated")
"""Phases of jobs that will not be completed any more."""
LIST_BY_PHASE = {
    "Pending": "pendingJobs", "Running": "runningJobs", "Completed": "completedJobs", "Failed": "failedJobs",
    "Terminated": "terminatedJobs",
}  # fmt: skip
OTHERS = "unKnowJobs"
RETAIN, DELETE = "retain", "delete"
JOBS_OF_TEMPLATE = "jobDependsOnList"
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FlowJobs:
    """The jobs of a flow by name, and the names of those that were completed and are gone."""

    there: Mapping[str, Document]
    done: frozenset[str]

    def phase(self, name: str) -> str:
        """Return the phase of a job; empty if it has none yet."""
        return COMPLETED if name in self.done else str(inside(self.there.get(name, {}), "status", "state", "phase") or "")

    @property
    def names(self) -> list[str]:
        """All that were ever made."""
        return sorted({*self.there, *self.done})


def job_name(flow: str, step: str) -> str:
    """Return the name of the job of a step."""
    return f"{flow}-{step}"


class JobFlowController:
    """Reconciles JobFlows."""

    name = "jobflow"
    watches = (JOB_FLOW, JOB_TEMPLATE, VOLCANO_JOB)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the flow itself, that of a job, or all flows that use a template."""
        key = key_of(document)
        if kind is JOB_FLOW:
            return [key]
        if kind is VOLCANO_JOB:
            owner = controller_of(document) or {}
            return [Key(key.namespace, str(owner.get("name")))] if owner.get("kind") == JOB_FLOW.kind else []
        return [key_of(flow) for flow in view.within(JOB_FLOW, key.namespace) if _names(flow, key.name)]

    def reconcile(self, view: View, key: Key) -> Result:
        """Create the jobs whose dependencies are completed, update the status, and clean up after a flow that has succeeded."""
        document = view.find(JOB_FLOW, key.namespace, key.name)
        if document is None:
            return NOTHING
        jobs = _jobs(view, document)
        if inside(document, "status", "state", "phase") == SUCCEED:
            return Result(_cleaned_up(document, jobs))
        try:
            flow = _checked(document)
        except SnapshotError as problem:
            return Result(problem_writes(JOB_FLOW, document, str(problem)))
        made, missing = ([], "") if is_leaving(document) else _made(view, document, flow, jobs)
        return Result([*made, *_reported(document, flow, jobs), *problem_writes(JOB_FLOW, document, missing)])


def _names(flow: Document, template: str) -> bool:
    return any(inside(step, "name") == template for step in inside(flow, "spec", "flows") or ())


def _checked(document: Document) -> JobFlow:
    """Read a flow; one that could never be finished is refused."""
    flow = read(document, JobFlow)
    names = [step.name for step in flow.steps]
    for number, step in enumerate(flow.steps):
        where = f"spec.flows[{number}]"
        if step.name in names[:number]:
            raise SnapshotError(f"{where}.name: {step.name!r} is given twice; name every template once")
        unknown = [target for target in step.targets if target not in names]
        if unknown:
            raise SnapshotError(f"{where}.dependsOn.targets: {unknown[0]!r} is no step of this flow; known are {', '.join(names)}")
    _refuse_circles(flow)
    return flow


def _refuse_circles(flow: JobFlow) -> None:
    try:
        TopologicalSorter({step.name: step.targets for step in flow.steps}).prepare()
    except CycleError as problem:
        line = " after ".join(reversed(problem.args[1]))
        raise SnapshotError(f"spec.flows: {line}: a circle, of which nothing can be first; take one dependsOn out") from problem


# --- jobs ----------------------------------------------------------------------------------------------------------------


def _jobs(view: View, flow: Document) -> FlowJobs:
    there = {str(meta_of(job)["name"]): job for job in view.owned(meta_of(flow)["uid"], VOLCANO_JOB)}
    return FlowJobs(there, frozenset(inside(flow, "status", LIST_BY_PHASE[COMPLETED]) or ()) - set(there))


def _made(view: View, document: Document, flow: JobFlow, jobs: FlowJobs) -> tuple[list[Write], str]:
    """Return the jobs to create now, and what prevents others."""
    writes, problems, known = list[Write](), list[str](), jobs.names
    for step in flow.steps:
        name = job_name(flow.metadata.name, step.name)
        if name in known or not _may_start(flow.metadata.name, step, jobs):
            continue
        try:
            writes += [Create(_job(view, document, step)), RecordEvent(document, "Created", f"made job {name}")]
        except SnapshotError as problem:
            problems.append(str(problem))
    return writes, "; ".join(problems)


def _may_start(flow: str, step: Flow, jobs: FlowJobs) -> bool:
    targets = [job_name(flow, target) for target in step.targets]
    is_free = all(jobs.phase(target) == COMPLETED for target in targets)
    found = [jobs.there[target] for target in targets if target in jobs.there]
    return is_free and all(_passes(probe, found) for probe in step.task_probes)


def _passes(probe: TaskPhase, jobs: Iterable[Document]) -> bool:
    return any(inside(job, "status", "taskStatusCount", probe.task_name or "", "phase", probe.phase or "") for job in jobs)


def _job(view: View, flow: Document, step: Flow) -> Spec:
    key = key_of(flow)
    template, name = view.find(JOB_TEMPLATE, key.namespace, step.name), job_name(key.name, step.name)
    if template is None:
        raise SnapshotError(f"spec.flows: there is no JobTemplate {step.name!r} in namespace {key.namespace!r}; create it")
    if view.find(VOLCANO_JOB, key.namespace, name) is not None:
        raise SnapshotError(f"spec.flows: job {name!r} of step {step.name!r} is there already and not ours; delete or rename it")
    marks = {FROM_FLOW: f"{key.namespace}.{key.name}", FROM_TEMPLATE: f"{key.namespace}.{step.name}"}
    meta = {
        "namespace": key.namespace, "name": name, "labels": marks, "annotations": marks, "ownerReferences": [owner_reference(flow)],
    }  # fmt: skip
    spec = _patched(inside(template, "spec") or {}, (step.patch.job_spec if step.patch else None) or {})
    return {"apiVersion": VOLCANO_JOB.api_version, "kind": VOLCANO_JOB.kind, "metadata": meta, "spec": spec}


def _patched(spec: Document, change: Document) -> Spec:
    """Return the spec of a job with changes: tasks are joined by name, other lists replaced."""
    changes = {str(inside(task, "name")): task for task in change.get("tasks") or ()}
    tasks = [merged(task, changes.pop(str(inside(task, "name")), {})) for task in spec.get("tasks") or ()]
    found = merged(spec, {name: value for name, value in change.items() if name != "tasks"})
    return {**found, "tasks": [*tasks, *changes.values()]} if tasks or changes else found


def _cleaned_up(document: Document, jobs: FlowJobs) -> list[Write]:
    """Delete the jobs of a flow that has succeeded, if it wants that."""
    if inside(document, "spec", "jobRetainPolicy") != DELETE:
        return []
    left = [job for job in jobs.there.values() if not is_leaving(job)]
    return [Delete(VOLCANO_JOB, key_of(job).namespace, key_of(job).name, meta_of(job)["uid"]) for job in left]


# --- status --------------------------------------------------------------------------------------------------------------


def _reported(document: Document, flow: JobFlow, jobs: FlowJobs) -> list[Write]:
    status = {**_lists(jobs), "jobStatusList": _lines(jobs), "state": {"phase": _flow_phase(document, flow, jobs)}}
    old = inside(document, "status") or {}
    changes = {name: value for name, value in status.items() if old.get(name) != value}
    key = key_of(document)
    return [Patch(JOB_FLOW, key.namespace, key.name, {"status": changes}, is_status=True)] if changes else []


def _lists(jobs: FlowJobs) -> Spec:
    found: Spec = {name: [] for name in (*LIST_BY_PHASE.values(), OTHERS)}
    for name in jobs.names:
        found[LIST_BY_PHASE.get(jobs.phase(name), OTHERS)].append(name)
    return found


def _lines(jobs: FlowJobs) -> list[Spec]:
    """Return a line for every job that is there."""
    return [
        {
            "name": name, "state": jobs.phase(name), "startTimestamp": meta_of(job).get("creationTimestamp", ""),
            "restartCount": inside(job, "status", "retryCount") or 0,
        }
        for name, job in jobs.there.items()
    ]  # fmt: skip


def _flow_phase(document: Document, flow: JobFlow, jobs: FlowJobs) -> str:
    phases = [jobs.phase(name) for name in jobs.names]
    if is_leaving(document):
        return TERMINATING
    if any(phase in LOST for phase in phases):
        return FAILED
    if flow.steps and phases.count(COMPLETED) == len(flow.steps):
        return SUCCEED
    return RUNNING if any(phase not in ("", PENDING) for phase in phases) else PENDING


# --- templates -----------------------------------------------------------------------------------------------------------


class JobTemplateController:
    """Keeps the list of jobs in the status of each JobTemplate."""

    name = "jobtemplate"
    watches = (JOB_TEMPLATE, VOLCANO_JOB)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the template itself, or that of a job that was created or deleted."""
        key = key_of(document)
        if kind is JOB_TEMPLATE:
            return [key]
        name = _template_of(document)
        template = view.find(JOB_TEMPLATE, key.namespace, name) if name else None
        is_there = view.find(VOLCANO_JOB, key.namespace, key.name) is not None
        is_listed = key.name in (inside(template or {}, "status", JOBS_OF_TEMPLATE) or ())
        return [Key(key.namespace, name)] if template is not None and is_there != is_listed else []

    def reconcile(self, view: View, key: Key) -> Result:
        """List the jobs of a template."""
        template = view.find(JOB_TEMPLATE, key.namespace, key.name)
        if template is None:
            return NOTHING
        names = [key_of(job).name for job in view.within(VOLCANO_JOB, key.namespace) if _template_of(job) == key.name]
        if names == (inside(template, "status", JOBS_OF_TEMPLATE) or []):
            return NOTHING
        return Result([Patch(JOB_TEMPLATE, key.namespace, key.name, {"status": {JOBS_OF_TEMPLATE: names}}, is_status=True)])


def _template_of(job: Document) -> str:
    """Return the name of the template that a job was made from; empty for others."""
    return annotations_of(job).get(FROM_TEMPLATE, "").removeprefix(f"{key_of(job).namespace}.")
